"""Saved answers: JSON lines, or the evidence of a case."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from e2e.errors import InvalidEvaluation, SetupMissing
from e2e.oracle.dataset import Dataset
from e2e.oracle.strict_json import Malformed, excerpt, parse_object

_MOST_SHOWN = 20


@dataclass
class Responses:
    """Answer texts by doc_id, and why an answer of an evidence was invalid."""

    texts: dict[int, str] = field(default_factory=dict)
    invalid: dict[int, str] = field(default_factory=dict)


def read_responses(path: Path, dataset: Dataset) -> Responses:
    """From JSON lines `{"doc_id": 0, "text": "..."}` (other keys are of no matter), an evidence
    folder, or its evidence.json.

    Raises SetupMissing where there is nothing to read or the evidence is of another data set, and
    InvalidEvaluation naming the lines (the first 20) that are no answer, doubled, or of a question
    that the data set does not have.
    """
    file = path / "evidence.json" if path.is_dir() else path
    try:
        data = file.read_bytes()
    except OSError as error:
        raise SetupMissing(
            f"no answers to score: {file}: {error.strerror}",
            mend="give JSON lines with doc_id and text, or the folder of a case's evidence.json",
        ) from error
    reader = _Reader(file, len(dataset.test))
    if file.name == "evidence.json":
        reader.read_evidence(data, dataset)
    else:
        reader.read_lines(data)
    return reader.result()


class _Reader:
    """Gathers answers and everything that is wrong with the file."""

    def __init__(self, file: Path, questions: int) -> None:
        self._file = file
        self._questions = questions
        self._found = Responses()
        self._first_seen: dict[int, str] = {}
        self._problems: list[str] = []

    def read_lines(self, data: bytes) -> None:
        for number, line in enumerate(data.split(b"\n"), 1):
            if not line.strip():
                continue
            where = f"line {number}"
            try:
                self._add(parse_object(line), where)
            except Malformed as malformed:
                self._problems.append(f"{where}: {malformed}")

    def read_evidence(self, data: bytes, dataset: Dataset) -> None:
        try:
            evaluation = parse_object(data).get("evaluation")
        except Malformed as malformed:
            raise InvalidEvaluation(f"{self._file} is no evidence: {malformed}") from malformed
        samples = evaluation.get("samples") if isinstance(evaluation, dict) else None
        if not isinstance(evaluation, dict) or not isinstance(samples, list):
            raise InvalidEvaluation(f"{self._file} has no evaluation: nothing was answered")
        if evaluation.get("dataset_sha256") != dataset.sha256:
            raise SetupMissing(
                f"{self._file} has answers to {excerpt(evaluation.get('dataset'))}, which is not"
                f" the data set {dataset.source}",
                mend="name the data set of that run with --dataset",
            )
        for number, sample in enumerate(samples):
            where = f"sample {number}"
            try:
                if not isinstance(sample, dict):
                    raise Malformed(f"not an object but {type(sample).__name__}")
                self._add(sample, where, reason=sample.get("invalid"))
            except Malformed as malformed:
                self._problems.append(f"{where}: {malformed}")

    def result(self) -> Responses:
        if not self._problems and not self._first_seen:
            self._problems.append("no answers in it")
        if self._problems:
            raise InvalidEvaluation(
                f"{self._file}: {len(self._problems)} of its answers cannot be scored, first"
                f" {self._problems[0]}",
                lines=self._problems[:_MOST_SHOWN],
                mend='each answer is {"doc_id": 0, "text": "..."}, each question answered once',
            )
        return self._found

    def _add(self, entry: dict[str, Any], where: str, reason: object = None) -> None:
        doc_id, text = entry.get("doc_id"), entry.get("text")
        if isinstance(doc_id, bool) or not isinstance(doc_id, int):
            raise Malformed(f"doc_id is {excerpt(repr(doc_id))}, not a number")
        if not 0 <= doc_id < self._questions:
            raise Malformed(f"doc_id {doc_id} is none of the {self._questions} questions")
        if doc_id in self._first_seen:
            raise Malformed(f"doc_id {doc_id} again, first in {self._first_seen[doc_id]}")
        self._first_seen[doc_id] = where
        if reason is not None:
            self._found.invalid[doc_id] = excerpt(reason)
        elif isinstance(text, str):
            self._found.texts[doc_id] = text
        else:
            raise Malformed(f"doc_id {doc_id}: text is {excerpt(repr(text))}, not a text")

"""What `afd-e2e prompts` and `afd-e2e score` print."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from e2e.errors import SetupMissing
from e2e.oracle import dataset
from e2e.oracle.prompts import build
from e2e.oracle.responses import read_responses
from e2e.oracle.scoring import score
from e2e.statistics import what_n_shows


def prompts_command(name: str, shots: int, samples: str, as_json: bool) -> Iterator[str]:
    """The prompts of the first `samples` questions (a number, or `all`) with their SHA-256. More
    than there are is all, as for lm-evaluation-harness. Raises SetupMissing."""
    rows = dataset.load(name)
    for prompt in build(rows, _count("shots", shots), _samples(samples, len(rows.test))):
        if as_json:
            yield json.dumps(
                {
                    "doc_id": prompt.doc_id,
                    "sha256": prompt.sha256,
                    "prompt": prompt.text,
                    "gold": prompt.gold,
                }
            )
        else:
            yield f"# doc {prompt.doc_id}, sha256 {prompt.sha256}, gold {prompt.gold}"
            yield f"{prompt.text}\n"


def score_command(name: str, responses: Path, as_json: bool) -> Iterator[str]:
    """Strict and flexible verdicts of saved answers (see `read_responses`); as JSON one document
    with the numbers of right answers. Answers that the evidence calls invalid are listed as such
    and not counted. Raises SetupMissing and InvalidEvaluation."""
    rows = dataset.load(name)
    saved = read_responses(responses, rows)
    answers = []
    for doc_id, text in sorted(saved.texts.items()):
        verdict = score(text, rows.test[doc_id].answer)
        answers.append(
            {
                "doc_id": doc_id,
                "strict": verdict.strict,
                "flexible": verdict.flexible,
                "extracted": {
                    "strict": verdict.extracted_strict,
                    "flexible": verdict.extracted_flexible,
                },
            }
        )
    right = {match: sum(a[match] for a in answers) for match in ("strict", "flexible")}
    if as_json:
        yield json.dumps(
            {
                "n": len(answers),
                **right,
                "answers": answers,
                "invalid": [{"doc_id": n, "reason": why} for n, why in saved.invalid.items()],
            }
        )
        return
    for answer in answers:
        extracted = answer["extracted"]
        yield (
            f"doc {answer['doc_id']}: strict {_word(answer['strict'])} ({extracted['strict']}),"
            f" flexible {_word(answer['flexible'])} ({extracted['flexible']})"
        )
    for doc_id, reason in saved.invalid.items():
        yield f"doc {doc_id}: invalid, not scored: {reason}"
    if not answers:
        yield "no answer could be scored"
        return
    for match, count in right.items():
        yield f"{match}: {what_n_shows(count, len(answers))}"


def _word(right: bool) -> str:
    return "right" if right else "wrong"


def _samples(text: str, most: int) -> int:
    if text == "all":
        return most
    if not (text.isascii() and text.isdigit()):
        raise SetupMissing(f"--samples {text!r} is neither a number nor all")
    return min(_count("samples", int(text)), most)


def _count(name: str, value: int) -> int:
    if value < 0:
        raise SetupMissing(f"--{name} {value} is less than 0")
    return value

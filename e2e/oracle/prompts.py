"""Prompts of worked examples and a question, byte for byte those of lm-evaluation-harness."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from typing import Literal

from e2e.errors import SetupMissing
from e2e.oracle.dataset import Dataset, Row
from e2e.oracle.scoring import normalise

SHOT_SEED = 1234


@dataclass(frozen=True)
class Prompt:
    """`gold_answer` is the data set's raw answer, `gold` what an answer's number must equal.
    `shots` are the worked examples already in `text`, for chat servers."""

    doc_id: int
    sha256: str
    text: str
    question: str
    gold_answer: str
    gold: str
    shots: tuple[Row, ...] = ()


def build(dataset: Dataset, shots: int, samples: int | Literal["all"]) -> list[Prompt]:
    """Prompts of the first `samples` questions, in order.

    One generator serves all documents: document i's examples depend on what was drawn for
    0..i-1 (lm-evaluation-harness 0.4.13, `--num_fewshot`, default seed). Raises SetupMissing
    where the data set has too few rows.
    """
    count = len(dataset.test) if samples == "all" else samples
    if count > len(dataset.test):
        raise SetupMissing(
            f"{count} samples are asked for and {dataset.source} has {len(dataset.test)} questions",
            mend="lower `samples`, or give a larger data set",
        )
    if shots > len(dataset.train):
        raise SetupMissing(
            f"{shots} shots are asked for and {dataset.source} has {len(dataset.train)} train rows",
            mend="lower `shots`, or give a larger data set",
        )
    generator = random.Random(SHOT_SEED)
    return [
        _prompt(doc_id, row, tuple(generator.sample(dataset.train, shots)))
        for doc_id, row in enumerate(dataset.test[:count])
    ]


def asked(question: str) -> str:
    """A question as it is put to the model, without examples."""
    return f"Question: {question}\nAnswer:"


def _prompt(doc_id: int, row: Row, shots: tuple[Row, ...]) -> Prompt:
    examples = "".join(f"{asked(shot.question)} {shot.answer}\n\n" for shot in shots)
    text = examples + asked(row.question)
    return Prompt(
        doc_id=doc_id,
        sha256=hashlib.sha256(text.encode("utf-8")).hexdigest(),
        text=text,
        question=row.question,
        gold_answer=row.answer,
        gold=normalise(row.answer),
        shots=shots,
    )

"""Prompts: the published hashes on the real set, the same construction on the bundled one."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from e2e.errors import SetupMissing
from e2e.oracle import dataset, prompts
from e2e.oracle.dataset import Dataset

REAL = Path(os.environ.get(dataset.VARIABLE, Path(__file__).parents[3].parent / "shared" / "gsm8k"))
FIRST = {
    0: "d2665d46bac7074822519f9ed3dc0f83cc13b5d9e299fec8f202cdd81cd55cdd",
    1: "50db905b2b2c0affda5356c35b089055ce06ce4e28cf2fffcf06b5235573acae",
    6: "3262c1700be9c8321bfaa058902a33ae224b72dbaae8f7065bdf94246f4b40d2",
}


@pytest.fixture(scope="module")
def real() -> Dataset:
    if not REAL.is_dir():
        pytest.skip(f"no GSM8K at {REAL} (set {dataset.VARIABLE} to its folder)")
    return dataset.load(str(REAL))


def test_real_prompts_have_the_known_hashes(real: Dataset) -> None:
    first = prompts.build(real, 8, 7)
    assert {n: first[n].sha256 for n in FIRST} == FIRST
    assert [prompt.gold for prompt in first] == ["18", "3", "70000", "540", "20", "64", "260"]


def test_real_shots_are_the_known_rows(real: Dataset) -> None:
    place = {row: n for n, row in enumerate(real.train)}
    drawn = [[place[row] for row in prompt.shots] for prompt in prompts.build(real, 8, 2)]
    assert drawn == [
        [6374, 3610, 957, 61, 742, 7462, 6610, 4769],
        [286, 5501, 5677, 687, 806, 6279, 2905, 1939],
    ]


def test_form_of_a_prompt() -> None:
    rows = (dataset.Row("Q one", "A one\n#### 1"), dataset.Row("Q two ", "A two\n#### 2"))
    tiny = Dataset(rows, (dataset.Row(" What?", "#### 1,000."),), "", "tiny")
    (prompt,) = prompts.build(tiny, 2, "all")
    one, two = random.Random(1234).sample(rows, 2)
    assert prompt.text == (
        f"Question: {one.question}\nAnswer: {one.answer}\n\n"
        f"Question: {two.question}\nAnswer: {two.answer}\n\n"
        "Question:  What?\nAnswer:"
    )
    assert prompt.gold == "1000"
    assert prompts.build(tiny, 0, 1)[0].text == "Question:  What?\nAnswer:"


def test_the_number_of_samples_changes_no_prompt() -> None:
    bundled = dataset.load("bundled")
    every = prompts.build(bundled, 8, "all")
    assert every[:3] == prompts.build(bundled, 8, 3)
    assert [prompt.doc_id for prompt in every] == list(range(len(bundled.test)))
    assert every[0].shots != every[1].shots


@pytest.mark.parametrize(
    ("shots", "samples", "said"),
    [(8, 1000, "1000 samples are asked for"), (1000, 7, "1000 shots are asked for")],
)
def test_too_few_rows_are_named(shots: int, samples: int, said: str) -> None:
    with pytest.raises(SetupMissing, match=said):
        prompts.build(dataset.load("bundled"), shots, samples)

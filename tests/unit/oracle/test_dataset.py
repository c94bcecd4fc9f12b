"""Data sets: the bundled one is right, a broken one is named by file and line."""

from __future__ import annotations

import ast
import json
import operator
import re
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.errors import SetupMissing
from e2e.oracle import dataset
from e2e.oracle.scoring import score

ROW = {"question": "How many?", "answer": "#### 1"}


def write(folder: Path, train: str | bytes = "", test: str | bytes = "") -> Path:
    for split, content in (("train", train), ("test", test)):
        data = content.encode() if isinstance(content, str) else content
        (folder / f"{split}.jsonl").write_bytes(data)
    return folder


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def value_of(expression: str) -> float:
    def walk(node: ast.expr) -> float:
        if isinstance(node, ast.BinOp):
            return OPERATORS[type(node.op)](walk(node.left), walk(node.right))
        assert isinstance(node, ast.Constant) and isinstance(node.value, int | float)
        return node.value

    return walk(ast.parse(expression, mode="eval").body)


def test_bundled_set_is_correct_arithmetic() -> None:
    bundled = dataset.load("bundled")
    assert len(bundled.test) >= 10
    assert len(bundled.train) >= 24
    rows = bundled.train + bundled.test
    assert len({row.question for row in rows}) == len(rows)
    for row in rows:
        *steps, last = row.answer.split("\n")
        marks = re.findall(r"<<(.+?)=(.+?)>>", row.answer)
        assert marks, row
        for expression, result in marks:
            assert value_of(expression) == pytest.approx(float(result)), row
        assert 1 <= len(steps) <= 3, row
        assert last == f"#### {marks[-1][1]}", row
        assert 12 <= len(row.question.split()) <= 30, row


def test_a_wrong_sum_in_the_set_would_be_seen() -> None:
    assert value_of("9*2.5-1") == 21.5


def test_gsm8k_variable_names_a_folder(tmp_path: Path) -> None:
    write(tmp_path, lines(ROW), lines(ROW))
    loaded = dataset.load("gsm8k", {dataset.VARIABLE: str(tmp_path)})
    assert loaded.test == (dataset.Row("How many?", "#### 1"),)
    assert loaded.sha256 == dataset.load(str(tmp_path)).sha256
    assert loaded.source == str(tmp_path)


def test_rows_are_those_that_datasets_reads(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = [ROW, {"question": "line\u2028break \u00e9\U0001f600", "answer": "a\r\n\t#### 2 "}]
    write(tmp_path, lines(*rows), lines(ROW).replace("\n", "\r\n"))
    theirs = datasets.load_dataset(
        "json",
        data_files={s: str(tmp_path / f"{s}.jsonl") for s in ("train", "test")},
        cache_dir=str(tmp_path / "cache"),
    )
    ours = dataset.load(str(tmp_path))
    assert [vars(row) for row in ours.train] == list(theirs["train"])
    assert [vars(row) for row in ours.test] == list(theirs["test"])


GOOD = lines(ROW)


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (GOOD + "{not json\n", "test.jsonl:2: not JSON"),
        (GOOD + '"text"\n', "test.jsonl:2: not an object but str"),
        (b'{"question": "\xff", "answer": "1"}\n', "test.jsonl:1: not JSON"),
        ("[" * 200_000 + "\n", "test.jsonl:1: not JSON"),
        (lines({"q": "a", "answer": "b"}), "test.jsonl:1: no key 'question' (keys: answer, q)"),
        (lines({"question": "a", "answer": 18}), "test.jsonl:1: 'answer' is not a text"),
        (lines({"question": " ", "answer": "b"}), "test.jsonl:1: 'question' is not a text"),
        (lines({"question": "\ud800", "answer": "b"}), "test.jsonl:1: 'question' holds half"),
        (
            GOOD + lines({"question": "a", "answer": "cut"}),
            "test.jsonl:2: the answer has no number",
        ),
        (lines({"question": "a", "answer": "#### "}), "test.jsonl:1: the answer has no number"),
        ("\n\n", "test.jsonl is empty"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, test: str | bytes, said: str) -> None:
    write(tmp_path, GOOD, test)
    with pytest.raises(SetupMissing) as error:
        dataset.load(str(tmp_path))
    assert said in error.value.what
    assert error.value.mend


def test_an_answer_without_a_number_is_never_what_is_wanted(tmp_path: Path) -> None:
    """A server that answers nothing of use would be right: what has no number is `[invalid]`."""
    row = {"question": "a", "answer": "#### [invalid]"}
    assert score("I do not know.", row["answer"]).strict
    write(tmp_path, GOOD, lines(row))
    with pytest.raises(SetupMissing, match="no number after '#### '"):
        dataset.load(str(tmp_path))


def test_missing_folder_and_missing_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(SetupMissing, match=r"folder .*/none does not exist"):
        dataset.load("gsm8k", {dataset.VARIABLE: str(tmp_path / "none")})
    write(tmp_path, GOOD, GOOD)
    (tmp_path / "train.jsonl").unlink()
    with pytest.raises(SetupMissing, match=r"train\.jsonl cannot be read: No such file"):
        dataset.load(str(tmp_path))


def test_hub_id_offline_is_a_named_error(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    code = (
        "from e2e.oracle import dataset\n"
        "from e2e.errors import SetupMissing\n"
        "try: dataset.load('gsm8k')\n"
        "except SetupMissing as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            "PATH": "",
            "HF_HOME": str(tmp_path),
            "HF_HUB_OFFLINE": "1",
            "AFD_E2E_GSM8K": "nobody/no-such-set",
            "PYTHONPATH": str(Path(dataset.__file__).parents[2]),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (
        "data set nobody/no-such-set is no folder and cannot be had from the hub" in done.stdout
    ), done.stderr
    assert "AFD_E2E_GSM8K" in done.stdout

"""Identity with lm-evaluation-harness itself, which must never be installed beside vLLM.

AFD_E2E_LM_EVAL_PYTHON names the interpreter of a venv of its own that has it:
    python3 -m venv DIR && DIR/bin/pip install 'lm_eval[api]==0.4.13'
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

from e2e.oracle import dataset, prompts
from e2e.oracle.dataset import Dataset
from e2e.oracle.prompts import Prompt
from e2e.oracle.request import Endpoint, RequestSettings, request_body
from e2e.oracle.scoring import score
from tests.unit.oracle.hostile import hostile_answers
from tests.unit.oracle.test_prompts import REAL

VARIABLE = "AFD_E2E_LM_EVAL_PYTHON"
SHOTS = range(9)
ANSWERS_A_QUESTION = 5

pytestmark = pytest.mark.skipif(
    VARIABLE not in os.environ, reason=f"set {VARIABLE} to an interpreter with lm_eval"
)


@pytest.fixture(scope="module")
def folder() -> Path:
    """The real data set where it is, else the bundled one."""
    return REAL if REAL.is_dir() else dataset.BUNDLED


@pytest.fixture(scope="module")
def rows(folder: Path) -> Dataset:
    return dataset.load(str(folder))


@pytest.fixture(scope="module")
def first(rows: Dataset) -> Prompt:
    return prompts.build(rows, max(SHOTS), 1)[0]


@pytest.fixture(scope="module")
def answers(rows: Dataset) -> list[tuple[int, str]]:
    return [
        (prompt.doc_id, text)
        for prompt in prompts.build(rows, 0, "all")
        for text in hostile_answers(
            prompt.gold_answer, prompt.gold, ANSWERS_A_QUESTION, prompt.doc_id
        )
    ]


@pytest.fixture(scope="module")
def theirs(
    folder: Path, answers: list[tuple[int, str]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    scratch = tmp_path_factory.mktemp("lm_eval")
    asked = {
        "folder": str(folder),
        "cache": str(scratch),
        "shots": list(SHOTS),
        "answers": answers,
    }
    done = subprocess.run(
        [os.environ[VARIABLE], str(Path(__file__).with_name("lm_eval_reference.py"))],
        input=json.dumps(asked),
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(scratch)},
        cwd=scratch,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("shots", SHOTS)
def test_prompts(rows: Dataset, theirs: dict[str, Any], shots: int) -> None:
    ours = [prompt.sha256 for prompt in prompts.build(rows, shots, "all")]
    assert ours == theirs["prompts"][str(shots)]


def test_verdicts(rows: Dataset, answers: list[tuple[int, str]], theirs: dict[str, Any]) -> None:
    for (doc_id, text), verdict in zip(answers, theirs["verdicts"], strict=True):
        assert list(astuple(score(text, rows.test[doc_id].answer))) == verdict, text


def test_request(first: Prompt, theirs: dict[str, Any]) -> None:
    endpoint = Endpoint("http://127.0.0.1:9", "stub")
    assert json.loads(request_body(first, endpoint, RequestSettings())) == theirs["request"]


def test_chat_turns(first: Prompt, theirs: dict[str, Any]) -> None:
    endpoint = Endpoint("http://127.0.0.1:9", "stub", kind="chat")
    body = json.loads(request_body(first, endpoint, RequestSettings()))
    assert body["messages"] == theirs["turns"]

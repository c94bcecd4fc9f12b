"""An evaluation that stands still: its outcome, every role's last lines, every process's stack."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.errors import Outcome
from tests.faults.playing import Fault, Stage

LIMITS = {"stall": 2.0, "stop": 3.0}


@pytest.mark.parametrize("what", ["hang", "freeze"])
def test_a_stall_names_the_role_and_keeps_stacks_of_all_processes(
    stage: Stage, case_folder: Path, what: str
) -> None:
    """A frozen server is killed at its stop, which is a finding of its own."""
    hang = Fault(what, "evaluation", role="attention", nth=5)
    played = stage.play(case_folder, hang, case="pair", limits=LIMITS)
    failure = played.record.failures[0]
    assert failure.outcome is Outcome.SERVER_FAILED
    assert failure.what == "attention stalled: no answer completed for 2 s"
    assert (failure.role, failure.phase) == ("attention", "evaluation")
    for role in ("attention", "ffn"):
        assert any(line.startswith(f"[{role}] ") for line in failure.lines)
        stacks = (case_folder / f"{role}.stacks.txt").read_text(encoding="utf-8")
        assert "vllm serve" in stacks
        assert "thread" in stacks.lower()
    assert played.record.evaluation is not None
    assert [sample for sample in played.record.evaluation.samples if sample.invalid is None]

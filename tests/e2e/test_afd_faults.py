"""A real Attention/FFN pair, disturbed or killed in any phase: named, and nothing is left."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from e2e.errors import Outcome
from e2e.evidence.case import CaseEvidence
from e2e.run import execute
from tests.stubs.cpu_case import AFD_CASE, At, assert_nothing_left, canary, evidence_in, opted_in

_NOTICED_SECONDS = 5
"""A second, and what a loaded machine takes to keep the last lines of the logs."""


def pid_of(role: str, evidence: CaseEvidence) -> int:
    (pid,) = (record.pid for record in evidence.record.roles if record.role == role)
    assert pid is not None
    return pid


def kill(role: str, evidence: CaseEvidence) -> None:
    os.kill(pid_of(role, evidence), signal.SIGKILL)


def kill_engine(role: str, evidence: CaseEvidence) -> None:
    (engine,) = (
        child
        for child in psutil.Process(pid_of(role, evidence)).children(recursive=True)
        if "EngineCore" in " ".join(child.cmdline())
    )
    engine.kill()


@pytest.mark.parametrize("role", ["attention", "ffn"])
@pytest.mark.parametrize("phase", ["ready", "evaluation", "stop"])
def test_a_killed_role_is_named_and_nothing_is_left(role: str, phase: str, tmp_path: Path) -> None:
    chosen = opted_in()
    strike = At(phase, lambda: kill(role, evidence))
    evidence = evidence_in(tmp_path, strike, AFD_CASE)

    assert execute(chosen, AFD_CASE, os.environ, evidence) is Outcome.SERVER_FAILED
    assert strike.began["stop"] - strike.acted < _NOTICED_SECONDS
    named = [failure for failure in evidence.record.failures if failure.role == role]
    assert any("killed by signal 9" in failure.what for failure in named)
    held = {proof.name: proof.held for proof in evidence.record.proofs}
    assert held["ports released"]
    assert held["sockets and temporary files gone"]


def test_an_engine_that_dies_while_the_other_role_is_stopped_is_named(tmp_path: Path) -> None:
    """Its server ends with 0 all the same."""
    chosen = opted_in()
    evidence = evidence_in(tmp_path, At("stop", lambda: kill_engine("ffn", evidence)), AFD_CASE)

    assert execute(chosen, AFD_CASE, os.environ, evidence) is Outcome.SERVER_FAILED
    (failure,) = evidence.record.failures
    assert failure.role == "ffn"
    assert "VLLM::EngineCore" in failure.what
    assert_nothing_left(evidence)


def test_answers_come_through_ffn(tmp_path: Path) -> None:
    """Attention loads no expert: a disturbed one is FFN's alone."""
    chosen = opted_in()
    from e2e.canary import disturb, families

    family = families.find("qwen3_moe")
    copy = tmp_path / "disturbed"
    change = disturb.zero_expert(family, family.moe_layers[0], 2)
    disturb.disturbed_copy(canary(chosen, os.environ), change, copy)
    evidence = evidence_in(tmp_path / "runs", case=AFD_CASE)
    variables = {**os.environ, chosen.model.variable: str(copy)}

    assert execute(chosen, AFD_CASE, variables, evidence) is Outcome.WRONG_ANSWERS
    assert evidence.record.evaluation is not None
    assert "fingerprint" in {c.name for c in evidence.record.evaluation.checks if not c.held}
    assert_nothing_left(evidence)


def test_a_missing_entry_point_is_named_before_anything_is_launched(tmp_path: Path) -> None:
    chosen = opted_in()
    assert chosen.afd is not None
    other = chosen.model_copy(
        update={"afd": chosen.afd.model_copy(update={"plugin": "afd_not_there"})}
    )
    evidence = evidence_in(tmp_path, case=AFD_CASE)
    assert execute(other, AFD_CASE, os.environ, evidence) is Outcome.SETUP_MISSING
    (failure,) = evidence.record.failures
    assert "afd_not_there" in failure.what + "".join(failure.lines) + failure.mend
    assert evidence.record.roles == []

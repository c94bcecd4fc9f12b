"""A real server that is killed in any phase: named at once, and nothing is left."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from e2e.errors import Outcome
from e2e.evidence.case import CaseEvidence
from e2e.run import execute
from tests.stubs.cpu_case import CASE, At, evidence_in, opted_in


def kill_leader(evidence: CaseEvidence) -> None:
    pid = evidence.record.roles[0].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def kill_engine(evidence: CaseEvidence) -> None:
    """The leader lives on for a moment, and says itself that its engine died."""
    leader = psutil.Process(evidence.record.roles[0].pid)
    for child in leader.children(recursive=True):
        if "EngineCore" in " ".join(child.cmdline()):
            child.kill()


@pytest.mark.parametrize(
    ("phase", "kill", "named"),
    [
        ("ready", kill_leader, "killed by signal 9"),
        ("evaluation", kill_leader, "killed by signal 9"),
        ("evaluation", kill_engine, "has lost its process VLLM::EngineCor"),
        ("stop", kill_leader, "killed by signal 9 when stopped"),
    ],
)
def test_a_killed_server_is_named_and_leaves_nothing(
    phase: str, kill, named: str, tmp_path: Path
) -> None:
    chosen = opted_in()
    evidence = evidence_in(tmp_path, At(phase, lambda: kill(evidence)))

    assert execute(chosen, CASE, os.environ, evidence) is Outcome.SERVER_FAILED
    failures = evidence.record.failures
    assert any(failure.role == "native" and named in failure.what for failure in failures)
    assert not any(failure.outcome is Outcome.HARNESS_ERROR for failure in failures)
    assert [proof.name for proof in evidence.record.proofs if "port" in proof.name] != []
    held = {proof.name: proof.held for proof in evidence.record.proofs}
    assert held["ports released"] and held["sockets and temporary files gone"]

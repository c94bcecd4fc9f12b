"""A real Attention/FFN pair on two GPUs, with faults: named, all memory back, nothing left.

Gated as its profile is: `canary-2gpu`, or the one that `--profile` names.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from e2e import devices, session
from e2e.devices.nvml import NvmlDriver
from e2e.errors import Outcome
from e2e.evidence.case import CaseEvidence
from e2e.profile.model import Profile
from e2e.run import execute
from tests.stubs import gpu_case
from tests.stubs.cpu_case import AFD_CASE, At

_CLI = "import sys; from e2e.cli import main; sys.exit(main())"
_POLL_SECONDS = 0.1


@pytest.fixture
def source(request: pytest.FixtureRequest) -> str:
    return gpu_case.source(request, "canary-2gpu")


@pytest.fixture
def chosen(source: str) -> Profile:
    return gpu_case.opted_in(source)


def used_mib() -> dict[str, int]:
    there = devices.look(NvmlDriver)
    return {device.uuid: device.memory.used for device in there.devices}


def strike(role: str, number: int, evidence: CaseEvidence) -> None:
    (pid,) = (record.pid for record in evidence.record.roles if record.role == role)
    assert pid is not None
    os.kill(pid, number)


@pytest.mark.parametrize(
    ("phase", "role", "number", "named"),
    [
        ("evaluation", "attention", signal.SIGKILL, "killed by signal 9"),
        ("evaluation", "ffn", signal.SIGKILL, "killed by signal 9"),
        ("stop", "ffn", signal.SIGSTOP, "had to be killed"),
    ],
)
def test_memory_comes_back_after_a_fault(
    chosen: Profile, phase: str, role: str, number: int, named: str, tmp_path: Path
) -> None:
    before = used_mib()
    act = At(phase, lambda: strike(role, number, evidence))
    evidence = session.open_evidence(tmp_path, "fault", chosen.profile, AFD_CASE, act)

    assert execute(chosen, AFD_CASE, os.environ, evidence) is not Outcome.PASSED
    failures = [failure.what for failure in evidence.record.failures if failure.role == role]
    assert any(named in what for what in failures), evidence.record.failures
    proofs = {proof.name: proof for proof in evidence.record.proofs}
    assert proofs["device memory back"].held, proofs["device memory back"].found
    assert proofs["ports released"].held
    assert used_mib() == before


def test_a_killed_harness_leaves_nothing(chosen: Profile, source: str, tmp_path: Path) -> None:
    before = used_mib()
    command = [sys.executable, "-c", _CLI, "run", source, "--case", AFD_CASE]
    harness = subprocess.Popen(
        [*command, "--evidence", str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert harness.stdout is not None
    for line in harness.stdout:
        if line.strip().startswith("claims"):
            break
    harness.kill()
    harness.wait()
    assert any(mib > 1000 for mib in used_mib().values())

    deadline = time.monotonic() + 60
    reports = []
    while not reports and time.monotonic() < deadline:
        reports = list(tmp_path.glob("*/*/guardian.json"))
        time.sleep(_POLL_SECONDS)
    assert reports, "the guardian has written no report"
    while used_mib() != before and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    assert used_mib() == before

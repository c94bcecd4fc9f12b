"""The harness is killed with nasty servers: they are gone soon after, and the next run is told."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.process import reap
from e2e.process.guardian import runs, table
from tests.faults.playing import Stage, wait_for_phase
from tests.faults.setting import until
from tests.faults.standin.faults import Fault

PHASES = ("launch", "ready", "evaluation", "stop")
NASTY = (Fault("child", "start", stubborn=True), Fault("hang", "stop"))


def marked(host: Path) -> list[str]:
    """Command lines of everything that carries the marker of a run of this test."""
    return [
        table.named(row).command
        for row in table.snapshot().values()
        if any(f"{host}/runs/" in variable for variable in table.environment(row.pid))
    ]


def run_files(host: Path) -> list[str]:
    return runs.run_files(str(host))


def told_of(folder: Path) -> list[str]:
    """What the next run is told of the case in that folder."""
    return [line for line in reap.tell_lost_runs() if str(folder) in line]


@pytest.fixture
def gone(host_folder: Path) -> Callable[[], bool]:
    """Whether neither guardians nor servers of this test are alive; both carry its run file."""
    return lambda: not marked(host_folder)


@pytest.mark.parametrize("phase", PHASES)
def test_sigkill_of_the_harness(
    stage: Stage, case_folder: Path, host_folder: Path, gone: Callable[[], bool], phase: str
) -> None:
    name = f"psm_{secrets.token_hex(6)}"
    faults = (*NASTY, Fault("shared_memory", "start", name=name, held=True))
    answering = 0 if phase == "stop" else 60
    with stage.playing(case_folder, *faults, answer_seconds=answering) as harness:
        wait_for_phase(harness, phase)
        harness.kill()
        until(gone, "everything is gone", 20)
    report = json.loads((case_folder / "guardian.json").read_text(encoding="utf-8"))
    assert "ended without a word" in report["what"]
    assert report["survivors"] == []
    assert not Path("/dev/shm", name).exists()
    assert list(case_folder.glob("*.partial")) == []
    told: list[str] = []
    until(lambda: told.extend(told_of(case_folder)) or told, "the guardian has let go of its file")
    assert len(told) == 1
    assert told_of(case_folder) == []
    assert run_files(host_folder) == []

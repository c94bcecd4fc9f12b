"""The harness itself is killed or signalled, in every phase: the servers are gone soon after."""

from __future__ import annotations

import json
import secrets
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.errors import Outcome
from e2e.process import reap
from e2e.process.guardian import runs, table
from tests.faults.playing import Played, playing, wait_for_phase
from tests.faults.setting import until
from tests.faults.standin.faults import Fault

PHASES = ("launch", "ready", "evaluate", "stop")
SECONDS = {"stop": 0.3}
NASTY = (Fault("daemon", "start", stubborn=True), Fault("hang", "stop"))


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
    case_folder: Path, host_folder: Path, gone: Callable[[], bool], phase: str
) -> None:
    name = f"psm_{secrets.token_hex(6)}"
    faults = (*NASTY, Fault("shared_memory", "start", name=name, held=True))
    with playing(case_folder, *faults, seconds=SECONDS.get(phase, 60)) as harness:
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("phase", PHASES)
def test_a_signal_ends_the_run_in_order(
    case_folder: Path, host_folder: Path, gone: Callable[[], bool], phase: str, number: int
) -> None:
    with playing(case_folder, seconds=SECONDS.get(phase, 60)) as harness:
        wait_for_phase(harness, phase)
        harness.send_signal(number)
        assert harness.wait(20) == Outcome.INTERRUPTED.exit_code
        assert gone()
    played = Played.read(case_folder)
    assert played.failures == [f"interrupted: {signal.Signals(number).name} ended the run"]
    assert all(proof.held for proof in played.record.proofs)
    assert len(played.record.proofs) == 4
    assert run_files(host_folder) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_hurries_the_stop(
    case_folder: Path, gone: Callable[[], bool], number: int
) -> None:
    with playing(case_folder, *NASTY) as harness:
        wait_for_phase(harness, "evaluate")
        harness.send_signal(number)
        wait_for_phase(harness, "stop")
        harness.send_signal(number)
        assert harness.wait(20) == Outcome.INTERRUPTED.exit_code
        assert gone()
    played = Played.read(case_folder)
    assert played.seconds["stop"] < 2.5
    assert len(played.record.proofs) == 4

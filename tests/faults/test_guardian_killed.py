"""The guardian is the one to die: the harness notices, ends everything, and says so."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from e2e.errors import HarnessError, Outcome
from e2e.process import Owner, reap
from e2e.process.guardian import ownership, runs, table
from tests.faults.playing import Played, Stage, wait_for_phase
from tests.faults.setting import until
from tests.faults.standin.faults import Fault

PHASES = ("launch", "ready", "claims", "evaluation", "stop")
LIMITS = {"stop": 3.0, "kill": 3.0}
STUBBORN = Fault("child", "start", stubborn=True)


def guardian(host: Path) -> int:
    """The guardian of the one run in this host folder."""
    (marker,) = runs.run_files(str(host))
    processes = table.snapshot()
    found = [pid for pid in processes if ownership.guardian_of(pid) == marker]
    (pid,) = [pid for pid in found if processes[pid].parent not in found]  # not one it is launching
    return pid


def servers(host: Path) -> list[int]:
    return [
        pid
        for pid in table.snapshot()
        if any(f"AFD_E2E_OWNER={host}/" in variable for variable in table.environment(pid))
    ]


def answering(phase: str) -> float:
    return 0 if phase == "stop" else 60


@pytest.mark.parametrize("faults", [(), (STUBBORN, Fault("hang", "stop"))], ids=["tame", "nasty"])
@pytest.mark.parametrize("phase", PHASES)
def test_the_harness_ends_everything_and_says_so(
    stage: Stage, case_folder: Path, host_folder: Path, phase: str, faults: Sequence[Fault]
) -> None:
    with stage.playing(
        case_folder, *faults, answer_seconds=answering(phase), limits=LIMITS
    ) as harness:
        wait_for_phase(harness, phase)
        os.kill(guardian(host_folder), signal.SIGKILL)
        assert harness.wait(60) == Outcome.HARNESS_ERROR.exit_code
        assert servers(host_folder) == []
    played = Played.read(case_folder)
    assert any("ended by itself: signal 9" in failure for failure in played.failures)
    assert len(played.record.proofs) == 4
    assert runs.run_files(str(host_folder)) == []


def test_a_guardian_that_cannot_start_is_named_with_its_last_words(
    stage: Stage, case_folder: Path, host_folder: Path
) -> None:
    host_folder.mkdir()
    (host_folder / "runs").write_text("in the way")
    with pytest.raises(HarnessError, match="gives no answer") as caught, Owner("run", case_folder):
        raise AssertionError("entered")
    assert "NotADirectoryError" in caught.value.lines[-1]
    assert caught.value.log == case_folder / "guardian.log"


def test_a_stopped_guardian_does_not_stop_the_harness(
    stage: Stage, case_folder: Path, host_folder: Path
) -> None:
    with stage.playing(case_folder, answer_seconds=1.0) as harness:
        wait_for_phase(harness, "evaluation")
        os.kill(guardian(host_folder), signal.SIGSTOP)
        harness.wait(60)
        assert servers(host_folder) == []
    assert Played.read(case_folder).record.outcome is not None


@pytest.mark.parametrize("phase", ["ready", "evaluation"])
def test_both_killed_leaves_what_reap_finds_and_ends(
    stage: Stage, case_folder: Path, host_folder: Path, phase: str
) -> None:
    name = f"psm_{secrets.token_hex(6)}"
    shared = Fault("shared_memory", "start", name=name, held=True)
    with stage.playing(case_folder, STUBBORN, shared, Fault("hang", "stop")) as harness:
        wait_for_phase(harness, phase)
        until(lambda: name in Path(runs.run_files(str(host_folder))[0]).read_text(), "it is seen")
        os.kill(harness.pid, signal.SIGSTOP)
        os.kill(guardian(host_folder), signal.SIGKILL)
        harness.kill()
        harness.wait()
    (told,) = [line for line in reap.tell_lost_runs() if str(case_folder) in line]
    assert "its harness and its guardian were both killed" in told
    assert "afd-e2e reap" in told
    (leftover,) = [left for left in reap.leftovers() if left.path.is_relative_to(host_folder)]
    lines = "\n".join(leftover.lines())
    for word in (
        "run-of-faults",
        "ago",
        str(case_folder),
        "vllm serve",
        f"/dev/shm/{name}",
        "port",
    ):
        assert word in lines
    assert reap.end(leftover, term_seconds=0.5) == []
    assert servers(host_folder) == []
    assert not Path("/dev/shm", name).exists()
    assert runs.run_files(str(host_folder)) == []


def test_reap_never_lists_a_run_that_is_alive(
    stage: Stage, case_folder: Path, host_folder: Path
) -> None:
    with stage.playing(case_folder) as harness:
        wait_for_phase(harness, "evaluation")
        assert _listed(host_folder) == []
        os.kill(harness.pid, signal.SIGSTOP)
        os.kill(guardian(host_folder), signal.SIGKILL)
        assert _listed(host_folder) == []
        os.kill(harness.pid, signal.SIGCONT)
        harness.wait(60)


def _listed(host: Path) -> Sequence[reap.Leftover]:
    return [left for left in reap.leftovers() if left.path.is_relative_to(host)]

"""Servers that do not end as they should: named, ended within their deadlines, nothing left."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from e2e.errors import Outcome
from e2e.process.guardian import ownership, table
from tests.faults.playing import play
from tests.faults.standin.faults import Fault

PROCESSES = "no process left"
SEGMENTS = "shared memory returned"
SOCKETS = "sockets and temporary files gone"
PHASES = ("start", "ready", "stop")


def other_runs() -> bool:
    """Whether a case of another test is being played beside this one."""
    return any(map(ownership.guardian_of, table.snapshot()))


def test_a_clean_server_leaves_nothing(case_folder: Path) -> None:
    played = play(case_folder)
    assert played.failures == []
    assert played.seconds["stop"] < 3
    assert sorted(path.name for path in case_folder.iterdir()) == [
        "evidence.json",
        "native.log",
        "summary.md",
    ]


@pytest.mark.parametrize("stubborn", [False, True], ids=["willing", "stubborn"])
@pytest.mark.parametrize("when", PHASES)
@pytest.mark.parametrize(
    ("what", "title"), [("daemon", "kworker/u8:3"), ("child", "VLLM::Straggler")]
)
def test_what_outlives_its_leader_is_named_and_ended(
    case_folder: Path, what: str, title: str, when: str, stubborn: bool
) -> None:
    played = play(case_folder, Fault(what, when, stubborn=stubborn))
    (found,) = played.proof(PROCESSES).found
    assert title in found
    assert "ran on after its leader was gone" in found
    assert played.record.outcome is Outcome.RESIDUE_LEFT
    assert played.seconds["stop"] < 8


@pytest.mark.parametrize("when", PHASES)
def test_a_zombie_is_no_process(case_folder: Path, when: str) -> None:
    assert play(case_folder, Fault("zombie", when)).failures == []


@pytest.mark.parametrize("what", ["hang", "freeze"])
def test_a_leader_that_does_not_stop_is_killed_at_its_deadline(
    case_folder: Path, what: str
) -> None:
    played = play(case_folder, Fault(what, "stop"))
    assert 3 <= played.seconds["stop"] < 8


@pytest.mark.parametrize("when", PHASES)
@pytest.mark.parametrize("signal", [6, 9, 11])
def test_workers_of_a_killed_leader_are_named_and_ended(
    case_folder: Path, when: str, signal: int
) -> None:
    played = play(case_folder, Fault("kill", when, signal=signal))
    (found,) = played.proof(PROCESSES).found
    assert "VLLM::EngineCore" in found
    if when != "stop":
        assert f"server-failed: exited with -{signal}" in played.failures


@pytest.mark.parametrize("when", ["start", "ready"])
def test_an_early_exit_is_noticed_at_once(case_folder: Path, when: str) -> None:
    played = play(case_folder, Fault("exit", when, code=3, text="CUDA out of memory"), seconds=30)
    (failure,) = played.record.failures
    assert (failure.outcome, failure.what) == (Outcome.SERVER_FAILED, "exited with 3")
    assert failure.lines[-1] == "CUDA out of memory"
    assert sum(played.seconds.values()) < 10


@pytest.mark.parametrize("held", [False, True], ids=["closed", "held"])
@pytest.mark.parametrize("when", PHASES)
def test_shared_memory_is_named_and_swept_where_provably_the_runs(
    case_folder: Path, when: str, held: bool
) -> None:
    segment = Path("/dev/shm", f"psm_{secrets.token_hex(6)}")
    played = play(case_folder, Fault("shared_memory", when, name=segment.name, held=held))
    try:
        proof = played.proof(SEGMENTS)
        if held and when != "stop":
            assert proof.found == [f"{segment}, 4096 bytes, left by a role"]
            assert not segment.exists()
        else:
            assert str(segment) in str(proof.detail)
            assert not proof.held or other_runs()
    finally:
        segment.unlink(missing_ok=True)


@pytest.mark.parametrize("when", ["start", "ready"])
def test_a_socket_outside_the_runs_folder_is_named_and_removed(
    case_folder: Path, tmp_path: Path, when: str
) -> None:
    path = tmp_path / "rpc.sock"
    played = play(case_folder, Fault("socket", when, path=str(path)))
    assert played.proof(SOCKETS).found == [f"{path}, left by a role"]
    assert not path.exists()


def test_a_port_that_a_child_keeps_is_freed_with_the_child(case_folder: Path) -> None:
    played = play(case_folder, Fault("keep_port", "ready"))
    assert "VLLM::PortKeeper" in played.proof(PROCESSES).found[0]
    assert played.proof("ports released").held


def test_a_dead_engine_does_not_hinder_the_stop(case_folder: Path) -> None:
    assert play(case_folder, Fault("kill_engine", "ready")).failures == []


@pytest.mark.parametrize("newlines", [True, False], ids=["lines", "one line"])
def test_100_mb_of_log_block_nothing(case_folder: Path, newlines: bool) -> None:
    flood = Fault("flood", "ready", size=100_000_000, newlines=newlines)
    played = play(case_folder, flood, Fault("exit", "ready", code=4, text=""))
    (failure,) = played.record.failures
    assert (case_folder / "native.log").stat().st_size >= 100_000_000
    assert failure.what == "exited with 4"
    assert failure.lines
    assert max(map(len, failure.lines)) < 500


def test_log_that_is_no_text_is_shown_as_far_as_it_is(case_folder: Path) -> None:
    played = play(case_folder, Fault("garbage", "ready"), Fault("exit", "ready", code=5))
    (failure,) = played.record.failures
    assert {"\ufffd\ufffd half \ufffd", "red bell"} <= set(failure.lines)

"""What is owned, and what is not: escapes of every kind, strangers, and processes that stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e import proofs
from e2e.errors import Outcome, ServerFailed
from e2e.evidence.case import CaseEvidence
from e2e.process import Command, OwnedProcess, Owner
from e2e.process.guardian import table
from tests.faults.setting import plan_of, standin, until, wait_ready
from tests.faults.standin.faults import Fault, Orders

FREEZER = Path("/sys/fs/cgroup/freezer")


def python(folder: Path, code: str, role: str = "native") -> Command:
    argv = (sys.executable, "-I", "-S", "-c", code)
    return Command(role, argv, dict(os.environ), folder, folder / f"{role}.log")


@pytest.fixture
def owner(case_folder: Path) -> Iterator[Owner]:
    with Owner("run-of-faults", case_folder, kill_seconds=3) as owner:
        yield owner


HOP = """
import os, time
for _ in range({hops}):
    if os.fork(): os._exit(0)
    os.setsid()
print("landed", flush=True)
time.sleep(60)
"""


def test_a_process_that_has_hopped_from_fork_to_fork_is_found(
    owner: Owner, case_folder: Path
) -> None:
    process = owner.spawn(python(case_folder, HOP.format(hops=200)))
    until(lambda: process.last_lines() == ["landed"], "the last sleeps")
    assert [row.pid for row in process.stop(5, 3).outlived]
    assert owner.living() == []


def test_a_process_that_forks_faster_than_it_is_looked_at_is_ended(
    owner: Owner, case_folder: Path
) -> None:
    process = owner.spawn(python(case_folder, HOP.format(hops=1_000_000)))
    until(lambda: process.exit_code() is not None, "the first is gone")
    assert all(process.living() for _ in range(20))
    climb = owner.end_rest(0.0)
    assert climb.survivors == []
    assert owner.living() == []
    assert process.last_lines() == []


FORKS = """
import os, time
while True:
    if os.fork() == 0:
        time.sleep(60); os._exit(0)
    time.sleep(0.005)
"""


def test_a_process_that_keeps_forking_is_ended(owner: Owner, case_folder: Path) -> None:
    process = owner.spawn(python(case_folder, FORKS))
    until(lambda: len(process.living()) > 20, "many are there")
    process.stop(0.5, 3)
    assert owner.living() == []


THREAD_OUTLIVES = """
import ctypes, threading, time
thread = threading.Thread(target=lambda: time.sleep(60), daemon=True)
thread.start()
print("up", flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_whose_main_thread_has_ended_is_alive(owner: Owner, case_folder: Path) -> None:
    process = owner.spawn(python(case_folder, THREAD_OUTLIVES))
    until(lambda: [row.state for row in owner.living()] == ["Z"], "its leader is a zombie")
    assert process.exit_code() is None
    assert process.stop(2, 3).exit_code == -signal.SIGTERM
    assert owner.living() == []


def test_strangers_are_never_owned(owner: Owner, case_folder: Path) -> None:
    """Not even one that this process started, or that has the same name."""
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        process = owner.spawn(python(case_folder, "import time; time.sleep(60)"))
        assert [row.pid for row in owner.living()] == [process.pid]
        owner.end_rest(0.0)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_reused_pid_is_not_signalled() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        row = table.read(process.pid)
        assert row is not None
        table.send([table.Identity(process.pid, row.start - 1)], signal.SIGKILL)
        assert process.poll() is None
        table.send([row.identity], signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


def test_orphans_are_told_to_their_role_by_its_marker(owner: Owner, case_folder: Path) -> None:
    daemonise = HOP.format(hops=2)
    first = owner.spawn(python(case_folder, daemonise, "attention"))
    second = owner.spawn(python(case_folder, daemonise, "ffn"))
    for process in (first, second):
        until(lambda process=process: len(process.living()) == 1, "its orphan is its own")
    first.stop(4, 3)
    assert len(second.living()) == 1
    second.stop(4, 3)
    assert owner.living() == []


def test_a_nameless_orphan_of_two_roles_is_found_by_the_proof(
    owner: Owner, case_folder: Path, evidence: CaseEvidence, ports: Iterator[int]
) -> None:
    plan = plan_of(next(ports), release=1.0)
    with proofs.no_process_left(plan, owner, evidence):
        daemon = Orders([Fault("daemon", name="kworker/u8:3", stubborn=True)])
        roles = [
            owner.spawn(standin(case_folder, next(ports), orders, role))
            for role, orders in (("attention", daemon), ("ffn", Orders()))
        ]
        until(lambda: any("worker" in row.command for row in owner.living()), "it is there")
        for role in roles:
            role.stop(3, 3)
    assert evidence.conclude() is Outcome.RESIDUE_LEFT
    assert "kworker/u8:3" in evidence.record.proofs[0].found[0]
    assert owner.living() == []


@pytest.fixture
def frozen() -> Iterator[Path]:
    """A cgroup whose processes do not even die of SIGKILL while it is frozen, as in D state."""
    group = FREEZER / f"afd-e2e-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("needs root and a version 1 freezer cgroup")
    yield group
    (group / "freezer.state").write_text("THAWED")
    until(lambda: not (group / "cgroup.procs").read_text(), "its processes are dead")
    group.rmdir()


def test_what_survives_sigkill_is_named_and_the_harness_goes_on(
    case_folder: Path, evidence: CaseEvidence, frozen: Path, ports: Iterator[int]
) -> None:
    plan = plan_of(next(ports), release=0.5)
    with Owner("run-of-faults", case_folder, kill_seconds=0.5) as owner:
        with proofs.no_process_left(plan, owner, evidence):
            process = owner.spawn(python(case_folder, "import time; time.sleep(60)"))
            (frozen / "cgroup.procs").write_text(str(process.pid))
            (frozen / "freezer.state").write_text("FROZEN")
            report = process.stop(0.5, 0.5)
            assert [row.pid for row in report.survivors] == [process.pid]
            assert report.exit_code is None
        (found,) = [line for line in evidence.record.proofs[0].found if "survives" in line]
        assert f"pid {process.pid} (D)" in found
        assert "quarantine" in found
    (frozen / "freezer.state").write_text("THAWED")


@pytest.mark.parametrize(
    ("changes", "stage"),
    [
        ({"argv": ("/no/such/vllm",)}, "program /no/such/vllm"),
        ({"cwd": Path("/no/such/folder")}, "folder /no/such/folder"),
        ({"log": Path("/no/such/folder/native.log")}, "log /no/such/folder/native.log"),
    ],
)
def test_a_launch_that_fails_says_at_what(
    owner: Owner, case_folder: Path, changes: dict[str, object], stage: str
) -> None:
    command = python(case_folder, "")
    with pytest.raises(ServerFailed, match=f"cannot launch: {stage}: No such file") as caught:
        owner.spawn(Command(**{**vars(command), **changes}))
    assert caught.value.mend
    assert owner.living() == []


def test_roles_get_default_signals_and_nothing_of_the_harness(
    owner: Owner, case_folder: Path
) -> None:
    """No descriptor, no ignored or blocked signal; a session of its own; no terminal."""
    code = (
        "import os, signal; print(sorted(os.listdir('/proc/self/fd')), os.getsid(0) == os.getpid(),"
        "[n for n in range(1, 65) if n not in (9, 13, 19, 25, 32, 33)"
        " and signal.getsignal(n) == signal.SIG_IGN], signal.pthread_sigmask(0, []))"
    )
    process = owner.spawn(python(case_folder, code))
    until(lambda: process.exit_code() == 0, "it has ended")
    assert process.last_lines() == ["['0', '1', '2', '3'] True [] set()"]


def test_stacks_name_processes_and_where_they_wait(
    owner: Owner, case_folder: Path, ports: Iterator[int]
) -> None:
    port = next(ports)
    process = owner.spawn(standin(case_folder, port, Orders()))
    wait_ready(process, port)
    lines = process.stacks(5)
    assert any("serve.py" in line for line in lines)
    assert any("VLLM::EngineCore" in line for line in lines)
    assert any("thread" in line.lower() for line in lines)
    _assert_bounded(process)


def _assert_bounded(process: OwnedProcess) -> None:
    assert all("no time left" in line for line in process.stacks(0))


def test_the_peak_of_memory_is_that_of_the_whole_role(owner: Owner, case_folder: Path) -> None:
    code = "import os, time; x = bytearray(60 << 20); os.fork(); x[::4096] = b'1' * len(x[::4096])"
    process = owner.spawn(python(case_folder, f"{code}; print('up', flush=True); time.sleep(60)"))
    until(lambda: process.last_lines() == ["up", "up"], "both have written their memory")
    process.stop(3, 3)
    assert 110 < process.peak_memory_mib() < 200
    assert len(process.pids_seen()) == 2


def test_a_role_is_held_still_and_runs_on(owner: Owner, case_folder: Path) -> None:
    loop = "def run():\n  while True: print(time.time(), flush=True); time.sleep(0.001)"
    threads = "for _ in range(20): threading.Thread(target=run).start()"
    process = owner.spawn(python(case_folder, f"import threading, time\n{loop}\n{threads}"))
    until(lambda: bool(process.last_lines()), "it runs")
    assert not table.is_stopped(process.leader)
    for _ in range(20):
        with process.stopped():
            assert table.is_stopped(process.leader)
            still = process.last_lines()
            assert process.last_lines() == still
    until(lambda: process.last_lines() != still, "it runs on")

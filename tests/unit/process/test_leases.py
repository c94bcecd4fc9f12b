"""Leases: one holder at a time, named when refused, gone with its process."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from e2e import leases
from e2e.errors import SetupMissing
from e2e.process.guardian import runs

HOLD = """
import sys, time
from e2e import leases
with leases.hold(["gpu-1"], [int(sys.argv[1])], "the other run"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def host_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(runs.HOST_VARIABLE, str(tmp_path / "host"))
    return tmp_path / "host"


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def other_run(port: int) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(port)],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("what", ["device", "port"])
def test_a_second_run_is_refused_and_told_of_the_first(
    other_run: subprocess.Popen[str], port: int, what: str
) -> None:
    wanted = (["gpu-1"], []) if what == "device" else ([], [port])
    with pytest.raises(SetupMissing) as refused, leases.hold(*wanted, "this run"):
        raise AssertionError("held twice")
    for word in (what, "the other run", f"pid {other_run.pid}", "since"):
        assert word in refused.value.what


def test_nothing_is_held_after_a_refusal(other_run: subprocess.Popen[str], port: int) -> None:
    with pytest.raises(SetupMissing), leases.hold(["gpu-0", "gpu-1"], [], "this run"):
        raise AssertionError("held twice")
    with leases.hold(["gpu-0"], [], "another run"):
        pass


def test_a_lease_dies_with_its_holder(other_run: subprocess.Popen[str], port: int) -> None:
    other_run.send_signal(signal.SIGKILL)
    other_run.wait()
    with leases.hold(["gpu-1"], [port], "this run") as held:
        assert (held.devices, held.ports) == (("gpu-1",), (port,))


def test_a_lease_can_be_waited_for(other_run: subprocess.Popen[str], port: int) -> None:
    killer = subprocess.Popen(["sh", "-c", f"sleep 0.5; kill -9 {other_run.pid}"])
    with leases.hold(["gpu-1"], [port], "this run", wait_seconds=20):
        assert killer.wait() == 0


def test_leases_stay_held_by_whoever_inherits_their_descriptors(port: int) -> None:
    with leases.hold(["gpu-1"], [port], "this run") as held:
        heir = subprocess.Popen(["sleep", "60"], pass_fds=held.descriptors)
    try:
        with pytest.raises(SetupMissing, match="this run"), leases.hold(["gpu-1"], [], "next run"):
            raise AssertionError("held twice")
    finally:
        heir.kill()
        heir.wait()


@pytest.mark.parametrize("address", ["127.0.0.1", ""])
def test_a_port_in_use_is_refused_with_its_owner(port: int, address: str) -> None:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen()
        with pytest.raises(SetupMissing) as refused, leases.hold([], [port], "this run"):
            raise AssertionError("held")
    assert f"port {port} is in use by pid {os.getpid()} " in refused.value.what
    assert refused.value.mend


@pytest.mark.parametrize("reuse", [False, True], ids=["plain", "reuse"])
def test_time_wait_is_not_in_use(port: int, reuse: bool) -> None:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = listener.accept()
        accepted.close()
        client.close()
    with leases.hold([], [port], "this run"):
        pass


def test_a_port_that_may_not_be_bound_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_bind_error", lambda _: 13)
    what = "port 80 cannot be bound: Permission denied"
    with pytest.raises(SetupMissing, match=what), leases.hold([], [80], "this run"):
        raise AssertionError("held")


def test_ports_in_the_ephemeral_range_are_warned_of() -> None:
    low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    assert leases.ephemeral_warnings([low - 1, high + 1]) == []
    (warning,) = leases.ephemeral_warnings([low])
    assert f"below {low}" in warning


def test_the_folder_and_its_files_are_open_to_every_user(host_folder: Path, port: int) -> None:
    before = os.umask(0o077)
    try:
        with leases.hold(["gpu-1"], [port], "this run"):
            pass
    finally:
        os.umask(before)
    for folder in (host_folder, host_folder / "leases"):
        assert folder.stat().st_mode & 0o7777 == 0o1777
    assert {file.stat().st_mode & 0o777 for file in (host_folder / "leases").iterdir()} == {0o666}


def test_a_folder_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(runs.HOST_VARIABLE, "/proc/no")
    with pytest.raises(SetupMissing, match="/proc/no") as refused, leases.hold(["gpu-1"], [], "me"):
        raise AssertionError("held")
    assert runs.HOST_VARIABLE in refused.value.mend


def test_a_full_folder_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, text: bytes, offset: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(leases.os, "pwrite", full)
    with pytest.raises(SetupMissing, match="No space left") as refused:  # noqa: SIM117
        with leases.hold(["gpu-1"], [], "me"):
            raise AssertionError("held")
    assert "free space" in refused.value.mend


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize("first", [0, 65534], ids=["root first", "another first"])
def test_users_of_a_host_share_leases(first: int, port: int) -> None:
    """One made by either user is held by the other next, and refused by name meanwhile."""
    with TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        shared = Path(folder, "host")
        shared.mkdir()
        shared.chmod(0o1777)
        second = 65534 - first
        for user in (first, second):
            assert _hold_as(user, shared, port) == "held"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(runs.HOST_VARIABLE, str(shared))
            with leases.hold(["gpu-1"], [port], "root's run"):
                assert "root's run" in _hold_as(65534, shared, port)


def _hold_as(user: int, shared: Path, port: int) -> str:
    """Whether that user gets the lease, or with which words not."""
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        said = "nothing"
        try:
            os.setuid(user)
            os.environ[runs.HOST_VARIABLE] = str(shared)
            with leases.hold(["gpu-1"], [port], "their run"):
                said = "held"
        except BaseException as error:
            said = repr(error)
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(writing)
    with os.fdopen(reading) as told:
        return told.read()

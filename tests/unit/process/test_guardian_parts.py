"""The guardian's parts, each by itself."""

from __future__ import annotations

import mmap
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

import pytest

from e2e.process import link
from e2e.process.guardian import ownership, runs, segments, sockets, sweep, table
from e2e.process.guardian.channel import Channel
from e2e.process.guardian.segments import Segment


@pytest.fixture
def channels() -> Iterator[tuple[Channel, Channel]]:
    ours, theirs = map(Channel, socket.socketpair())
    yield ours, theirs
    ours.close()
    theirs.close()


def test_messages_arrive_whole_whatever_their_size(channels: tuple[Channel, Channel]) -> None:
    ours, theirs = channels
    ours.send({"do": "spawn", "env": {"A": "\udcff\n", "B": "x" * 100_000}})
    ours.send({"do": "end"})
    received = []
    while len(received) < 2:
        received += theirs.receive(1.0)
    assert received[0]["env"] == {"A": "\udcff\n", "B": "x" * 100_000}
    assert received[1] == {"do": "end"}


def test_a_channel_knows_when_the_other_end_is_gone(channels: tuple[Channel, Channel]) -> None:
    ours, theirs = channels
    assert ours.receive() == []
    assert not ours.closed
    theirs.close()
    assert ours.receive(1.0) == []
    assert ours.closed


def test_the_table_reads_names_with_brackets_and_spaces() -> None:
    name = ") R 1 ("
    code = f"import ctypes, time; ctypes.CDLL(None).prctl(15, {name.encode()!r}); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", code]) as process:
        try:
            while (row := table.read(process.pid)) is None or row.command != name:
                assert process.poll() is None
            assert (row.parent, row.state in "RSD") == (os.getpid(), True)
        finally:
            process.kill()


def test_a_zombie_is_no_row() -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert table.read(process.pid) is None
    assert process.pid not in table.snapshot()
    assert table.is_zombie_child(table.identity_of_child(process.pid))
    process.wait()


def test_long_commands_are_cut() -> None:
    with subprocess.Popen(["sleep", "60", *(["0"] * 200)]) as process:
        try:
            row = table.read(process.pid)
            assert row is not None
            assert len(table.named(row).command) <= 200
        finally:
            process.kill()


@pytest.fixture
def segment() -> Iterator[Segment]:
    path = Path("/dev/shm", f"afd-e2e-test-{secrets.token_hex(6)}")
    path.write_bytes(bytes(4096))
    yield Segment(path.name, path.stat().st_ino)
    path.unlink(missing_ok=True)


def test_an_open_segment_is_in_use(segment: Segment) -> None:
    assert segments.in_use([segment]) == set()
    with Path(segment.path).open("rb"):
        assert segments.in_use([segment]) == {segment}
        assert segments.remove([segment]) == []
    assert segments.remove([segment]) == [segment.path]


def test_a_mapped_segment_is_in_use(segment: Segment) -> None:
    with Path(segment.path).open("r+b") as file:
        mapping = mmap.mmap(file.fileno(), 4096)
    assert segments.held_by(os.getpid(), [segment]) == {segment}
    mapping.close()
    assert segments.held_by(os.getpid(), [segment]) == set()


def test_a_semaphore_is_in_use_though_it_is_mapped_under_another_name() -> None:
    before = segments.segments()
    semaphore = get_context("spawn").Semaphore()
    try:
        new = segments.segments() - before
        assert segments.held_by(os.getpid(), new) == new != set()
    finally:
        del semaphore


def test_a_segment_made_anew_under_an_old_name_is_another(segment: Segment) -> None:
    Path(segment.path).rename(f"{segment.path}.old")
    try:
        Path(segment.path).write_bytes(b"")
        assert segments.remove([segment]) == []
    finally:
        Path(f"{segment.path}.old").unlink()


def test_ports_tell_their_state_and_socket() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        number = listener.getsockname()[1]
        (port,) = [port for port in sockets.ports() if port.number == number]
        assert port.listening
        assert port.uid == os.geteuid()
        assert port.inode in sockets.socket_inodes(os.getpid())


def test_only_sockets_that_nobody_has_any_more_are_removed(tmp_path: Path) -> None:
    alive, dead = tmp_path / "alive", tmp_path / "dead"
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        one.bind(str(alive))
        other.bind(str(dead))
        other.close()
        assert sweep.remove_sockets([str(alive), str(dead)]) == [str(dead)]


def test_a_run_file_is_locked_while_its_guardian_lives(tmp_path: Path) -> None:
    path = runs.run_file(str(tmp_path), "run.1")
    file = runs.RunFile(path)
    file.write({"run": "a", "filler": "x" * 100})
    file.write({"run": "b"})
    assert runs.run_files(str(tmp_path)) == [path]
    assert runs.read(path) == (True, {"run": "b"})
    file.remove()
    assert runs.run_files(str(tmp_path)) == []


@pytest.mark.parametrize("data", [b"", b'{"run": "hal', b"\xff"])
def test_a_run_file_that_was_not_finished_is_empty(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "run.json").write_bytes(data)
    assert runs.read(str(tmp_path / "run.json")) == (False, {})


def test_orphans_are_told_by_session_then_by_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    def row(pid: int, parent: int, session: int) -> table.ProcessInfo:
        return table.ProcessInfo(pid, pid, parent, session, "S", "x")

    rows = [row(10, 1, 10), row(20, 1, 20), row(11, 1, 10), row(21, 1, 99), row(30, 1, 98)]
    processes = {one.pid: one for one in rows}
    marked = {21: [f"{ownership.ROLE_VARIABLE}=ffn"]}
    monkeypatch.setattr(table, "environment", lambda pid: marked.get(pid, []))
    shares = ownership.by_role(
        processes,
        {one.identity: one for one in rows},
        {"attention": table.Identity(10, 10), "ffn": table.Identity(20, 20)},
        {},
    )
    assert {role: sorted(pid for pid, _ in share) for role, share in shares.items()} == {
        "attention": [10, 11],
        "ffn": [20, 21],
        "": [30],
    }


def test_the_guardian_needs_nothing_but_the_standard_library() -> None:
    """And stays small: nothing of the project's other rooms is loaded into it."""
    folder = str(Path(link.__file__).parent)
    code = (
        f"import sys; sys.path.insert(0, {folder!r}); import guardian.main;"
        "print([m for m in sys.modules if m.split('.')[0] in ('e2e', 'psutil', 'pydantic')],"
        "int(open('/proc/self/statm').read().split()[1]) * 4096 < 20_000_000)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[] True"

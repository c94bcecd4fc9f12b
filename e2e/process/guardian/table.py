"""The process table from /proc, and signals that cannot hit a stranger.

psutil would do, were it not that the guardian has to read the table with nothing but the
standard library. A process is identified by its pid and its start time in clock ticks since
boot: the pair is never reused.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

_LONGEST_COMMAND = 200
_DEAD = "ZXx"
_STOPPED = "Tt" + _DEAD


class Identity(NamedTuple):
    """`start` is in clock ticks since boot."""

    pid: int
    start: int


class ProcessInfo(NamedTuple):
    """A row of the table. `state` is the kernel's letter; a zombie is no row.

    `command` is the kernel's short name until `named` puts the command line there.
    """

    pid: int
    start: int
    parent: int
    session: int
    state: str
    command: str

    @property
    def identity(self) -> Identity:
        return Identity(self.pid, self.start)


Table = Mapping[int, ProcessInfo]


def read(pid: int) -> ProcessInfo | None:
    """The row of `pid`; None when there is no such process, or only its zombie.

    A zombie whose other threads run on is alive: it still holds memory, devices and ports.
    """
    row, threads = _stat(pid)
    return None if row is None or (row.state in _DEAD and threads <= 1) else row


def this_process() -> Identity:
    return identity_of_child(os.getpid())


def identity_of_child(pid: int) -> Identity:
    """Of a process that is certainly there, if only as a zombie that waits to be reaped."""
    row, _ = _stat(pid)
    if row is None:
        raise ProcessLookupError(pid)
    return row.identity


def is_zombie(pid: int) -> bool:
    """False as well when it is gone altogether."""
    row, threads = _stat(pid)
    return row is not None and row.state in _DEAD and threads <= 1


def is_zombie_child(identity: Identity) -> bool:
    """Whether this process has ended and waits to be reaped by the calling process."""
    row, _ = _stat(identity.pid)
    return (
        row is not None
        and row.identity == identity
        and row.parent == os.getpid()
        and is_zombie(identity.pid)
    )


def _stat(pid: int) -> tuple[ProcessInfo | None, int]:
    """The row, zombies included, and the number of threads."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None, 0
    try:
        line = os.read(descriptor, 4096)
    except ProcessLookupError:
        return None, 0
    finally:
        os.close(descriptor)
    opening, closing = line.index(b"("), line.rindex(b")")
    fields = line[closing + 2 :].split()
    row = ProcessInfo(
        pid=pid,
        start=int(fields[19]),
        parent=int(fields[1]),
        session=int(fields[3]),
        state=fields[0].decode(),
        command=line[opening + 1 : closing].decode("utf-8", "replace"),
    )
    return row, int(fields[17])


def is_stopped(identity: Identity) -> bool:
    """Whether none of its threads runs: SIGSTOP reaches them one after another."""
    try:
        tasks = os.listdir(f"/proc/{identity.pid}/task")
    except FileNotFoundError:
        return True
    rows = [_stat(int(task))[0] for task in tasks]
    return all(row is None or row.state in _STOPPED for row in rows)


def is_alive(identity: Identity) -> bool:
    row = read(identity.pid)
    return row is not None and row.start == identity.start


def snapshot() -> dict[int, ProcessInfo]:
    """All living processes by pid. Not atomic: a process can move to another parent meanwhile."""
    rows = (read(int(name)) for name in os.listdir("/proc") if name.isdecimal())
    return {row.pid: row for row in rows if row is not None}


def children(pid: int) -> list[int]:
    """The children of a process's main thread, zombies included; orphans are adopted by that
    thread. Empty as well where the kernel has no such list (CONFIG_PROC_CHILDREN).

    Unlike a snapshot this cannot find nothing while there is something: the kernel hands an
    orphan over in one step, and the first entry is read in another.
    """
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def alive_children(pid: int) -> list[Identity]:
    rows = (read(child) for child in children(pid))
    return [row.identity for row in rows if row is not None]


def tree(table: Table, roots: Collection[Identity]) -> dict[Identity, ProcessInfo]:
    """The roots that are alive, and all their descendants."""
    children: dict[int, list[ProcessInfo]] = {}
    for row in table.values():
        children.setdefault(row.parent, []).append(row)
    found: dict[Identity, ProcessInfo] = {}
    queue = [row for pid, start in roots if (row := table.get(pid)) and row.start == start]
    while queue:
        row = queue.pop()
        if row.identity not in found:
            found[row.identity] = row
            queue += children.get(row.pid, ())
    return found


def marked(table: Table, marker: str, since: int) -> list[Identity]:
    """Processes started at `since` (ticks) or later whose environment holds `NAME=value`."""
    return [
        row.identity
        for row in table.values()
        if row.start >= since and marker in environment(row.pid)
    ]


def environment(pid: int) -> list[str]:
    """What `pid` was started with, as NAME=value; empty where it may not be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().decode("utf-8", "replace").split("\0")
    except OSError:
        return []


def named(row: ProcessInfo) -> ProcessInfo:
    """With the command line, or the title a process gave itself, cut to a readable length."""
    try:
        with open(f"/proc/{row.pid}/cmdline", "rb") as file:
            text = " ".join(file.read().decode("utf-8", "replace").replace("\0", " ").split())
    except OSError:
        return row
    if len(text) > _LONGEST_COMMAND:
        text = text[: _LONGEST_COMMAND - 1] + "…"
    return row._replace(command=text or row.command)


def open_pidfd(identity: Identity) -> int | None:
    """A pidfd that is proven to be this very process; None when it is gone."""
    try:
        descriptor = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return None
    if not is_alive(identity):
        os.close(descriptor)
        return None
    return descriptor


def send(processes: Iterable[Identity], number: signal.Signals) -> None:
    """Signal exactly these processes; those that are gone, or not ours to signal, are skipped."""
    for identity in processes:
        descriptor = open_pidfd(identity)
        if descriptor is None:
            continue
        try:
            signal.pidfd_send_signal(descriptor, number)
        except (ProcessLookupError, PermissionError):
            continue
        finally:
            os.close(descriptor)

"""What processes hold that can outlive them: shared memory, listening ports, named sockets."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

SHARED_MEMORY = "/dev/shm"
_LISTENING = "0A"
_TIME_WAIT = "06"


class Port(NamedTuple):
    """A TCP socket bound to a local port. In TIME_WAIT `inode` and `uid` are 0."""

    number: int
    inode: int
    uid: int
    listening: bool
    waiting: bool


def shared_memory() -> set[str]:
    """Names in /dev/shm, those in folders included."""
    names: set[str] = set()
    for folder, _, files in os.walk(SHARED_MEMORY):
        names.update(os.path.relpath(os.path.join(folder, file), SHARED_MEMORY) for file in files)
    return names


def ports() -> list[Port]:
    """All TCP sockets of this network namespace, IPv4 and IPv6."""
    return [
        Port(
            number=int(fields[1].rpartition(":")[2], 16),
            inode=int(fields[9]),
            uid=int(fields[7]),
            listening=fields[3] == _LISTENING,
            waiting=fields[3] == _TIME_WAIT,
        )
        for family in ("tcp", "tcp6")
        for fields in _rows(f"/proc/net/{family}")
    ]


def named_sockets() -> dict[int, str]:
    """Paths of bound Unix sockets by inode; abstract ones die with their process."""
    return {
        int(fields[6]): fields[7]
        for fields in _rows("/proc/net/unix")
        if len(fields) > 7 and fields[7].startswith("/")
    }


def socket_inodes(pid: int) -> set[int]:
    """Inodes of the sockets that `pid` has open."""
    return {
        int(target[len("socket:[") : -1])
        for target in _open_files(pid)
        if target.startswith("socket:[")
    }


def shared_memory_of(pid: int) -> set[str]:
    """Names in /dev/shm that `pid` has open or mapped."""
    return {
        path[len(SHARED_MEMORY) + 1 :]
        for path in (*_open_files(pid), *_mapped_files(pid))
        if path.startswith(SHARED_MEMORY + "/") and not path.endswith(" (deleted)")
    }


def in_use(names: Iterable[str]) -> set[str]:
    """Those of `names` in /dev/shm that any process of the host has open or mapped."""
    wanted = set(names)
    used: set[str] = set()
    if wanted:
        for pid in os.listdir("/proc"):
            if pid.isdecimal():
                used |= shared_memory_of(int(pid)) & wanted
    return used


def _rows(path: str) -> list[list[str]]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [line.split() for line in file.readlines()[1:]]
    except OSError:
        return []


def _open_files(pid: int) -> list[str]:
    folder = f"/proc/{pid}/fd"
    targets = []
    try:
        for name in os.listdir(folder):
            try:
                targets.append(os.readlink(f"{folder}/{name}"))
            except FileNotFoundError:
                continue
    except OSError:
        return targets
    return targets


def _mapped_files(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            data = file.read()
    except OSError:
        return []
    if SHARED_MEMORY.encode() not in data:
        return []
    lines = data.decode("utf-8", "replace").splitlines()
    return ["/" + line.partition("/")[2] for line in lines if "/" in line]

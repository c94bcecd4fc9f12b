"""Sockets: the ports of this host, the named ones, and who has them open."""

from __future__ import annotations

import os
from typing import NamedTuple

_SOCKET = "socket:["
_LISTENING = "0A"
_TIME_WAIT = "06"


class Port(NamedTuple):
    """A TCP socket bound to a local port. In TIME_WAIT `inode` and `uid` are 0."""

    number: int
    inode: int
    uid: int
    listening: bool
    waiting: bool


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
    """Inodes of the sockets that `pid` has open, as far as this user may see."""
    folder = f"/proc/{pid}/fd"
    inodes: set[int] = set()
    try:
        for name in os.listdir(folder):
            try:
                target = os.readlink(f"{folder}/{name}")
            except FileNotFoundError:
                continue
            if target.startswith(_SOCKET):
                inodes.add(int(target[len(_SOCKET) : -1]))
    except OSError:
        return inodes
    return inodes


def _rows(path: str) -> list[list[str]]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [line.split() for line in file.readlines()[1:]]
    except OSError:
        return []

"""What has been seen of owned processes while they lived, for judging what they leave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import holdings, ownership, table


class Sightings:
    """Grows by each look.

    `alive`: identities of each role's living processes at the last look ("": of no role);
    `seen`: at any look.
    `peak_kib`: per role, the most that its processes held together at any look, as anonymous
    and shared pages (files mapped by several processes would be counted several times).
    `shared`, `sockets`, `ports`: names in /dev/shm, paths of Unix sockets and listening TCP
    sockets (inode to port) that owned processes had; names in /dev/shm from before the run
    are left out.
    """

    def __init__(self, shared_before: set[str]) -> None:
        self.shared_before = shared_before
        self.alive: dict[str, list[table.Identity]] = {}
        self.seen: dict[str, set[table.Identity]] = {}
        self.peak_kib: dict[str, int] = {}
        self.shared: set[str] = set()
        self.sockets: set[str] = set()
        self.ports: dict[int, int] = {}

    def look(self, shares: Mapping[str, ownership.Rows]) -> None:
        """`shares` are the living processes of each role."""
        listening = {port.inode: port.number for port in holdings.ports() if port.listening}
        named = holdings.named_sockets()
        unknown = holdings.shared_memory() - self.shared_before - self.shared
        for role, rows in shares.items():
            self.alive[role] = list(rows)
            self.seen.setdefault(role, set()).update(rows)
            self.peak_kib[role] = max(
                self.peak_kib.get(role, 0), sum(_resident_kib(row.pid) for row in rows.values())
            )
            for row in rows.values():
                inodes = holdings.socket_inodes(row.pid)
                self.ports.update((inode, listening[inode]) for inode in inodes & listening.keys())
                self.sockets.update(named[inode] for inode in inodes & named.keys())
                if unknown:
                    self.shared |= holdings.shared_memory_of(row.pid) & unknown

    def as_message(self) -> dict[str, Any]:
        return {
            "alive": self.alive,
            "peak_kib": self.peak_kib,
            "shared": sorted(self.shared),
            "sockets": sorted(self.sockets),
            "ports": list(self.ports.items()),
        }

    def merge(self, message: Mapping[str, Any]) -> None:
        """Take over what another process's sightings say."""
        for role, identities in message["alive"].items():
            self.alive[role] = [table.Identity(*identity) for identity in identities]
            self.seen.setdefault(role, set()).update(self.alive[role])
        for role, kib in message["peak_kib"].items():
            self.peak_kib[role] = max(self.peak_kib.get(role, 0), kib)
        self.shared.update(message["shared"])
        self.sockets.update(message["sockets"])
        self.ports.update(message["ports"])


def _resident_kib(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            lines = [line.split() for line in file if line.startswith((b"RssAnon", b"RssShmem"))]
    except OSError:
        return 0
    return sum(int(fields[1]) for fields in lines)

"""What has been seen of owned processes while they lived, for judging what they leave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import ownership, segments, sockets, table
from .segments import Segment

_LOOKS_AT_A_STRANGER = 3


class Sightings:
    """Grows by each look.

    `alive`: identities of each role's living processes at the last look ("": of no role);
    `seen`: at any look.
    `peak_kib`: per role, the most that its processes held together at any look, as anonymous
    and shared pages (files mapped by several processes would be counted several times).
    `shared`, `sockets`, `ports`: shared memory, paths of Unix sockets and listening TCP sockets
    (inode to port) that owned processes had. `foreign`: shared memory that appeared meanwhile and
    was in other hands. Shared memory from `before` is in neither.
    """

    def __init__(self) -> None:
        self.before = segments.segments()
        self.alive: dict[str, list[table.Identity]] = {}
        self.seen: dict[str, set[table.Identity]] = {}
        self.peak_kib: dict[str, int] = {}
        self.shared: set[Segment] = set()
        self.foreign: set[Segment] = set()
        self.sockets: set[str] = set()
        self.ports: dict[int, int] = {}
        self._looked_at: dict[Segment, int] = {}

    def look(self, shares: Mapping[str, ownership.Rows], *, ports: bool = False) -> None:
        """`shares` are the living processes of each role. Ports are looked at when wanted: the
        kernel takes 5 ms and more to list them, and none outlives the processes that have it."""
        pids = [row.pid for rows in shares.values() for row in rows.values()]
        for role, rows in shares.items():
            self.alive[role] = list(rows)
            self.seen.setdefault(role, set()).update(rows)
            self.peak_kib[role] = max(
                self.peak_kib.get(role, 0), sum(_resident_kib(row.pid) for row in rows.values())
            )
        self._look_at_sockets(pids, ports)
        self._look_at_segments(pids)

    def _look_at_sockets(self, pids: list[int], ports: bool) -> None:
        named = sockets.named_sockets()
        all_ports = sockets.ports() if ports else []
        listening = {port.inode: port.number for port in all_ports if port.listening}
        for pid in pids:
            inodes = sockets.socket_inodes(pid)
            self.ports.update((inode, listening[inode]) for inode in inodes & listening.keys())
            self.sockets.update(named[inode] for inode in inodes & named.keys())

    def unclaimed(self) -> set[Segment]:
        """Shared memory that is new and in nobody's hands, now or at any look."""
        new = segments.segments() - self.before - self.shared - self.foreign
        return new - segments.in_use(new)

    def _look_at_segments(self, pids: list[int]) -> None:
        unknown = segments.segments() - self.before - self.shared - self.foreign
        for pid in pids:
            self.shared |= segments.held_by(pid, unknown)
        for segment in unknown - self.shared:
            self._looked_at[segment] = self._looked_at.get(segment, 0) + 1
        self.foreign |= segments.in_use(
            [s for s in unknown - self.shared if self._looked_at[s] <= _LOOKS_AT_A_STRANGER]
        )

    def as_message(self) -> dict[str, Any]:
        return {
            "alive": self.alive,
            "peak_kib": self.peak_kib,
            "shared": sorted(self.shared),
            "foreign": sorted(self.foreign),
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
        self.shared.update(Segment(*segment) for segment in message["shared"])
        self.foreign.update(Segment(*segment) for segment in message["foreign"])
        self.sockets.update(message["sockets"])
        self.ports.update(message["ports"])


def _resident_kib(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            lines = [line.split() for line in file if line.startswith((b"RssAnon", b"RssShmem"))]
    except OSError:
        return 0
    return sum(int(fields[1]) for fields in lines)

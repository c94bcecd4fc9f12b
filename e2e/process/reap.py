"""What runs of this harness left on this host: finding it, telling of it, ending it.

A run is over when neither its guardian nor its harness lives. What is left of it is found by the
host's list of runs and by the marker in the environment of its processes; only this user's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.process.guardian import ladder, ownership, runs, segments, sweep, table
from e2e.process.guardian.segments import Segment
from e2e.process.guardian.sightings import Sightings

_MARKER = f"{ownership.OWNER_VARIABLE}="


@dataclass(frozen=True)
class Leftover:
    """What is left of one case of a lost run.

    `path` is its run file, whether that is there or not; `entry` is what its guardian wrote there.
    """

    path: Path
    entry: Mapping[str, Any]
    processes: list[table.ProcessInfo]
    ports: list[int]
    shared: list[Segment]
    sockets: list[str]
    private: Path | None

    @property
    def run(self) -> str:
        return self.entry.get("run", self.path.stem)

    @property
    def anything(self) -> bool:
        return bool(self.processes or self.shared or self.sockets or self.private)

    def lines(self) -> list[str]:
        """For people: the run, its age, and everything that is left of it."""
        entry = self.entry
        age = f", began {_age(time.time() - entry['began'])} ago" if "began" in entry else ""
        devices = f", devices {', '.join(entry['devices'])}" if entry.get("devices") else ""
        folder = f", evidence {entry['folder']}" if "folder" in entry else ""
        return [
            f"run {self.run}{age}{devices}{folder}",
            *(f"  {line}" for line in ownership.described(self.processes)),
            *(f"  port {port}" for port in self.ports),
            *(f"  {segment.path}" for segment in self.shared),
            *(f"  {path}" for path in self.sockets),
            *([f"  {self.private}"] if self.private else []),
        ]


def leftovers() -> list[Leftover]:
    """Everything of this user's lost runs that is still there."""
    return [leftover for leftover in _lost() if leftover.anything]


def end(leftover: Leftover, *, term_seconds: float = 10.0, kill_seconds: float = 10.0) -> list[str]:
    """Stop its processes by the ladder and remove its files; returns what survives, for people."""
    known = [process.identity for process in leftover.processes]

    def living() -> list[table.ProcessInfo]:
        return list(_of_run(table.snapshot(), str(leftover.path), known).values())

    climb = ladder.climb(known, living, term_seconds=term_seconds, kill_seconds=kill_seconds)
    segments.remove(leftover.shared)
    sweep.remove_sockets(leftover.sockets)
    if leftover.private:
        sweep.remove_folder(str(leftover.private))
    if not climb.survivors:
        leftover.path.unlink(missing_ok=True)
    return ownership.described(climb.survivors)


def tell_lost_runs() -> list[str]:
    """What became of runs whose harness was killed, for the next run to report; told once.

    A run of which something is left is told of again, until it is reaped.
    """
    told = []
    for leftover in _lost():
        ended = leftover.entry.get("ended")
        what = ended["what"] if ended else "its harness and its guardian were both killed"
        left = "; something of it is left: see `afd-e2e reap`" if leftover.anything else ""
        folder = leftover.entry.get("folder", "unknown")
        told.append(f"run {leftover.run}, evidence {folder}: {what}{left}")
        if not leftover.anything:
            leftover.path.unlink(missing_ok=True)
    return told


def _lost() -> Iterator[Leftover]:
    processes = table.snapshot()
    marked = _marked(processes)
    for path in {*runs.run_files(runs.host_folder(os.environ)), *marked}:
        guarded, entry = runs.read(path)
        mine = marked.get(path, [])
        harness = table.Identity(*entry.get("harness", (0, 0)))
        if guarded or table.is_alive(harness) or (not entry and not mine):
            continue
        if any(_has_guardian(processes, identity) for identity in mine):
            continue
        leaders = [table.Identity(*leader) for leader in entry.get("leaders", ())]
        yield _leftover(path, entry, _of_run(processes, path, [*mine, *leaders]))


def _leftover(path: str, entry: Mapping[str, Any], rows: ownership.Rows) -> Leftover:
    seen = Sightings()
    seen.before = {Segment(*segment) for segment in entry.get("before", ())}
    seen.look({"": rows}, ports=True)
    private = Path(entry["private"]) if "private" in entry else None
    shared = {*seen.shared, *(Segment(*segment) for segment in entry.get("shared", ()))}
    sockets = {*seen.sockets, *entry.get("sockets", ())}
    return Leftover(
        path=Path(path),
        entry=entry,
        processes=list(rows.values()),
        ports=sorted(set(seen.ports.values())),
        shared=sorted(shared & segments.segments()) if "before" in entry else [],
        sockets=sorted(name for name in sockets if Path(name).exists()),
        private=private if private and private.is_dir() else None,
    )


def _of_run(processes: table.Table, path: str, known: list[table.Identity]) -> ownership.Rows:
    rows = ownership.owned(processes, guardian=None, marker=path, since=0, known=known)
    return {identity: row for identity, row in rows.items() if _is_mine(row.pid)}


def _marked(processes: table.Table) -> dict[str, list[table.Identity]]:
    """This user's processes that carry a run's marker, by the run file that it names."""
    found: dict[str, list[table.Identity]] = {}
    for row in processes.values():
        for variable in table.environment(row.pid):
            if variable.startswith(_MARKER) and _is_mine(row.pid):
                found.setdefault(variable[len(_MARKER) :], []).append(row.identity)
    return found


def _is_mine(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}").stat().st_uid == os.geteuid()
    except FileNotFoundError:
        return False


def _has_guardian(processes: table.Table, identity: table.Identity) -> bool:
    """Whether a guardian is among the ancestors: the run lives, though its file is gone."""
    row = processes.get(identity.pid)
    while row is not None:
        if ownership.guardian_of(row.pid):
            return True
        row = processes.get(row.parent)
    return False


def _age(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = ((days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s"))
    return " ".join([f"{value} {unit}" for value, unit in parts if value][:2]) or "0 s"

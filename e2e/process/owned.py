"""One launched role."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from e2e.process import signals
from e2e.process.guardian import ladder, table
from e2e.process.log import last_lines
from e2e.process.stacks import stacks_of

if TYPE_CHECKING:
    from e2e.process.owner import Owner


_STOPPING_SECONDS = 2.0
_POLL_SECONDS = 0.01


@dataclass(frozen=True)
class Command:
    """What a role runs as. `env` is its complete environment; `log` gets all its output."""

    role: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    log: Path


@dataclass(frozen=True)
class StopReport:
    """How a role was stopped.

    `killed`: processes that SIGTERM did not end in time, and `outlived`: that ran on after their
    leader was gone and had to be ended; both are findings. `survivors`: processes that not even
    SIGKILL has ended; their devices belong into quarantine.
    """

    exit_code: int | None
    seconds: float
    killed: list[table.ProcessInfo]
    outlived: list[table.ProcessInfo]
    survivors: list[table.ProcessInfo]

    @property
    def forced_kill(self) -> bool:
        return bool(self.killed)


class OwnedProcess:
    """A role's leader and everything that descends from it."""

    def __init__(self, owner: Owner, role: str, leader: table.Identity, log: Path) -> None:
        self.role = role
        self.pid = leader.pid
        self.leader = leader
        self.log = log
        self._owner = owner

    def exit_code(self) -> int | None:
        """The leader's exit code, negative for a signal; None while it runs. Never waits."""
        return self._owner.exit_code(self.leader)

    def last_lines(self, count: int = 20) -> list[str]:
        return last_lines(self.log, count)

    def living(self) -> list[table.ProcessInfo]:
        """The leader and whatever else of this role is alive."""
        return self._owner.living_of(self.role)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """All processes of the role held still by SIGSTOP; on exit they run on."""
        processes = [row.identity for row in self.living()]
        try:
            table.send(processes, signal.SIGSTOP)
            deadline = time.monotonic() + _STOPPING_SECONDS
            while not all(map(table.is_stopped, processes)) and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
            yield
        finally:
            table.send(processes, signal.SIGCONT)

    def stop(self, term_seconds: float, kill_seconds: float) -> StopReport:
        """SIGTERM, up to `term_seconds`, SIGKILL, up to `kill_seconds`; see `guardian.ladder`."""
        with signals.current().deferred():
            self._owner.look()
            climb = ladder.climb(
                [self.leader],
                self.living,
                term_seconds=term_seconds,
                kill_seconds=kill_seconds,
                hurried=self._owner.hurried,
            )
            report = StopReport(
                exit_code=self._owner.final_exit_code(self.leader),
                seconds=climb.seconds,
                killed=climb.killed,
                outlived=climb.outlived,
                survivors=climb.survivors,
            )
            self._owner.stopped[self.role] = report
            return report

    def stacks(self, seconds: float) -> list[str]:
        """What every process of the role is doing now; for hangs."""
        return stacks_of(self.living(), seconds)

    def peak_memory_mib(self) -> float:
        """The most that the role's processes were seen to hold together."""
        return self._owner.sightings.peak_kib.get(self.role, 0) / 1024

    def pids_seen(self) -> list[int]:
        """Every process that was seen to belong to the role."""
        return sorted({pid for pid, _ in self._owner.sightings.seen.get(self.role, ())})

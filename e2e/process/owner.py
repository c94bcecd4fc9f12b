"""The harness's side of ownership: one guardian, and all that a case launches through it."""

from __future__ import annotations

import os
import re
import secrets
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from e2e.errors import HarnessError, ServerFailed
from e2e.process import signals
from e2e.process.guardian import kernel, ladder, ownership, runs, segments, sweep, table
from e2e.process.link import GuardianLink
from e2e.process.owned import Command, OwnedProcess, StopReport

if TYPE_CHECKING:
    from e2e.leases import Held

_LOOK_SECONDS = 2.0
_NEWS_SECONDS = 5.0
_LONGEST_FOLDER = 40
_UNFIT = re.compile(r"[^A-Za-z0-9._-]")
_MENDS = {
    "log": "the log's folder must exist and be writable",
    "folder": "the working folder must exist",
    "program": "is the server installed, and executable?",
}


class Owner:
    """Owns every process of one case, from before it exists until it is provably gone.

    The processes are children of a guardian that outlives this process. While the owner is
    entered, this process adopts orphans too, so that nothing escapes if the guardian is the one
    to die. On exit whatever is left is killed.

    `private` is a folder with a short path, for sockets and temporary files of the roles; it
    goes with the owner. The guardian holds the `leases` too, until it is done, whatever happens
    to this process. `stop_seconds` and `kill_seconds` are the guardian's own deadlines when the
    harness is lost.
    """

    def __init__(
        self,
        run_id: str,
        folder: Path,
        leases: Held | None = None,
        *,
        stop_seconds: float = 10.0,
        kill_seconds: float = 10.0,
    ) -> None:
        self.run_id = run_id
        self.folder = folder
        self.marker = runs.run_file(
            runs.host_folder(os.environ), f"{_UNFIT.sub('-', run_id)}.{secrets.token_hex(4)}"
        )
        self.hurried = signals.current().hurried
        self.processes: dict[str, OwnedProcess] = {}
        self.stopped: dict[str, StopReport] = {}
        self._leases = leases
        self._stop_seconds = stop_seconds
        self._kill_seconds = kill_seconds
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with signals.current().deferred(), ExitStack() as stack:
            stack.callback(kernel.adopt_orphans, kernel.adopts_orphans())
            kernel.adopt_orphans(True)
            settings = {
                "devices": self._leases.devices if self._leases else (),
                "ports": self._leases.ports if self._leases else (),
                "marker": self.marker,
                "run": self.run_id,
                "harness": table.this_process(),
                "folder": str(self.folder.resolve()),
                "temporary": _short_temporary_folder(),
                "began": time.time(),
                "stop_seconds": self._stop_seconds,
                "kill_seconds": self._kill_seconds,
            }
            self._guardian = GuardianLink(
                settings,
                self._leases.descriptors if self._leases else (),
                self.folder / "guardian.log",
            )
            stack.callback(self._close)
            self.sightings = self._guardian.sightings
            self.private = self._guardian.private
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        with signals.current().deferred():
            self._stack.close()

    def spawn(self, command: Command) -> OwnedProcess:
        """Launch a role. Raises ServerFailed when it cannot be started at all."""
        with signals.current().deferred():
            answer = self._guardian.ask(
                {
                    "do": "spawn",
                    "role": command.role,
                    "argv": command.argv,
                    "env": dict(command.env),
                    "cwd": str(command.cwd.resolve()),
                    "log": str(command.log.resolve()),
                }
            )
            if answer["event"] == "failed":
                raise _launch_failure(command, answer["stage"], answer["errno"])
            leader = table.Identity(answer["pid"], answer["start"])
            process = OwnedProcess(self, command.role, leader, command.log)
            self.processes[command.role] = process
            return process

    @property
    def guardian_problem(self) -> str | None:
        """How the guardian ended, if it did without being told to, or that it is stuck."""
        return self._guardian.died or self._guardian.stuck

    def check(self) -> None:
        """Raises HarnessError when the guardian is gone or stuck: without it nothing may go on;
        and SignalReceived when a signal has come and may end what polls this."""
        signals.current().check()
        if problem := self.guardian_problem:
            raise HarnessError(problem, mend="the kernel's log may tell who or what did that")

    def living(self) -> list[table.ProcessInfo]:
        """Everything alive that is provably this owner's; zombies are not alive."""
        return self._settled(self._owned)

    def living_of(self, role: str) -> list[table.ProcessInfo]:
        """Everything alive of one role; of no role: what can be told to none."""
        return self._settled(lambda processes: self._shares(processes).get(role, {}))

    def _settled(self, find: Callable[[table.Table], ownership.Rows]) -> list[table.ProcessInfo]:
        self._reap_adopted()
        adopter = os.getpid() if self._guardian.died else self._guardian.identity.pid
        return list(ownership.settled(find, adopter).values())

    def look(self) -> None:
        """Take in what the living processes hold, for the proofs after their end."""
        if self._guardian.died:
            self.sightings.look(self._shares(table.snapshot()), ports=True)
        else:
            self._guardian.look(_LOOK_SECONDS)

    def exit_code(self, leader: table.Identity) -> int | None:
        """Of a role's leader, negative for a signal; None while it runs."""
        self._guardian.collect()
        if leader not in self._guardian.exit_codes and self._guardian.died:
            self._reap_adopted()
        return self._guardian.exit_codes.get(leader)

    def final_exit_code(self, leader: table.Identity) -> int | None:
        """As `exit_code`, waiting a moment for the news of an end; None when none comes."""
        deadline = time.monotonic() + _NEWS_SECONDS
        while (code := self.exit_code(leader)) is None and not table.is_alive(leader):
            if time.monotonic() >= deadline:
                break
            self._guardian.collect(ladder.POLL_SECONDS)
        return code

    def end_rest(self, term_seconds: float) -> ladder.Climb:
        """End whatever is alive, by the ladder; for what the stops of the roles have missed."""
        return ladder.climb(
            (),
            self.living,
            term_seconds=term_seconds,
            kill_seconds=self._kill_seconds,
            hurried=self.hurried,
            nearest=self._nearest,
        )

    def _nearest(self) -> list[table.Identity]:
        """Children of the guardian, all of which are owned; without one there is no such list."""
        return [] if self._guardian.died else table.alive_children(self._guardian.identity.pid)

    def _shares(self, processes: table.Table) -> dict[str, ownership.Rows]:
        leaders = {role: process.leader for role, process in self.processes.items()}
        return ownership.by_role(processes, self._owned(processes), leaders, self.sightings.alive)

    def _owned(self, processes: table.Table) -> ownership.Rows:
        known = [identity for share in self.sightings.alive.values() for identity in share]
        return ownership.owned(
            processes,
            guardian=None if self._guardian.died else self._guardian.identity,
            marker=self.marker,
            since=self._guardian.identity.start,
            known=[*known, *(process.leader for process in self.processes.values())],
        )

    def _reap_adopted(self) -> None:
        """Without the guardian its children are this process's, zombies included."""
        if not self._guardian.died:
            return
        leaders = {process.leader for process in self.processes.values()}
        for identity in leaders.union(*self.sightings.seen.values()):
            if table.is_zombie_child(identity):
                with suppress(ChildProcessError):
                    _, status = os.waitpid(identity.pid, os.WNOHANG)
                    self._guardian.exit_codes[identity] = os.waitstatus_to_exitcode(status)

    def _close(self) -> None:
        """Its guardian ends what is left and tidies up; without one this process does."""
        if not self._guardian.end(self._kill_seconds + _LOOK_SECONDS):
            survivors = self.end_rest(0.0).survivors
            segments.remove(self.sightings.shared)
            sweep.remove_sockets(self.sightings.sockets)
            sweep.remove_folder(str(self.private))
            if not survivors:
                Path(self.marker).unlink(missing_ok=True)


def _launch_failure(command: Command, stage: str, number: int) -> ServerFailed:
    what = {"log": command.log, "folder": command.cwd, "program": command.argv[0]}[stage]
    return ServerFailed(
        f"cannot launch: {stage} {what}: {os.strerror(number)}",
        role=command.role,
        mend=_MENDS[stage],
    )


def _short_temporary_folder() -> str:
    """The path of a Unix socket has to fit into 107 bytes, with a name chosen by the server."""
    folder = tempfile.gettempdir()
    return folder if len(os.fsencode(folder)) <= _LONGEST_FOLDER else "/tmp"

"""The guardian: parent of all that a case launches, and the one who outlives the harness.

It starts roles on request, adopts every orphan among their descendants, reports what it sees
of them, and reaps. When the harness ends without a word (SIGKILL, out of memory, a closed
terminal) it stops all of it by the same ladder, removes what the run left in files, and writes
down what it did.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from typing import Any

from . import kernel, ladder, ownership, runs, segments, sweep, table
from .channel import Channel, Message
from .launch import LaunchError, launch
from .sightings import Sightings

SHORTEST_LOOK_SECONDS = 0.02
LONGEST_LOOK_SECONDS = 2.0
REPORT = "guardian.json"


class Guardian:
    """`settings` are those that `e2e.process.owner` sends."""

    def __init__(self, channel: Channel, settings: Message) -> None:
        self._channel = channel
        self._settings = settings
        self._identity = table.this_process()
        self._sightings = Sightings()
        self._leaders: dict[str, table.Identity] = {}
        self._outbox: list[Message] = []
        self._looked = 0.0
        self._interval = SHORTEST_LOOK_SECONDS
        self._created = kernel.watch(segments.FOLDER)
        self._run = runs.RunFile(settings["marker"])
        self._private = os.path.join(settings["temporary"], f"afd-e2e-{os.urandom(6).hex()}")
        self._note(None)
        os.mkdir(self._private, 0o700)
        self._outbox.append(
            {"event": "ready", "start": self._identity.start, "private": self._private}
        )

    def serve(self, harness: int, wake: int) -> None:
        """Until the harness says so, or is gone. `harness` is its pidfd; `wake` becomes readable
        when a child ends."""
        poller = select.poll()
        news = [wake] if self._created is None else [wake, self._created]
        for descriptor in (self._channel.fileno(), harness, *news):
            poller.register(descriptor, select.POLLIN)
        while not self._channel.closed:
            self._reap()
            self._flush()
            ready = {descriptor for descriptor, _ in poller.poll(self._pause() * 1000)}
            for descriptor in ready.intersection(news):
                os.read(descriptor, 1 << 16)
            if self._created in ready:
                self._interval = SHORTEST_LOOK_SECONDS
            if self._channel.fileno() in ready:
                for message in self._channel.receive():
                    if message["do"] == "end":
                        self._end()
                        return
                    self._obey(message)
            elif harness in ready:
                break
            if self._pause() <= 0:
                self._look()
        self._harness_lost()

    def _pause(self) -> float:
        """Seconds until the next look. Soon after a launch, and after something appeared in
        /dev/shm, whose owner may not live long; then ever more seldom."""
        return max(0.0, self._looked + self._interval - time.monotonic())

    def _obey(self, message: Message) -> None:
        if message["do"] == "look":
            self._look(ports=True)
            return
        role = message["role"]
        environment = {
            **message["env"],
            ownership.OWNER_VARIABLE: self._settings["marker"],
            ownership.ROLE_VARIABLE: role,
        }
        try:
            pid = launch(message["argv"], environment, message["cwd"], message["log"])
        except LaunchError as error:
            self._outbox.append({"event": "failed", "stage": error.stage, "errno": error.number})
            return
        leader = table.identity_of_child(pid)
        self._leaders[role] = leader
        self._outbox.append({"event": "spawned", **leader._asdict()})
        self._interval = SHORTEST_LOOK_SECONDS
        self._note(None)

    def _reap(self) -> None:
        """Collect what has ended; the harness is told of the roles' own exit codes."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                for leader in self._leaders.values():
                    if leader.pid == pid:
                        code = os.waitstatus_to_exitcode(status)
                        self._outbox.append({"event": "exit", **leader._asdict(), "code": code})

    def _flush(self) -> None:
        """Send what waits, as far as the harness reads: a stopped harness must not stop this."""
        poller = select.poll()
        poller.register(self._channel.fileno(), select.POLLOUT)
        while self._outbox and poller.poll(0):
            with contextlib.suppress(OSError):
                self._channel.send(self._outbox[0])
            self._outbox.pop(0)

    def _owned(self, processes: table.Table) -> ownership.Rows:
        return ownership.owned(
            processes,
            guardian=self._identity,
            marker=self._settings["marker"],
            since=self._identity.start,
            known=(),
        )

    def _look(self, *, ports: bool = False) -> None:
        """What cannot be read now, for want of memory or descriptors, is left to the next look."""
        held = len(self._sightings.shared) + len(self._sightings.sockets)
        with contextlib.suppress(OSError):
            processes = table.snapshot()
            shares = ownership.by_role(
                processes, self._owned(processes), self._leaders, self._sightings.alive
            )
            self._sightings.look(shares, ports=ports)
        self._looked = time.monotonic()
        self._interval = min(2 * self._interval, LONGEST_LOOK_SECONDS)
        waiting = [message for message in self._outbox if message["event"] != "sighted"]
        self._outbox = [*waiting, {"event": "sighted", **self._sightings.as_message()}]
        if len(self._sightings.shared) + len(self._sightings.sockets) > held:
            self._note(None)

    def _living(self) -> list[table.ProcessInfo]:
        self._reap()
        return list(ownership.settled(self._owned, os.getpid()).values())

    def _end(self) -> None:
        """The harness has stopped its roles; whatever is left now has no claim to time."""
        done = self._finish("the run ended", 0.0)
        self._outbox.append({"event": "ended"})
        self._flush()
        if done["survivors"]:
            self._note(done)
        else:
            self._run.remove()

    def _harness_lost(self) -> None:
        self._look()
        harness = self._settings["harness"][0]
        done = self._finish(
            f"the harness (pid {harness}) ended without a word; its guardian stopped what it had "
            "launched",
            self._settings["stop_seconds"],
        )
        _write(os.path.join(self._settings["folder"], REPORT), done)
        self._note(done)

    def _finish(self, what: str, term_seconds: float) -> dict[str, Any]:
        found = ownership.described(self._living())
        climb = ladder.climb(
            list(self._leaders.values()),
            self._living,
            term_seconds=term_seconds,
            kill_seconds=self._settings["kill_seconds"],
            nearest=lambda: table.alive_children(os.getpid()),
        )
        self._reap()
        return {
            "run": self._settings["run"],
            "what": what,
            "when": time.time(),
            "seconds": round(climb.seconds, 3),
            "found": found,
            "outlived": ownership.described(climb.outlived),
            "killed": ownership.described(climb.killed),
            "survivors": ownership.described(climb.survivors),
            "removed": segments.remove(self._sightings.shared)
            + sweep.remove_sockets(self._sightings.sockets)
            + sweep.remove_folder(self._private),
            "unclaimed": sorted(segment.path for segment in self._sightings.unclaimed()),
        }

    def _note(self, ended: dict[str, Any] | None) -> None:
        """What `afd-e2e reap` and the next run need to know of this one."""
        self._run.write(
            {
                **self._settings,
                "private": self._private,
                "leaders": list(self._leaders.values()),
                "before": sorted(self._sightings.before),
                "shared": sorted(self._sightings.shared),
                "sockets": sorted(self._sightings.sockets),
                "ended": ended,
            }
        )


def main(descriptor: int) -> None:
    """`descriptor` is this end of the channel; the first message on it is the settings."""
    os.set_inheritable(descriptor, False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    kernel.adopt_orphans(True)
    channel = Channel(socket.socket(fileno=descriptor))
    settings = _first(channel)
    if settings is None:
        return
    for kept in settings["keep"]:
        os.set_inheritable(kept, False)
    harness = os.pidfd_open(os.getppid())
    if os.getppid() != settings["harness"][0]:
        return
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    Guardian(channel, settings).serve(harness, reading)


def _first(channel: Channel) -> Message | None:
    while not channel.closed:
        if messages := channel.receive(60.0):
            return messages[0]
    return None


def _write(path: str, content: dict[str, Any]) -> None:
    """Whole or not at all; a folder that cannot be written must not stop the guardian."""
    partial = f"{path}.partial"
    with contextlib.suppress(OSError):
        with open(partial, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=2)
            file.write("\n")
        os.replace(partial, path)

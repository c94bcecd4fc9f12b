"""The harness's end of its guardian: starting it, asking it, noticing its death."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from e2e.errors import HarnessError
from e2e.process.guardian import ownership, table
from e2e.process.guardian.channel import Channel, Message
from e2e.process.guardian.sightings import Sightings
from e2e.process.log import last_lines

_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); from guardian.main import main; "
    "main(int(sys.argv[2]))"
)
_ANSWER_SECONDS = 30.0
_ENDING_SECONDS = 5.0
_SILENCE_SECONDS = 30.0


class GuardianLink:
    """A running guardian, in a session of its own with no environment but a mark of its own.

    What it reports is taken in whenever it is asked for anything. `exit_codes` are those of the
    roles' leaders that have ended. Safe to use from several threads.
    """

    def __init__(self, settings: Message, keep: Sequence[int], stderr: Path) -> None:
        """Raises HarnessError when it does not start."""
        self.exit_codes: dict[table.Identity, int] = {}
        self.sightings = Sightings()
        self._stderr = stderr
        self._lock = threading.RLock()
        self._looks = 0
        self._heard = time.monotonic()
        self._answers: list[Message] = []
        ours, theirs = socket.socketpair()
        self._channel = Channel(ours)
        with theirs, _opened(stderr) as errors:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    *("-I", "-S", "-c", _BOOT),
                    str(Path(__file__).parent),
                    str(theirs.fileno()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={ownership.GUARDIAN_VARIABLE: settings["marker"]},
                cwd="/",
                pass_fds=(theirs.fileno(), *keep),
                start_new_session=True,
            )
        try:
            ready = self.ask({**settings, "keep": list(keep)})
        except BaseException:
            self.end(0.0)
            raise
        self.identity = table.Identity(self._process.pid, ready["start"])
        self.private = Path(ready["private"])

    @property
    def died(self) -> str | None:
        """How it ended, if it did without being told to."""
        self.collect()
        code = self._process.poll()
        if code is None and not self._channel.closed:
            return None
        how = "its connection is closed" if code is None else f"exit code {code}"
        if code is not None and code < 0:
            how = f"signal {-code}"
        return f"the guardian (pid {self._process.pid}) ended by itself: {how}"

    @property
    def stuck(self) -> str | None:
        """That it has not said anything for long, though it does so every few seconds."""
        self.collect()
        silent = time.monotonic() - self._heard
        if silent < _SILENCE_SECONDS:
            return None
        return f"the guardian (pid {self._process.pid}) has been silent for {silent:.0f} s"

    def ask(self, message: Message, seconds: float = _ANSWER_SECONDS) -> Message:
        """The guardian's answer; raises HarnessError when there is none in time."""
        with self._lock:
            with contextlib.suppress(OSError):
                self._channel.send(message)
            deadline = time.monotonic() + seconds
            while not self._answers:
                left = deadline - time.monotonic()
                if self._channel.closed or left <= 0:
                    raise HarnessError(
                        f"the guardian (pid {self._process.pid}) gives no answer",
                        log=self._stderr,
                        lines=last_lines(self._stderr),
                        mend="its own log says why, if it was not killed",
                    )
                self.collect(left)
            return self._answers.pop()

    def look(self, seconds: float) -> None:
        """Have the sightings brought up to date now; what is not seen in time is left out."""
        with self._lock, contextlib.suppress(OSError):
            looks, deadline = self._looks, time.monotonic() + seconds
            self._channel.send({"do": "look"})
            while self._looks == looks and not self._channel.closed:
                if (left := deadline - time.monotonic()) <= 0:
                    return
                self.collect(left)

    def collect(self, seconds: float = 0.0) -> None:
        """Take in what the guardian has said, waiting up to `seconds` for the first of it."""
        with self._lock:
            if self._channel.closed:
                return
            for message in self._channel.receive(seconds):
                self._heard = time.monotonic()
                if message["event"] == "exit":
                    leader = table.Identity(message["pid"], message["start"])
                    self.exit_codes[leader] = message["code"]
                elif message["event"] == "sighted":
                    self.sightings.merge(message)
                    self._looks += 1
                else:
                    self._answers.append(message)

    def end(self, seconds: float) -> bool:
        """Have it kill what is left, tidy up and go: whether it did within `seconds`.

        One that does not is killed.
        """
        with self._lock:
            done = False
            with contextlib.suppress(HarnessError):
                done = self.ask({"do": "end"}, seconds)["event"] == "ended"
            self._channel.close()
            try:
                self._process.wait(_ENDING_SECONDS if done else 0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if self._stderr.exists() and self._stderr.stat().st_size == 0:
                self._stderr.unlink()
            return done


def _opened(log: Path) -> BinaryIO:
    try:
        return log.open("ab")
    except OSError as error:
        raise HarnessError(
            f"the guardian's log {log} cannot be written: {error.strerror}",
            mend="free space there, or choose another folder with --evidence",
        ) from error

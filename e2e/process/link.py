"""The harness's end of its guardian: starting it, asking it, noticing its death."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from e2e.errors import HarnessError
from e2e.process.guardian import holdings, table
from e2e.process.guardian.channel import Channel, Message
from e2e.process.guardian.sightings import Sightings

_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); from guardian.main import main; "
    "main(int(sys.argv[2]))"
)
_ANSWER_SECONDS = 30.0
_ENDING_SECONDS = 5.0


class Guardian:
    """A running guardian. What it reports is collected here whenever it is asked for anything.

    `exit_codes`: of roles that ended, by pid. Safe to use from several threads.
    """

    def __init__(self, settings: Message, keep: Sequence[int], stderr: Path) -> None:
        """Raises HarnessError when it does not start."""
        self.exit_codes: dict[int, int] = {}
        self.sightings = Sightings(holdings.shared_memory())
        self._lock = threading.RLock()
        self._looks = 0
        self._answers: list[Message] = []
        ours, theirs = socket.socketpair()
        with theirs, stderr.open("ab") as errors:
            os.set_inheritable(theirs.fileno(), True)
            self._process = subprocess.Popen(
                self._argv(theirs.fileno(), settings["owner"]),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={},
                cwd="/",
                pass_fds=(theirs.fileno(), *keep),
                start_new_session=True,
            )
        self._channel = Channel(ours)
        self._stderr = stderr
        ready = self.ask({**settings, "keep": list(keep)})
        self.identity = table.Identity(self._process.pid, ready["start"])
        self.private = Path(ready["private"])

    @staticmethod
    def _argv(descriptor: int, owner: str) -> list[str]:
        folder = str(Path(__file__).parent)
        return [sys.executable, "-I", "-S", "-c", _BOOT, folder, str(descriptor), owner]

    @property
    def died(self) -> str | None:
        """How it ended, if it did without being told to."""
        self.collect()
        code = self._process.poll()
        if code is None and not self._channel.closed:
            return None
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return f"the guardian (pid {self._process.pid}) ended by itself: {how}"

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
                        mend=f"see {self._stderr}",
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
                if message["event"] == "exit":
                    self.exit_codes[message["pid"]] = message["code"]
                elif message["event"] == "sighted":
                    self.sightings.merge(message)
                    self._looks += 1
                else:
                    self._answers.append(message)

    def end(self, seconds: float) -> None:
        """Have it kill what is left, tidy up and go; SIGKILL it when it does not in time."""
        with self._lock:
            with contextlib.suppress(HarnessError):
                self.ask({"do": "end"}, seconds)
            self._channel.close()
            try:
                self._process.wait(_ENDING_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if self._stderr.exists() and self._stderr.stat().st_size == 0:
                self._stderr.unlink()

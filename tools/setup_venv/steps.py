"""One step of the set-up: a command with a title, its output in the log, a sign of life."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_SIGN_OF_LIFE_SECONDS = 10.0
_LINE = 100
_DOING = 60
_ACTIVITIES = ("Collecting", "Downloading", "Building", "Installing", "Preparing")
# These would make pip or Python act outside the environment, or on other modules than its own.
_MISLEADING = (
    "PIP_PREFIX", "PIP_ROOT", "PIP_TARGET", "PIP_USER", "PYTHONHOME", "PYTHONPATH",
)  # fmt: skip


class StepFailed(Exception):
    """A command ended with another code than 0; `lines` are its last ones."""

    def __init__(self, code: int, lines: Sequence[str]) -> None:
        super().__init__(f"exit code {code}")
        self.code = code
        self.lines = tuple(lines)


def say(text: str) -> None:
    print(text, flush=True)


@dataclass(frozen=True)
class Steps:
    """Where commands run and what they share.

    `lock` is the descriptor of the set-up's lock. Commands inherit it, so that one which outlives
    a killed set-up keeps the next set-up waiting instead of writing into its environment.
    """

    cwd: Path
    log: Path
    lock: int

    def run(self, title: str, argv: Sequence[str]) -> None:
        """Run a command to its end. Raises StepFailed; kills the command when interrupted."""
        say(f"  {title} ...")
        begin = time.monotonic()
        with self.log.open("ab") as output:
            output.write(f"\n$ {' '.join(argv)}\n".encode())
            output.flush()
            start = output.tell()
            process = subprocess.Popen(
                argv,
                cwd=self.cwd,
                env=environment(os.environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(self.lock,),
                process_group=0,
            )
        try:
            while (code := _wait(process)) is None:
                doing = activity(lines_of(self.log, start))
                say(f"    {time.monotonic() - begin:4.0f} s  {doing}")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if code != 0:
            raise StepFailed(code, lines_of(self.log, start)[-20:])
        say(f"    {time.monotonic() - begin:4.0f} s  done")


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The inherited environment, pip's configuration included, without what misleads."""
    kept = {name: value for name, value in inherited.items() if name not in _MISLEADING}
    return kept | {"PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def lines_of(log: Path, start: int) -> list[str]:
    """The lines that are not empty after offset `start`; long ones are cut."""
    with log.open("rb") as file:
        file.seek(start)
        lines = file.read().decode(errors="replace").splitlines()
    return [line.rstrip()[:_LINE] for line in lines if line.strip()]


def activity(lines: Sequence[str]) -> str:
    """What pip does now: the last of its lines that says so."""
    doing = (line.strip() for line in reversed(lines) if line.strip().startswith(_ACTIVITIES))
    return next(doing, "")[:_DOING]


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(_SIGN_OF_LIFE_SECONDS)
    except subprocess.TimeoutExpired:
        return None

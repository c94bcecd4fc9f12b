"""Starting one role: fork, exec, and the errors in between."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping, Sequence

from . import kernel


class LaunchError(Exception):
    """`stage` is what could not be done: log, folder or program."""

    def __init__(self, stage: str, number: int) -> None:
        super().__init__(stage, number)
        self.stage = stage
        self.number = number


def launch(argv: Sequence[str], environment: Mapping[str, str], folder: str, log: str) -> int:
    """The pid of a new process in a session of its own, its output going straight to `log`.

    Returns once the program runs. If this process dies, the kernel sends it SIGTERM.
    Raises LaunchError.
    """
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise LaunchError("log", error.errno or 0) from error
    failure, report = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(argv, environment, folder, output, report, parent)
    os.close(output)
    os.close(report)
    with open(failure, "rb") as pipe:
        text = pipe.read().decode()
    if text:
        os.waitpid(pid, 0)
        stage, _, number = text.partition(" ")
        raise LaunchError(stage, int(number))
    return pid


def _become(
    argv: Sequence[str],
    environment: Mapping[str, str],
    folder: str,
    output: int,
    report: int,
    parent: int,
) -> None:
    """Turn the forked process into the role; never returns."""
    stage = "program"
    try:
        os.setsid()
        kernel.die_with_parent(signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(127)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        stage = "folder"
        os.chdir(folder)
        stage = "program"
        os.execvpe(argv[0], list(argv), dict(environment))
    except OSError as error:
        os.write(report, f"{stage} {error.errno}".encode())
    finally:
        os._exit(127)

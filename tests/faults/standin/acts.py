"""Doing what a fault says. Everything here runs in the stand-in's process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from faults import Fault

if TYPE_CHECKING:
    from serve import StandIn

_SLEEP = "import time; time.sleep(600)"
_STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + _SLEEP
_KEEP_PORT = "import sys; print('keeps the port', flush=True); " + _SLEEP


def act(fault: Fault, standin: StandIn) -> None:
    """Faults of requests are done by the server itself."""
    _ACTS[fault.what](fault, standin)


def start_python(code: str, title: str, **options: object) -> subprocess.Popen[bytes]:
    """A Python process that shows `title` and nothing else as its command line."""
    process = subprocess.Popen([title], executable=sys.executable, stdin=subprocess.PIPE, **options)  # type: ignore[call-overload]
    assert process.stdin is not None
    process.stdin.write(code.encode())
    process.stdin.close()
    return process


def _exit(fault: Fault, standin: StandIn) -> None:
    standin.end_workers()
    print(fault.text, flush=True)
    os._exit(fault.code)


def _kill(fault: Fault, standin: StandIn) -> None:
    os.kill(os.getpid(), fault.signal)
    time.sleep(60)


def _kill_engine(fault: Fault, standin: StandIn) -> None:
    for worker in standin.workers:
        worker.kill()
        worker.wait()


def _hang(fault: Fault, standin: StandIn) -> None:
    while fault.stubborn or fault.when == "stop" or not standin.stopping.is_set():
        time.sleep(0.1)


def _freeze(fault: Fault, standin: StandIn) -> None:
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)  # before this thread goes on


def _daemon(fault: Fault, standin: StandIn) -> None:
    """Forks twice, as daemons do, so that its parent is gone when this returns."""
    if (pid := os.fork()) == 0:
        code = _STUBBORN if fault.stubborn else _SLEEP
        start_python(code, fault.name, env={}, cwd="/", start_new_session=True)
        os._exit(0)
    os.waitpid(pid, 0)


def _child(fault: Fault, standin: StandIn) -> None:
    standin.others.append(start_python(_STUBBORN if fault.stubborn else _SLEEP, "VLLM::Straggler"))


def _zombie(fault: Fault, standin: StandIn) -> None:
    if os.fork() == 0:
        os._exit(0)


def _shared_memory(fault: Fault, standin: StandIn) -> None:
    path = Path("/dev/shm", fault.name)
    path.write_bytes(bytes(4096))
    if fault.held:
        standin.held.append(path.open("rb"))


def _socket(fault: Fault, standin: StandIn) -> None:
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(fault.path)
    standin.held.append(bound)


def _keep_port(fault: Fault, standin: StandIn) -> None:
    descriptor = standin.listener.fileno()
    process = start_python(_KEEP_PORT, "VLLM::PortKeeper", pass_fds=[descriptor])
    standin.others.append(process)


def _flood(fault: Fault, standin: StandIn) -> None:
    line = b"x" * 99 + (b"\n" if fault.newlines else b"x")
    block = line * 10_000
    for _ in range(max(1, fault.size // len(block))):
        sys.stdout.buffer.write(block)
    sys.stdout.flush()


def _garbage(fault: Fault, standin: StandIn) -> None:
    sys.stdout.buffer.write(b"\xff\xfe\x00 half \xc3\n\x1b[31mred\x1b[0m \x07bell\n")
    sys.stdout.flush()


def _tell_secrets(fault: Fault, standin: StandIn) -> None:
    _exit(replace(fault, text=f"{os.environ['VLLM_API_KEY']} {os.environ['HF_TOKEN']}"), standin)


def _nothing(fault: Fault, standin: StandIn) -> None:
    """For what the server itself looks up."""


_ACTS: dict[str, Callable[[Fault, StandIn], None]] = {
    "exit": _exit,
    "kill": _kill,
    "kill_engine": _kill_engine,
    "hang": _hang,
    "freeze": _freeze,
    "daemon": _daemon,
    "child": _child,
    "zombie": _zombie,
    "shared_memory": _shared_memory,
    "socket": _socket,
    "keep_port": _keep_port,
    "flood": _flood,
    "garbage": _garbage,
    "tell_secrets": _tell_secrets,
    "late": _nothing,
    "other_mode": _nothing,
    "no_link": _nothing,
    "bypass": _nothing,
}

"""What fault tests share: a stand-in's command, its plan, a free port, waiting for a condition."""

from __future__ import annotations

import http.client
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from e2e.plan import CasePlan
from e2e.process import Command, OwnedProcess
from e2e.profile.model import TimeLimits
from tests.faults.standin.faults import Orders
from tests.stubs.plans import case_plan, role_plan

STANDIN = Path(__file__).parent / "standin" / "serve.py"
POLL_SECONDS = 0.02


def free_port() -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def executable(folder: Path) -> Path:
    """The stand-in as a program of its own, as the variables *_E2E_VLLM_BIN name one."""
    path = folder / "vllm"
    path.write_text(
        f"#!{sys.executable}\nimport runpy, sys\nsys.path.insert(0, {str(STANDIN.parent)!r})\n"
        f"runpy.run_path({str(STANDIN)!r}, run_name='__main__')\n",
        encoding="utf-8",
    )
    path.chmod(0o755)
    return path


def standin(folder: Path, port: int, orders: Orders, role: str = "native") -> Command:
    """A stand-in of that role, logging into `folder`."""
    afd = () if role == "native" else ("--additional-config", f'{{"afd": {{"role": "{role}"}}}}')
    return Command(
        role=role,
        argv=(sys.executable, str(STANDIN), "serve", "tiny", "--port", str(port), *afd),
        env={**os.environ, **orders.variables()},
        cwd=folder,
        log=folder / f"{role}.log",
    )


def plan_of(port: int, *, release: float = 2.0, stop: float = 3.0) -> CasePlan:
    limits = TimeLimits(release=release, stop=stop, kill=3.0)
    return case_plan(role_plan(ports={"http": port}, devices=(f"test-{port}",)), limits=limits)


def until(condition: Callable[[], object], what: str, seconds: float = 20.0) -> None:
    """Poll until it is true; fails with `what` at the deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(POLL_SECONDS)


def wait_ready(process: OwnedProcess, port: int) -> None:
    def ready() -> bool:
        assert process.exit_code() is None, process.last_lines()
        return health(port) == 200

    until(ready, "the stand-in is ready")


def health(port: int) -> int | None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()

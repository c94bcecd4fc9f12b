"""What fault tests share: the stand-in as a program with packages and a checkpoint, its commands,
ports of a worker's own, waiting for a condition."""

from __future__ import annotations

import http.client
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

from e2e import leases
from e2e.errors import SetupMissing
from e2e.oracle.dataset import BUNDLED
from e2e.plan import CasePlan
from e2e.process import Command, OwnedProcess
from e2e.profile.model import TimeLimits
from tests.faults.standin.faults import Orders
from tests.stubs.plans import case_plan, role_plan

STANDIN = Path(__file__).parent / "standin" / "serve.py"
PROFILE = Path(__file__).parent / "standin.yaml"
ANSWERS = BUNDLED / "test.jsonl"
POLL_SECONDS = 0.02
PORTS_OF_A_CASE = 4

_PACKAGES = {"vllm": "0.32.0", "torch": "2.13.0", "transformers": "5.19.0", "afd_standin": "1.0"}
_BLOCK = 20 * PORTS_OF_A_CASE
_FIRST_PORT, _LAST_PORT = 20000, 32000


@contextmanager
def leased_ports() -> Iterator[Iterator[int]]:
    """First ports of cases, over and over, from a block that no other worker or run has; below
    the ephemeral range, so that no outgoing connection takes one."""
    first = int(os.environ.get("AFD_E2E_PORT_BASE") or _FIRST_PORT)
    for start in range(first, _LAST_PORT, _BLOCK):
        block = range(start, start + _BLOCK)
        try:
            with leases.hold([], block, "fault tests"):
                yield cycle(block[::PORTS_OF_A_CASE])
                return
        except SetupMissing:
            continue
    raise AssertionError(f"no {_BLOCK} free ports in a row from {first} to {_LAST_PORT}")


def executable(folder: Path, wrapper: str | None = None) -> Path:
    """The stand-in as a program of its own, as the variables *_E2E_VLLM_BIN name one; within
    `wrapper`, a shell script in which $VLLM is it."""
    path = _script(folder / "vllm", sys.executable, _RUN)
    if wrapper is None:
        return path
    return _script(folder / "wrapper", "/bin/sh", f"VLLM={path}\n{wrapper}\n")


_RUN = (
    f"import runpy, sys\nsys.path.insert(0, {str(STANDIN.parent)!r})\n"
    f"runpy.run_path({str(STANDIN)!r}, run_name='__main__')\n"
)


def _script(path: Path, interpreter: str, text: str) -> Path:
    path.write_text(f"#!{interpreter}\n{text}", encoding="utf-8")
    path.chmod(0o755)
    return path


def packages(folder: Path, plugin: str = "afd_standin") -> Path:
    """A folder for PYTHONPATH with what a server's interpreter has: empty modules, and the entry
    point of a plugin."""
    for name, version in _PACKAGES.items():
        (folder / f"{name}.py").write_text("")
        info = folder / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    points = f"[vllm.general_plugins]\n{plugin} = afd_standin:register\n"
    (folder / f"afd_standin-{_PACKAGES['afd_standin']}.dist-info" / "entry_points.txt").write_text(
        points
    )
    return folder


def checkpoint(folder: Path, experts: int = 8) -> Path:
    """A whole checkpoint, of one number."""
    (folder / "config.json").write_text(json.dumps({"num_experts": experts}))
    (folder / "tokenizer.json").write_text("{}")
    header = b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}'
    weights = len(header).to_bytes(8, "little") + header + bytes(4)
    (folder / "model.safetensors").write_bytes(weights)
    return folder


def standin(folder: Path, port: int, orders: Orders, role: str = "native") -> Command:
    """A stand-in outside a pair, whatever its role is called; it logs into `folder`."""
    return Command(
        role=role,
        argv=(sys.executable, str(STANDIN), "serve", "tiny", "--port", str(port)),
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

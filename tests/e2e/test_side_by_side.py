"""Two runs of real servers on this host at the same time, each with ports of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.errors import Outcome
from e2e.plan import plan_case
from tests.stubs.cpu_case import CASE, opted_in

_PROGRAM = "import sys; from e2e.cli import main; sys.exit(main(sys.argv[1:]))"
_APART = 20
_SECONDS = 300


@contextmanager
def _running(folder: Path, base: int) -> Iterator[subprocess.Popen[bytes]]:
    """`afd-e2e run`, telling `folder`/told; it gets SIGTERM where nobody waits for its end."""
    folder.mkdir()
    arguments = ["run", "canary-cpu", "--case", CASE, "--evidence", str(folder)]
    with (folder / "told").open("wb") as told:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *arguments],
            env={**os.environ, "AFD_E2E_PORT_BASE": str(base)},
            stdout=told,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _told(folder: Path) -> str:
    return " ".join((folder / "told").read_text(encoding="utf-8").split())


def test_at_the_same_time_and_never_on_the_same_ports(tmp_path: Path) -> None:
    base = plan_case(opted_in(), CASE, os.environ, None).ports[0] + _APART
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    with _running(one, base) as first, _running(two, base + _APART) as second:
        deadline = time.monotonic() + _SECONDS
        while "ready \N{HORIZONTAL ELLIPSIS}" not in _told(one):
            assert first.poll() is None, _told(one)
            assert time.monotonic() < deadline
            time.sleep(0.1)
        with _running(three, base) as third:
            assert third.wait(_SECONDS) == Outcome.SETUP_MISSING.exit_code
        assert f"port {base} is leased to another run: run " in _told(three)
        assert f"pid {first.pid}" in _told(three)
        for process, folder in ((first, one), (second, two)):
            assert process.wait(_SECONDS) == 0, _told(folder)
            assert "proofs: 4 of 4 held" in _told(folder)

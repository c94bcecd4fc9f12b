"""Whatever a server logs, reading it takes little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.claims import log as claims_log
from e2e.process.log import first_error, last_lines
from e2e.systems.readiness import LogLine

MIB = 1 << 20
READERS: dict[str, Callable[[Path], object]] = {
    "last lines": last_lines,
    "first error": first_error,
    "ready line": lambda path: LogLine(path, "is ready").seen(),
    "claims": claims_log.read,
}
LOGS = {
    "short lines": b"(EngineCore pid=7) INFO 12:00 step\n" * 30_000,
    "one line": b"x" * MIB,
    "no text": bytes(range(128, 256)) * 8192,
    "no lines but marks": b"non-default args: Initializing a V1 LLM engine " * 20_000,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("log", LOGS)
def test_a_reader_holds_a_few_mib_at_most(tmp_path: Path, reader: str, log: str) -> None:
    path = tmp_path / "native.log"
    with path.open("wb") as file:
        for _ in range(24):
            file.write(LOGS[log])
    tracemalloc.start()
    try:
        READERS[reader](path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * MIB, f"{peak / MIB:.1f} MiB"


def test_an_error_is_found_behind_a_line_that_is_longer_than_a_look(tmp_path: Path) -> None:
    path = tmp_path / "native.log"
    path.write_bytes(b"x" * MIB + b"\nRuntimeError: the cause\nafter\n")
    assert first_error(path)[1:] == ["RuntimeError: the cause", "after"]

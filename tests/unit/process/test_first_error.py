"""Where a chain of failures began."""

from pathlib import Path

import pytest

from e2e.process.log import first_error


@pytest.mark.parametrize(
    "error",
    [
        "RuntimeError: CUDA out of memory",
        "(EngineCore pid=7) torch.OutOfMemoryError: CUDA out of memory",
        "vllm.v1.engine.exceptions.EngineDeadError: dead",
        "KeyboardInterrupt: terminated",
    ],
)
def test_the_first_exception_is_found_before_its_echoes(tmp_path: Path, error: str) -> None:
    log = tmp_path / "native.log"
    log.write_text(
        f"INFO ready\nTraceback (most recent call last):\n  raise X\n{error}\nRuntimeError: echo\n"
    )
    found = first_error(log)
    assert found[:3] == ["Traceback (most recent call last):", "  raise X", error]


def test_a_log_without_one_has_none(tmp_path: Path) -> None:
    log = tmp_path / "native.log"
    log.write_bytes(b"INFO no error: at all\n\xff\xfe Error handling is on\n")
    assert first_error(log) == []
    assert first_error(tmp_path / "none.log") == []


def test_a_line_without_end_is_cut(tmp_path: Path) -> None:
    log = tmp_path / "native.log"
    log.write_text("x" * (1 << 20) + "\nValueError: " + "y" * 10_000)
    assert all(len(line) < 500 for line in first_error(log))

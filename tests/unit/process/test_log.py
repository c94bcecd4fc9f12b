"""The end of a log, whatever is in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.process.log import last_lines, message


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "native.log"


def test_there_may_be_none(log: Path) -> None:
    assert last_lines(log) == []


def test_the_last_lines_that_are_not_blank(log: Path) -> None:
    log.write_bytes(b"one\n\n  \ntwo\r\nthree")
    assert last_lines(log, 2) == ["two", "three"]


def test_bytes_that_are_no_text(log: Path) -> None:
    log.write_bytes(b"\xff\x00 ok \xc3\x28\n\x1b[1;31mred\x1b[0m\tend\x07\n")
    assert last_lines(log) == ["\ufffd ok \ufffd(", "red\tend"]


def test_progress_bars_are_lines(log: Path) -> None:
    log.write_bytes(b"loading 1%\rloading 50%\rloading 100%")
    assert last_lines(log, 1) == ["loading 100%"]


def test_a_line_without_end_is_cut(log: Path) -> None:
    log.write_bytes(b"x" * 1_000_000)
    (line,) = last_lines(log)
    assert len(line) < 450
    assert line.startswith("…x")


def test_long_lines_say_how_much_was_cut(log: Path) -> None:
    log.write_bytes(b"y" * 1000 + b"\nend\n")
    long, end = last_lines(log)
    assert long.endswith("… (600 characters more)")
    assert end == "end"


@pytest.mark.parametrize(
    "line",
    [
        "(EngineCore pid=12) INFO 12-01 04:10:48 [ompmultiprocessing.py:185]   cores=[]",
        "(APIServer pid=7) cores=[]",
        "WARNING 12-01 04:10:48 [a.py:5] cores=[]",
        "cores=[]",
    ],
)
def test_what_a_line_says(line: str) -> None:
    assert message(line) == "cores=[]"


def test_no_more_than_the_end_is_read(log: Path) -> None:
    with log.open("wb") as file:
        file.truncate(10 << 30)
        file.seek(0, 2)
        file.write(b"\nthe end\n")
    assert last_lines(log, 1) == ["the end"]

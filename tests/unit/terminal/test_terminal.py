"""What a terminal that goes away does to a run: nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from e2e import terminal
from e2e.errors import Outcome
from e2e.evidence.record import CaseRecord, Failure

_TELLS = """
import sys
from e2e import terminal

console = terminal.LastingConsole()
reporter = terminal.TerminalReporter(console)
for name in ("launch", "ready", "evaluation"):
    reporter.phase(name)
reporter.done()
sys.exit(6)
"""


def test_where_nobody_watches_no_line_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    console = terminal.LastingConsole()
    with console.capture() as told:
        console.print("word " * 500)
    assert told.get().count("\n") == 1


def test_a_reader_that_goes_away_changes_no_exit_code() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as nobody:
        told = subprocess.run(
            [sys.executable, "-c", _TELLS], stdout=nobody, stderr=subprocess.PIPE, timeout=60
        )
    assert (told.returncode, told.stderr) == (6, b"")


def test_a_full_disk_and_letters_that_cannot_be_written_change_no_exit_code() -> None:
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for path, environment in (("/dev/full", None), (os.devnull, ascii_only)):
        with Path(path).open("wb") as nobody:
            told = subprocess.run(
                [sys.executable, "-c", _TELLS],
                stdout=nobody,
                stderr=subprocess.PIPE,
                env=environment,
                timeout=60,
            )
        assert (told.returncode, told.stderr) == (6, b""), path


def test_closed_standard_streams_are_nobody_else_s() -> None:
    """The guardian's socket would be one of them."""
    shell = 'exec "$0" -c "$1" <&- >&- 2>&-'
    code = "import os, sys; from e2e import cli; cli.main(['schema']); " + (
        "sys.exit([os.readlink(f'/proc/self/fd/{n}') for n in range(3)] != ['/dev/null'] * 3)"
    )
    assert subprocess.run(["sh", "-c", shell, sys.executable, code], timeout=60).returncode == 0


def test_of_many_lines_the_first_and_the_last_are_shown() -> None:
    lines = [f"line {number}" for number in range(40)]
    failure = Failure(outcome=Outcome.SERVER_FAILED, what="native exited with 1", lines=lines)
    record = CaseRecord(run_id="r", profile="p", case="c", started="", failures=[failure])
    console = terminal.LastingConsole()
    with console.capture() as told:
        terminal.print_case(console, record, "folder")
    assert "line 0\n" in told.get()
    assert "(25 more lines in evidence.json)" in told.get()
    assert "line 39\n" in told.get()

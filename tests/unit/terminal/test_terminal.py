"""What a terminal that goes away does to a run: nothing."""

import os
import subprocess
import sys

from e2e import terminal

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


def test_where_nobody_watches_no_line_is_broken() -> None:
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

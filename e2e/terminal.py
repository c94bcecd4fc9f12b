"""What a person at a terminal sees while a case runs, and at its end."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.table import Table

from e2e import comparison
from e2e.evidence.record import CaseRecord, Check

_QUIET_SECONDS = 15
_FIRST_LINES = 5
_LAST_LINES = 10
_UNBROKEN = 10_000


class LastingConsole(Console):
    """A reader that goes away, as in `| head`, a full disk and a terminal that is gone end no run:
    the rest is told to nobody, and the evidence and the exit code are those of the whole run. Nor
    does a letter that the encoding lacks. Where nobody watches (a file, a CI log) no line is
    broken."""

    def __init__(self) -> None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")
        super().__init__()
        if not self.is_terminal and "COLUMNS" not in os.environ:
            self.width = _UNBROKEN

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """All that rich writes is written here."""
        try:
            super().__exit__(exc_type, exc_value, traceback)
            self.file.flush()
        except OSError:
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        self.quiet = True
        # What Python still flushes when it ends must find somebody.
        nobody = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nobody, sys.stdout.fileno())
        os.close(nobody)


class TerminalReporter:
    """A spinner on a terminal; elsewhere (a CI log) a line per phase and one every 15 s."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None
        self._phase = ""
        self._last_line = 0.0

    def phase(self, name: str) -> None:
        self._phase = name
        self._show("")
        if not self._console.is_terminal:
            self._console.print(f"  {name} …", highlight=False)
            self._last_line = time.monotonic()

    def progress(self, text: str) -> None:
        self._show(text)
        if not self._console.is_terminal and time.monotonic() - self._last_line > _QUIET_SECONDS:
            self._console.print(f"    {text[:160]}", highlight=False, markup=False)
            self._last_line = time.monotonic()

    def _show(self, text: str) -> None:
        if not self._console.is_terminal:
            return
        if self._status is None:
            self._status = self._console.status("")
            self._status.start()
        width = max(20, self._console.width - 4)
        self._status.update(escape(f"{self._phase}: {text}"[:width] if text else self._phase))

    def done(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


def print_case(console: Console, record: CaseRecord, folder: str) -> None:
    """The verdict of one case in a screenful; everything else is in the evidence folder."""
    good = record.outcome == "passed"
    style = "bold green" if good else "bold red"
    console.print(f"[{style}]{record.outcome}[/] {record.profile}/{record.case}")
    if record.evaluation is not None:
        result = record.evaluation
        console.print(
            f"  {result.correct_strict} of {result.samples_asked} strict "
            f"({result.correct_flexible} flexible), {result.required} required",
            highlight=False,
        )
        _print_checks(console, "", result.checks)
        if result.shows:
            console.print(f"  what this shows: {escape(result.shows)}", highlight=False)
        if result.lowered_from is not None:
            console.print(
                f"  [yellow]not the profile's verdict, which takes {result.lowered_from} samples[/]"
            )
    if record.parity is not None:
        beside = f"beside {record.parity.against}, "
        _print_checks(console, beside, record.parity.checks)
        if record.parity.not_judged is not None:
            console.print(
                f"  [yellow]{beside}not judged: {escape(record.parity.not_judged)}[/]",
                highlight=False,
            )
    for title, items in (("claims", record.claims), ("proofs", record.proofs)):
        held = sum(item.held for item in items)
        if items:
            console.print(f"  {title}: {held} of {len(items)} held", highlight=False)
    for failure in record.failures:
        where = ", ".join(filter(None, (failure.phase, failure.role, failure.device)))
        head = f"{failure.outcome} ({where})" if where else failure.outcome
        console.print(f"  [red]{head}[/]: {escape(failure.what)}", highlight=False)
        for line in _screenful(failure.lines):
            console.print(f"    | {line}", highlight=False, markup=False)
        if failure.mend:
            console.print(f"    to do: {escape(failure.mend)}", highlight=False)
    console.print(f"  evidence: {escape(folder)}", highlight=False, soft_wrap=True)


def _print_checks(console: Console, beside: str, checks: Sequence[Check]) -> None:
    for check in checks:
        mark = "[green]held[/]" if check.held else "[red]not held[/]"
        console.print(f"  {beside}{check.name}: {mark}, {escape(check.seen)}", highlight=False)


def _screenful(lines: Sequence[str]) -> list[str]:
    """The first lines, where the cause of a failing server is, and the last."""
    left_out = len(lines) - _FIRST_LINES - _LAST_LINES
    if left_out <= 1:
        return list(lines)
    between = f"... ({left_out} more lines in evidence.json)"
    return [*lines[:_FIRST_LINES], between, *lines[-_LAST_LINES:]]


def print_side_by_side(console: Console, records: Sequence[CaseRecord]) -> None:
    """One column a case; below it, how each answered beside the first."""
    table = Table("", *(escape(f"{record.profile}/{record.case}") for record in records))
    for name, cells in comparison.rows(records):
        table.add_row(name, *map(escape, cells))
    console.print(table)
    for record in records[1:]:
        for line in comparison.answered_alike(records[0], record):
            console.print(
                f"  {records[0].case} and {record.case}: {line}", markup=False, highlight=False
            )

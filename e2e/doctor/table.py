"""Checks as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from e2e.doctor.result import CheckResult

if TYPE_CHECKING:
    from rich.table import Table


def table(title: str, results: Sequence[CheckResult]) -> Table:
    """One row a check, with what is there and, where it fails, the mend."""
    from rich.table import Table
    from rich.text import Text

    rows = Table(title=title, title_justify="left", show_lines=False)
    rows.add_column("check", no_wrap=True)
    rows.add_column("")
    rows.add_column("seen and, where it fails, what to do", overflow="fold")
    for result in results:
        mark = Text("pass", "green") if result.held else Text("fail", "bold red")
        seen = Text(result.seen)
        if not result.held:
            seen.append(f"\n{result.mend}", "yellow")
        rows.add_row(result.name, mark, seen)
    return rows

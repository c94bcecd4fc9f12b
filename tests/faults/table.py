"""docs/faults.md, made from the cells that the tests play.

python -m tests.faults.table
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.faults.cells import SECTIONS
from tests.faults.cells.cell import TOKEN, Cell

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"
_HEAD = """\
# Faults, and what a run makes of them

{count} faults, each struck on stand-ins for `vllm serve` that run a whole case: native, or an
Attention/FFN pair in which no token comes without FFN. Each test asserts the outcome, the words
that the user reads in `summary.md`, a deadline, and that nothing is left: no process, port, shared
memory, socket, lease, temporary folder or half-written evidence. `make faults` plays them, `make
docs` makes this page of them.
"""


def page() -> str:
    count = sum(len(cells) for cells in SECTIONS.values())
    parts = [_HEAD.format(count=count)]
    parts += ["\n".join(_section(title, cells)) for title, cells in SECTIONS.items()]
    return "\n".join(parts)


def _section(title: str, cells: tuple[Cell, ...]) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| fault | phase | role | outcome | what is read |"
    yield "| --- | --- | --- | --- | --- |"
    for cell, roles in _joined(cells):
        words = " … ".join(
            f"`{_shown(word, cell, several=len(roles) > 1)}`" for word in cell.words if word
        )
        outcome = cell.outcome or "killed; its guardian ends all"
        row = (cell.fault, cell.phase, ", ".join(roles), outcome, words)
        yield f"| {' | '.join(str(value).replace('|', chr(92) + '|') for value in row)} |"
    yield ""


def _joined(cells: tuple[Cell, ...]) -> Iterator[tuple[Cell, list[str]]]:
    """Cells that differ in their role alone share a row."""
    rows: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        words = tuple(_shown(word, cell, several=True) for word in cell.words)
        rows.setdefault((cell.fault, cell.phase, cell.outcome, words), []).append(cell)
    for alike in rows.values():
        yield alike[0], list(dict.fromkeys(cell.role for cell in alike))


def _shown(word: str, cell: Cell, *, several: bool) -> str:
    """With ROLE for the role where several share the row."""
    shown = word.replace(TOKEN, "...").replace("\ufffd", "?")
    return shown.replace(cell.role, "ROLE") if several else shown


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

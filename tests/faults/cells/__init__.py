"""Every fault of the catalogue in every phase where it can strike, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.faults.cells import harness, missing, running, starting, stopping
from tests.faults.cells.cell import Cell

SECTIONS: Mapping[str, tuple[Cell, ...]] = {
    "Before the launch": missing.CELLS,
    "From the launch to proven claims": starting.CELLS,
    "While questions are answered": running.CELLS,
    "The stop, and what is left": stopping.CELLS,
    "The harness itself": harness.CELLS,
}

CELLS: Sequence[Cell] = [cell for cells in SECTIONS.values() for cell in cells]

"""docs/faults.md is what the fault tests play."""

from __future__ import annotations

from collections import Counter

from tests.faults.cells import CELLS
from tests.faults.table import PAGE, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_every_cell_has_an_id_of_its_own() -> None:
    assert [id for id, count in Counter(cell.id for cell in CELLS).items() if count > 1] == []

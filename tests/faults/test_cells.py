"""Every cell of the table: its outcome, the words, its deadline, and that nothing is left."""

from __future__ import annotations

import json
import secrets
import time
from pathlib import Path

import pytest

from e2e.errors import Outcome
from tests.faults import damage
from tests.faults.cells import CELLS
from tests.faults.cells.cell import Cell
from tests.faults.cells.harness import SECRET
from tests.faults.leftovers import leftovers
from tests.faults.one_case import HARNESS
from tests.faults.playing import Played, Stage
from tests.faults.setting import executable, until


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.id)
def test_cell(cell: Cell, stage: Stage, case_folder: Path, host_folder: Path) -> None:
    told = cell.told(token := secrets.token_hex(6))
    play = _from_outside if told.role == HARNESS else _here
    with damage.done(told.damage, stage, case_folder) as variables:
        wall = play(told, stage, case_folder, {**told.variables, **variables})
        _assert_told(told, case_folder)
    assert wall < told.within
    until(lambda: not leftovers(host_folder, case_folder, token), "nothing is left", 30)


def _here(cell: Cell, stage: Stage, folder: Path, variables: dict[str, str]) -> float:
    if cell.wrapper:
        stage.executable = executable(stage.folder, cell.wrapper)
    played = stage.play(
        folder,
        *cell.faults,
        answer_seconds=cell.answer_seconds,
        variables=variables,
        case=cell.case,
        limits=cell.limits,
        strikes=cell.strikes,
        broken=cell.broken,
    )
    return played.wall


def _from_outside(cell: Cell, stage: Stage, folder: Path, variables: dict[str, str]) -> float:
    """With questions under way where the harness is struck in their midst."""
    begin = time.monotonic()
    asking = any(strike.phase == "evaluation" for strike in cell.strikes)
    with stage.playing(
        folder,
        *cell.faults,
        answer_seconds=60 if asking else 0,
        variables=variables,
        case=cell.case,
        limits=cell.limits,
        strikes=cell.strikes,
    ) as harness:
        output, _ = harness.communicate(timeout=cell.within)
        wanted = -9 if cell.outcome is None else cell.outcome.exit_code
        assert harness.returncode == wanted, output
    return time.monotonic() - begin


def _assert_told(cell: Cell, folder: Path) -> None:
    if cell.outcome is None:
        _assert_guardian_told(cell, folder)
        return
    played = Played.read(folder)
    assert played.record.outcome is cell.outcome, played.failures
    summary = (folder / "summary.md").read_text(encoding="utf-8")
    shown = "\n".join(line for f in played.record.failures for line in (f.what, *f.lines, f.mend))
    assert [word for word in cell.words if word not in shown] == [], shown
    assert [word for word in cell.words if word not in summary] == []
    assert SECRET not in summary + played.record.model_dump_json()
    if cell.outcome is Outcome.PASSED:
        assert all(proof.held for proof in played.record.proofs)


def _assert_guardian_told(cell: Cell, folder: Path) -> None:
    """A harness that is killed says nothing; its guardian does."""
    if not cell.words:
        return
    report: dict[str, object] = {}

    def told() -> bool:
        if not (folder / "guardian.json").exists():
            return False
        report.update(json.loads((folder / "guardian.json").read_text(encoding="utf-8")))
        return True

    until(told, "the guardian has told", 60)
    assert [word for word in cell.words if word not in str(report["what"])] == []
    assert report["survivors"] == []

"""Every fault test has a host folder, ports and a stage of its own, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.evidence.case import CaseEvidence
from e2e.process import reap
from e2e.process.guardian import runs
from tests.faults.playing import Stage
from tests.faults.setting import leased_ports


@pytest.fixture(scope="session")
def ports() -> Iterator[Iterator[int]]:
    """Leased in the host's own folder, before a test gets one of its own."""
    with leased_ports() as ports:
        yield ports


@pytest.fixture(autouse=True)
def host_folder(
    tmp_path: Path, ports: Iterator[int], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Where leases and runs of this test are; afterwards no run of it has left anything."""
    folder = tmp_path / "host"
    monkeypatch.setenv(runs.HOST_VARIABLE, str(folder))
    yield folder
    leftovers = [found for found in reap.leftovers() if found.path.is_relative_to(folder)]
    for leftover in leftovers:
        reap.end(leftover, term_seconds=0.0)
    assert not [line for leftover in leftovers for line in leftover.lines()]


@pytest.fixture
def stage(tmp_path: Path, ports: Iterator[int]) -> Stage:
    folder = tmp_path / "stage"
    folder.mkdir()
    return Stage(folder, ports)


@pytest.fixture
def case_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "case"
    folder.mkdir()
    return folder


@pytest.fixture
def evidence(case_folder: Path) -> CaseEvidence:
    return CaseEvidence(case_folder, "run-of-faults", "canary-cpu", "baseline-eager")

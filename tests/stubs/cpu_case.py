"""Running `canary-cpu` for tests that do something to it; gated as the profile is."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from e2e import gate, profile, session
from e2e.evidence.case import CaseEvidence
from e2e.profile.model import Profile

CASE = "baseline-eager"
AFD_CASE = "afd-eager-1a1f"


class At:
    """A reporter that does something when a phase begins. `began` has the moment of each phase on
    the monotonic clock, `acted` the moment after the act."""

    def __init__(self, phase: str, act: Callable[[], None]) -> None:
        self._phase = phase
        self._act = act
        self.began: dict[str, float] = {}
        self.acted = 0.0

    def phase(self, name: str) -> None:
        self.began[name] = time.monotonic()
        if name == self._phase:
            self._act()
            self.acted = time.monotonic()

    def progress(self, text: str) -> None: ...


def opted_in() -> Profile:
    """The profile `canary-cpu`; skips with the variable that opts in."""
    chosen = profile.load(profile.find("canary-cpu"))
    if gate.missing_opt_in(chosen, os.environ):
        pytest.skip(gate.opt_in_line(chosen))
    return chosen


def evidence_in(folder: Path, reporter: At | None = None, case: str = CASE) -> CaseEvidence:
    return session.open_evidence(folder, "run-of-a-test", "canary-cpu", case, reporter)


def canary(chosen: Profile, variables: Mapping[str, str]) -> Path:
    """The profile's canary, built if it is not there."""
    unset = {name: value for name, value in variables.items() if name != chosen.model.variable}
    folder = session.canary_folder(chosen, unset, build=lambda text: None)
    assert folder is not None
    return Path(folder)


def assert_nothing_left(evidence: CaseEvidence) -> None:
    assert [proof.name for proof in evidence.record.proofs if not proof.held] == []
    assert len(evidence.record.proofs) >= 4

"""Whatever ends a case is in its evidence, all of it, and nothing makes a green of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from e2e import run
from e2e.errors import HarnessError, Outcome, SetupMissing, WrongAnswers
from e2e.evidence.case import CaseEvidence


@pytest.fixture
def evidence(tmp_path: Path) -> CaseEvidence:
    return CaseEvidence(tmp_path / "case", "run", "canary-cpu", "baseline-eager")


def failures(evidence: CaseEvidence) -> list[str]:
    return [failure.what for failure in evidence.record.failures]


@pytest.mark.parametrize("code", [0, 3])
def test_an_exit_in_the_midst_of_a_case_is_no_green(evidence: CaseEvidence, code: int) -> None:
    with run.recorded(evidence):
        sys.exit(code)
    assert evidence.conclude() is Outcome.HARNESS_ERROR
    assert failures(evidence) == [f"the harness itself failed: SystemExit: {code}"]


def test_what_ends_a_test_from_outside_is_recorded_and_goes_on(evidence: CaseEvidence) -> None:
    with pytest.raises(pytest.fail.Exception), run.recorded(evidence):
        pytest.fail("Timeout >300.0s")
    assert evidence.record.outcome is Outcome.HARNESS_ERROR
    assert "Timeout >300.0s" in failures(evidence)[0]


def test_a_failing_teardown_hides_nothing_whatever_caused_it(evidence: CaseEvidence) -> None:
    with run.recorded(evidence):
        try:
            raise WrongAnswers("number: 3 of 7")
        finally:
            try:
                Path("/nonexistent").read_text()
            except OSError as error:
                raise HarnessError("cannot tidy up") from error
    evidence.conclude()
    assert sorted(failures(evidence)) == ["cannot tidy up", "number: 3 of 7"]


def test_a_cause_is_no_failure_of_its_own(evidence: CaseEvidence) -> None:
    with run.recorded(evidence):
        try:
            Path("/nonexistent").read_text()
        except OSError:
            try:
                int("x")
            except ValueError as error:
                raise SetupMissing("no data set") from error
    assert failures(evidence) == ["no data set"]

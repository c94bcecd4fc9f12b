"""Every case of every profile, as `<profile>/<case>`; gated by the profile's opt-in variables."""

import os

import pytest

from e2e.errors import Outcome
from e2e.pytest_plugin import CaseId, explain


def test_case(case_id: CaseId, case_profile, evidence) -> None:
    from e2e.run import execute

    outcome = execute(case_profile, case_id.case, os.environ, evidence)
    if outcome is Outcome.INTERRUPTED:
        pytest.exit(explain(evidence), returncode=outcome.exit_code)
    if outcome is not Outcome.PASSED:
        pytest.fail(explain(evidence), pytrace=False)

"""A real server that computes otherwise than the canary learnt fails the run, and the run says
how it was noticed."""

import os
from pathlib import Path

import pytest

from e2e.errors import Outcome
from e2e.run import execute
from tests.stubs.cpu_case import CASE, assert_nothing_left, canary, evidence_in, opted_in


@pytest.mark.parametrize(
    ("change", "noticed_by"),
    [("expert zeroed", {"fingerprint"}), ("row scaled", {"fingerprint"})],
)
def test_disturbed_weights_fail_the_run(
    change: str, noticed_by: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = opted_in()
    from e2e.canary import disturb, families

    family = families.find("qwen3_moe")
    last = family.moe_layers[-1]
    row = family.expert_tensor(last, 5, "gate")
    changes = {
        "expert zeroed": disturb.zero_expert(family, last, 3),
        "row scaled": disturb.scale_row("expert gate row", row, last, 1, 2.0),
    }
    copy = tmp_path / "disturbed"
    disturb.disturbed_copy(canary(chosen, os.environ), changes[change], copy)
    variables = {**os.environ, chosen.model.variable: str(copy)}
    evidence = evidence_in(tmp_path / "runs")

    assert execute(chosen, CASE, variables, evidence) is Outcome.WRONG_ANSWERS
    assert evidence.record.evaluation is not None
    missed = {check.name for check in evidence.record.evaluation.checks if not check.held}
    assert noticed_by <= missed
    (failure,) = evidence.record.failures
    assert "fingerprint" in failure.what + "".join(failure.lines)
    assert_nothing_left(evidence)

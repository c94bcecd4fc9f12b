"""An evaluation that stands still: its outcome, every role's last lines, every process's stack."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import pytest

from e2e import oracle, proofs
from e2e.errors import ServerFailed
from e2e.evidence.case import CaseEvidence
from e2e.plan import CasePlan
from e2e.process import Owner
from e2e.profile.model import TimeLimits
from e2e.systems.deployment import launch
from tests.faults.setting import STANDIN, free_port
from tests.faults.standin.faults import Fault, Orders
from tests.stubs.plans import case_plan, role_plan

STALL_SECONDS = 1.0


def plan_of(port: int) -> CasePlan:
    argv = (sys.executable, str(STANDIN), "serve", "tiny", "--additional-config")
    ffn = role_plan(
        role="ffn",
        argv=(*argv, '{"afd": {"role": "ffn"}}'),
        ports={},
        exit_codes=(1,),
        ready_line="workers run connector loop",
    )
    attention = role_plan(
        role="attention",
        argv=(
            *argv,
            '{"afd": {"role": "attention"}}',
            *("--port", str(port), "--served-model-name", "tiny-native"),
        ),
        ports={"http": port},
    )
    limits = TimeLimits(ready=20, stall=STALL_SECONDS, stop=5, kill=3, release=2)
    plan = case_plan(ffn, attention, limits=limits)
    return replace(plan, evaluation=replace(plan.evaluation, samples=4, required=4))


def evaluate(plan: CasePlan, evidence: CaseEvidence, *faults: Fault) -> ServerFailed:
    for name, value in Orders(faults).variables().items():
        os.environ[name] = value
    try:
        with (
            pytest.raises(ServerFailed) as caught,
            Owner("run-of-faults", evidence.folder) as owner,
            proofs.no_process_left(plan, owner, evidence),
            launch(plan, owner, evidence) as deployment,
        ):
            deployment.wait_until_generating()
            oracle.evaluate(plan, oracle.questions(plan), deployment, evidence)
    finally:
        for name in Orders().variables():
            del os.environ[name]
    return caught.value


@pytest.mark.parametrize("what", ["hang", "freeze"])
def test_a_stall_names_the_role_and_keeps_stacks_of_all_processes(
    evidence: CaseEvidence, what: str
) -> None:
    """The probe is the first request, so that one question is answered. A frozen server is killed
    at its stop, which is a finding of its own."""
    hang = Fault(what, "request", role="attention", nth=3)
    error = evaluate(plan_of(free_port()), evidence, hang)
    assert error.what == f"attention stalled: no answer completed for {STALL_SECONDS:g} s"
    assert (error.role, error.phase) == ("attention", "evaluation")
    assert any(line.startswith("[attention] ") for line in error.lines)
    assert any(line.startswith("[ffn] ") for line in error.lines)
    for role in ("attention", "ffn"):
        stacks = (evidence.folder / f"{role}.stacks.txt").read_text(encoding="utf-8")
        assert "serve.py" in stacks
        assert "thread" in stacks.lower()
    assert evidence.record.evaluation is not None
    assert sum(sample.invalid is None for sample in evidence.record.evaluation.samples) == 1
    (proof,) = evidence.record.proofs
    assert [line for line in proof.found if "survives" in line] == []

"""Gather once, judge everything, record each claim, and fail a case on what is not proven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from e2e.claims import checkpoint, execution, parallelism, precision, routing, versions
from e2e.claims.judgement import Judgement
from e2e.claims.observation import Deployment, Observation, observe
from e2e.errors import ClaimNotProven
from e2e.evidence.case import CaseEvidence
from e2e.plan import CasePlan

_FAMILIES = (parallelism, execution, precision, routing, versions, checkpoint)


def prove(plan: CasePlan, deployment: Deployment, evidence: CaseEvidence) -> None:
    """Every claim of the plan, from the live deployment; the software that it runs is recorded.

    Raises ClaimNotProven, after all claims have been judged and recorded.
    """
    with evidence.phase("claims"):
        seen = observe(plan, deployment, _devices_by_pid(plan))
        evidence.record.software.update(versions.software(seen))
        settle(judge_all(seen), evidence)


def judge_all(seen: Observation) -> list[Judgement]:
    return [judgement for family in _FAMILIES for judgement in family.claims(seen)]


def settle(judgements: Sequence[Judgement], evidence: CaseEvidence) -> None:
    """Record all, then raise ClaimNotProven for those that do not hold."""
    for judgement in judgements:
        evidence.claim(judgement.claim)
    unproven = [judgement for judgement in judgements if not judgement.claim.held]
    if unproven:
        names = ", ".join(judgement.claim.name for judgement in unproven)
        raise ClaimNotProven(
            f"{len(unproven)} of {len(judgements)} claims not proven: {names}",
            lines=[judgement.unproven for judgement in unproven],
            mend="mend the deployment, or the profile if it claims something else",
        )


def _devices_by_pid(plan: CasePlan) -> Mapping[int, frozenset[str]]:
    return {}

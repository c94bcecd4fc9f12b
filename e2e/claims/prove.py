"""Gather once, judge everything, record each claim, and fail a case on what is not proven."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from e2e.claims import (
    checkpoint,
    connector,
    crossing,
    execution,
    log,
    overlap,
    parallelism,
    pinning,
    plugins,
    precision,
    routing,
    versions,
)
from e2e.claims.judgement import Judgement
from e2e.claims.observation import Deployment, LiveRole, Observation, observe
from e2e.devices import DeviceDriver
from e2e.devices.nvml import NvmlDriver
from e2e.errors import ClaimNotProven
from e2e.evidence.case import CaseEvidence
from e2e.plan import CasePlan

_FAMILIES = (
    pinning,
    parallelism,
    execution,
    precision,
    plugins,
    connector,
    routing,
    versions,
    checkpoint,
)


def prove(
    plan: CasePlan,
    deployment: Deployment,
    evidence: CaseEvidence,
    open_driver: Callable[[], DeviceDriver] = NvmlDriver,
) -> None:
    """Every claim of the plan, from the live deployment; the software that it runs is recorded.

    Raises ClaimNotProven, after all claims have been judged and recorded.
    """
    with evidence.phase("claims"):
        seen = observe(plan, deployment, open_driver)
        evidence.record.software.update(versions.software(seen))
        judgements = judge_all(seen)
        if plan.afd is not None:
            judgements.append(_crossing(plan, deployment))
        settle(judgements, evidence)


def _crossing(plan: CasePlan, deployment: Deployment) -> Judgement:
    from e2e.oracle.client import probe

    return crossing.prove(
        deployment.roles["ffn"].process.stopped,
        lambda seconds: probe(deployment.endpoint, seconds, deployment.check_alive),
        plan.limits.probe,
    )


@contextmanager
def under_load(plan: CasePlan, deployment: Deployment, evidence: CaseEvidence) -> Iterator[None]:
    """Around the evaluation: the claims that only its load can show. Without any, nothing.

    Raises ClaimNotProven on exit, and only records where the body has failed already.
    """
    if not plan.dbo:
        yield
        return
    role = deployment.roles[plan.entry_role.role]
    before = overlap.split_steps(log.read(role.process.log))
    try:
        yield
    except BaseException:
        evidence.claim(_overlap(role, before).claim)
        raise
    settle([_overlap(role, before)], evidence)


def _overlap(role: LiveRole, before: int) -> Judgement:
    return overlap.judge_load(role.plan.role, before, log.read(role.process.log))


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

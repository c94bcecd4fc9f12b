"""The evaluation of a case, with what the environment changes of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from e2e.errors import SetupMissing
from e2e.plan import settings
from e2e.profile.model import Case, Evaluation, Profile


@dataclass(frozen=True)
class EvaluationPlan:
    """The questions, and what makes the answers good enough."""

    dataset: str
    shots: int
    samples: int | Literal["all"]
    match: Literal["strict", "flexible"]
    required: int
    canary_checks: tuple[str, ...]
    max_tokens: int
    concurrency: int
    lowered_from: int | None
    share: float = 0.0

    def required_of(self, asked: int) -> int:
        """How many of the questions asked must be right. `required` says it for `samples`; with
        `all` samples only who has counted the questions knows."""
        return max(self.required, settings.at_least(self.share, asked))


def asks_more(samples: int | Literal["all"], own: Evaluation) -> bool:
    """More questions are asked than the profile's own evaluation has."""
    return samples == "all" or samples > own.samples


def plan_evaluation(profile: Profile, case: Case, variables: Mapping[str, str]) -> EvaluationPlan:
    own = profile.evaluation_of(case)
    limit = settings.limit(variables)
    samples = own.samples if limit is None else limit
    if case.execution.dbo is not None and samples != "all":
        # Fewer would leave it to chance whether a step of live requests is split.
        samples = max(samples, own.samples)
    more = asks_more(samples, own)
    if more and profile.model.canary and not variables.get(profile.model.variable):
        raise SetupMissing(
            f"{settings.LIMIT}={limit}: the canary has learnt {own.samples} answers",
            mend=f"lower {settings.LIMIT}, or unset it",
        )
    share = own.required / own.samples
    if more and own.larger_share is not None:
        share = own.larger_share
    share = max(share, settings.threshold(own, variables) or 0.0)
    plan = EvaluationPlan(
        dataset=own.dataset,
        shots=own.shots,
        samples=samples,
        match=own.match,
        required=own.required if more else 0,
        canary_checks=tuple(own.canary_checks),
        max_tokens=own.max_tokens,
        concurrency=own.concurrency,
        lowered_from=own.samples if samples != "all" and samples < own.samples else None,
        share=share,
    )
    return plan if samples == "all" else replace(plan, required=plan.required_of(samples))

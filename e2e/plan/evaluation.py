"""The evaluation of a case, with what the environment changes of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from e2e.errors import SetupMissing
from e2e.plan import settings
from e2e.profile.model import Case, Evaluation, Profile


@dataclass(frozen=True)
class ParityPlan:
    """Whose answers of the same run these have to equal, and in what."""

    against: str
    tokens: Literal["identical"] | None
    logprobs: Literal["within noise"] | None


@dataclass(frozen=True)
class EvaluationPlan:
    """The questions, and what makes the answers good enough. `compared`: another case demands
    parity with this one."""

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
    parity: ParityPlan | None = None
    compared: bool = False

    @property
    def log_probabilities(self) -> bool:
        """Whether each answer token has to come with those of the most likely tokens."""
        return "fingerprint" in self.canary_checks or self.parity is not None or self.compared

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
        parity=_parity(case),
        compared=any(
            other.parity is not None and profile.cases.get(other.parity.against) is case
            for other in profile.cases.values()
        ),
    )
    return plan if samples == "all" else replace(plan, required=plan.required_of(samples))


def _parity(case: Case) -> ParityPlan | None:
    own = case.parity
    return None if own is None else ParityPlan(own.against, own.tokens, own.logprobs)

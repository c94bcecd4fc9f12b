"""A profile's `performance` section: two deployments on the same devices, and their load. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from e2e.errors import ProfileError
from e2e.plan.case import CasePlan, plan_as
from e2e.plan.load import LoadPlan, plan_load
from e2e.profile.model import Profile


@dataclass(frozen=True)
class Measurement:
    """One deployment, and the load that it is measured under."""

    deployment: CasePlan
    load: LoadPlan


def plan_performance(
    profile: Profile, variables: Mapping[str, str], model: str | None
) -> tuple[Measurement, Measurement]:
    """Native, and the AFD case that it is compared with, measured one after the other.

    Raises ProfileError (no such section) and SetupMissing (a variable that cannot be used).
    """
    comparison = profile.performance
    if comparison is None:
        raise ProfileError(
            f"{profile.profile} has no performance section",
            mend="docs/profiles.md shows one; qwen3_5-122b-8gpu has one",
        )
    split = profile.cases[comparison.against]
    shared = split.model_copy(
        update={
            "args": {**split.args, **comparison.args},
            "execution": comparison.execution or split.execution,
        }
    )
    alone = {"native": comparison.native, "attention": None, "ffn": None}
    cases = {
        "performance-native": shared.model_copy(update=alone),
        f"performance-{comparison.against}": shared,
    }
    native, afd = (
        Measurement(deployment, plan_load(profile, comparison.load, deployment, variables))
        for deployment in (
            plan_as(profile, name, case, variables, model) for name, case in cases.items()
        )
    )
    return native, afd

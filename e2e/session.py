"""What a run needs before its cases start: gate, checkpoint, plan, run id, evidence folder."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from e2e import gate
from e2e.errors import ProfileError, SetupMissing
from e2e.evidence.case import CaseEvidence, Reporter
from e2e.evidence.secrets import secret_values
from e2e.plan import CasePlan, plan_case
from e2e.profile.model import Profile

EVIDENCE_VARIABLE = "AFD_E2E_EVIDENCE"


def new_run_id(profile: str) -> str:
    """Sortable by time, unique on a host: `20260131-235959-canary-cpu-1f2e`."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{profile}-{secrets.token_hex(2)}"


def evidence_root(chosen: str | None, variables: Mapping[str, str]) -> Path:
    return Path(chosen or variables.get(EVIDENCE_VARIABLE) or "runs").expanduser().absolute()


def open_evidence(
    root: Path, run_id: str, profile: str, case: str, reporter: Reporter | None = None
) -> CaseEvidence:
    return CaseEvidence(
        root / run_id / case,
        run_id,
        profile,
        case,
        secrets=secret_values(os.environ),
        reporter=reporter,
    )


def choose_cases(profile: Profile, wanted: list[str] | None) -> list[str]:
    """The wanted cases in the profile's order, all of them by default. Raises ProfileError."""
    unknown = [case for case in wanted or [] if case not in profile.cases]
    if unknown:
        raise ProfileError(
            f"{profile.profile} has no case {', '.join(unknown)}",
            mend=f"its cases are {', '.join(profile.cases)}",
        )
    return [case for case in profile.cases if not wanted or case in wanted]


def prepare(
    profile: Profile,
    case: str,
    variables: Mapping[str, str],
    progress: Callable[[str], None],
    before_a_build: Callable[[CasePlan], None] = lambda plan: None,
) -> CasePlan:
    """Check the gate, build the canary if the profile uses one and it is not there, and plan.

    `before_a_build` sees the plan first: a build takes minutes, what is missing is known at once.
    Raises SetupMissing and ProfileError.
    """
    gate.require(profile, variables)
    plan = plan_case(profile, case, variables, canary_folder(profile, variables, build=None))
    if plan.model_variable is None and not Path(plan.model).is_dir():
        before_a_build(plan)
        canary_folder(profile, variables, build=progress)
    return plan


def canary_folder(
    profile: Profile, variables: Mapping[str, str], build: Callable[[str], None] | None
) -> str | None:
    """The folder of the profile's canary, built first if `build` (its progress) is given; None
    where the profile has none or its model variable names a checkpoint. Raises SetupMissing."""
    if profile.model.canary is None or variables.get(profile.model.variable):
        return None
    from e2e.canary import cache
    from e2e.oracle import dataset

    questions = dataset.load(dataset.chosen(profile.evaluation.dataset, variables))
    family = profile.model.canary
    shots, samples = profile.evaluation.shots, profile.evaluation.samples
    try:
        if build is None:
            return str(cache.folder(family, questions, shots=shots, samples=samples))
        return str(cache.ensure(family, questions, shots=shots, samples=samples, progress=build))
    except RuntimeError as error:
        if os.environ.get("HOME"):
            raise
        raise SetupMissing(
            f"there is no place for the canary: HOME is not set, and uid {os.getuid()} has no home",
            mend=f"set HOME, or {cache.VARIABLE} to a folder that can be written to",
        ) from error

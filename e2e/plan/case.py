"""Profile x case x environment -> CasePlan: what will be run and checked, exactly. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from e2e.errors import ProfileError
from e2e.plan import argv, difference, settings
from e2e.plan.evaluation import EvaluationPlan, asks_more, plan_evaluation
from e2e.plan.role import Role, RolePlan, plan_role, ranks
from e2e.profile.model import Case, Profile, Teardown, TimeLimits
from e2e.profile.problems import did_you_mean


@dataclass(frozen=True)
class AfdPlan:
    plugin: str
    connector: str
    host: str
    port: int
    attention_ranks: int
    ffn_ranks: int


@dataclass(frozen=True)
class CasePlan:
    """`roles` are in launch order. `model` is a folder, or `$VARIABLE` when it is not set;
    `model_variable` names it, unless a canary is built for the run.
    `inherited` names the profile that says a key, where it is not this one."""

    profile: str
    case: str
    backend: Literal["cpu", "gpu"]
    model: str
    canary: str | None
    model_config: Mapping[str, object]
    min_memory_gib: float
    weights_gib: float | None
    roles: tuple[RolePlan, ...]
    afd: AfdPlan | None
    execution: Literal["eager", "graph"]
    dbo: bool
    scrub: tuple[str, ...]
    evaluation: EvaluationPlan
    limits: TimeLimits
    teardown: Teardown
    model_variable: str | None = None
    inherited: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.profile}/{self.case}"

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(device for role in self.roles for device in role.devices)

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(port for role in self.roles for port in role.ports.values())

    @property
    def entry_role(self) -> RolePlan:
        """The role that answers requests: native or attention."""
        return next(role for role in self.roles if role.role != "ffn")


def plan_case(
    profile: Profile, case_id: str, variables: Mapping[str, str], model: str | None
) -> CasePlan:
    """Raises ProfileError (unknown case) and SetupMissing (a variable that cannot be used).

    `variables` is the harness's environment. `model` is the checkpoint's folder where the
    profile's variable does not name it (a canary); None leaves `$VARIABLE` in the plan.
    """
    case = profile.cases.get(case_id)
    if case is None:
        raise ProfileError(
            f"{profile.profile} has no case {case_id!r}" + did_you_mean(case_id, profile.cases),
            mend=f"its cases are {', '.join(profile.cases)}",
        )
    return plan_as(profile, case_id, case, variables, model)


def plan_as(
    profile: Profile, name: str, case: Case, variables: Mapping[str, str], model: str | None
) -> CasePlan:
    """The plan of a case that need not be one of the profile's, under a name of its own."""
    where = variables.get(profile.model.variable) or model or f"${profile.model.variable}"
    http, connector = first_ports(profile, variables)
    evaluation = plan_evaluation(profile, case, variables)
    return CasePlan(
        profile=profile.profile,
        case=name,
        backend=profile.hardware.backend,
        model=where,
        canary=profile.model.canary,
        model_config=profile.model.config,
        min_memory_gib=case.memory_gib or profile.hardware.memory_gib,
        weights_gib=profile.model.weights_gib,
        roles=tuple(
            plan_role(profile, case, role, where, (http, connector), variables)
            for role in _launch_order(profile, case)
        ),
        afd=_afd(profile, case, connector),
        execution=case.execution.mode,
        dbo=case.execution.dbo is not None,
        scrub=difference.scrubbed(profile, case),
        evaluation=evaluation,
        limits=_limits(profile, case, evaluation),
        teardown=profile.teardown,
        model_variable=_model_variable(profile, variables),
        inherited={
            path: source
            for path, source in profile.inherited.items()
            if not path.startswith("cases.") or path.split(".")[1] == name
        },
    )


def _limits(profile: Profile, case: Case, asked: EvaluationPlan) -> TimeLimits:
    """The profile's, with the time that more questions than its own may take."""
    limits = profile.time_limits
    if limits.larger_evaluation and asks_more(asked.samples, profile.evaluation_of(case)):
        return limits.model_copy(update={"evaluation": limits.larger_evaluation})
    return limits


def _model_variable(profile: Profile, variables: Mapping[str, str]) -> str | None:
    built = profile.model.canary is not None and not variables.get(profile.model.variable)
    return None if built else profile.model.variable


def _launch_order(profile: Profile, case: Case) -> tuple[Role, ...]:
    """A synchronous FFN waits for Attention; an asynchronous one needs it to be there."""
    if case.native is not None:
        return ("native",)
    asynchronous = profile.afd is not None and profile.afd.asynchronous
    return ("attention", "ffn") if asynchronous else ("ffn", "attention")


def first_ports(profile: Profile, variables: Mapping[str, str]) -> tuple[int, int]:
    """The first HTTP port and the first port of the connector."""
    most_ffn_ranks = max(ranks(case)[1] for case in profile.cases.values())
    base = settings.port_base(variables, ports=3 + most_ffn_ranks)
    if base is not None:
        return base, base + 2
    return profile.server.port, profile.afd.port if profile.afd else 0


def _afd(profile: Profile, case: Case, port: int) -> AfdPlan | None:
    if case.native is not None or profile.afd is None:
        return None
    attention, ffn = ranks(case)
    return AfdPlan(profile.afd.plugin, profile.afd.connector, argv.LOOPBACK, port, attention, ffn)

"""Profile x case x environment -> CasePlan: what will be run and checked, exactly. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from e2e.profile.model import Profile, Teardown, TimeLimits

Role = Literal["native", "attention", "ffn"]


@dataclass(frozen=True)
class RolePlan:
    """One `vllm serve`. `argv` and the environment difference are complete but for
    what only a run knows: its API key, its private folders and its ownership marker."""

    role: Role
    argv: tuple[str, ...]
    env_set: Mapping[str, str]
    env_unset: tuple[str, ...]
    devices: tuple[str, ...]
    ports: Mapping[str, int]
    served_name: str
    dp: int
    tp: int
    ep: int | None
    ready_line: str | None
    exit_codes: tuple[int, ...]


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
    """`roles` are in launch order. `model` is a folder, or `$VARIABLE` when it is not set."""

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
    raise NotImplementedError

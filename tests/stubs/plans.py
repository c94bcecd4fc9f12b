"""Plans of a small native deployment, to be changed key by key."""

from __future__ import annotations

from dataclasses import replace

from e2e.plan import CasePlan, EvaluationPlan, RolePlan
from e2e.profile.model import Teardown, TimeLimits

MODEL = "/models/tiny-qwen3-moe"
SCRUB = ("VLLM_MOE_ROUTING_SIMULATION_STRATEGY", "AFD_BENCHMARK_*")


def role_plan(**changes: object) -> RolePlan:
    plan = RolePlan(
        role="native",
        argv=(
            *("vllm", "serve", MODEL, "--dtype", "bfloat16"),
            *("--max-model-len=1024", "--enforce-eager"),
        ),
        env_set={"VLLM_PLUGINS": ""},
        env_unset=(),
        devices=("cpu:0",),
        ports={"http": 8000},
        served_name="tiny-native",
        dp=1,
        tp=1,
        ep=None,
        ready_line=None,
        exit_codes=(0,),
    )
    return replace(plan, **changes)  # pyright: ignore[reportArgumentType]


def case_plan(*roles: RolePlan, **changes: object) -> CasePlan:
    plan = CasePlan(
        profile="canary-cpu",
        case="baseline-eager",
        backend="cpu",
        model=MODEL,
        canary=None,
        model_config={"num_experts": 8, "num_experts_per_tok": 2},
        min_memory_gib=4,
        weights_gib=None,
        roles=roles,
        afd=None,
        execution="eager",
        dbo=False,
        scrub=SCRUB,
        evaluation=EvaluationPlan("bundled", 8, 7, "strict", 7, (), 64, 1, None),
        limits=TimeLimits(),
        teardown=Teardown(),
    )
    return replace(plan, **changes)  # pyright: ignore[reportArgumentType]

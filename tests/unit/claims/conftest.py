"""Observations of real deployments, to be broken one way at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from e2e.claims import log
from e2e.claims.observation import Observation, RoleSeen
from e2e.claims.packages import Packages
from e2e.claims.processes import SeenProcess
from e2e.plan import CasePlan, EvaluationPlan, RolePlan
from e2e.profile.model import Teardown, TimeLimits

LOGS = Path(__file__).parent / "logs"
MODEL = "/models/tiny-qwen3-moe"
SCRUB = ("VLLM_MOE_ROUTING_SIMULATION_STRATEGY", "AFD_BENCHMARK_*")
ENVIRON = {"VLLM_PLUGINS": "", "SPT_NOENV": "1", "PATH": "/usr/bin"}
PACKAGES = Packages(
    "/venv/bin/python3", {"vllm": "0.32.0+cpu", "torch": "2.13.0+cpu", "transformers": "5.19.0"}
)


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


def process(pid: int, *argv: str, **environ: str) -> SeenProcess:
    return SeenProcess(pid, argv, {**ENVIRON, **environ})


def role_seen(plan: RolePlan, log_name: str, *titles: str) -> RoleSeen:
    return RoleSeen(
        plan,
        log.read(LOGS / log_name),
        (
            process(100, "/venv/bin/python3", "/venv/bin/vllm", "serve", MODEL),
            *(process(101 + index, title) for index, title in enumerate(titles)),
        ),
        PACKAGES,
    )


@pytest.fixture
def native() -> Observation:
    """vLLM 0.32 on a CPU: one rank, eager."""
    role = role_seen(role_plan(), "native-eager-tp1.log", "VLLM::EngineCore", "VLLM::Worker")
    config = {"num_experts": 8, "num_experts_per_tok": 2}
    return Observation(case_plan(role.plan), (role,), config)


@pytest.fixture
def native_tp2() -> Observation:
    """vLLM 0.32 on a CPU: TP2 with expert parallelism, eager."""
    role = role_seen(
        role_plan(tp=2, ep=2),
        "native-eager-tp2-ep2.log",
        "VLLM::EngineCore",
        "VLLM::Worker_TP0_EP0",
        "VLLM::Worker_TP1_EP1",
    )
    return Observation(case_plan(role.plan), (role,), {"num_experts": 8, "num_experts_per_tok": 2})


@pytest.fixture
def relogged(tmp_path: Path) -> Callable[..., Observation]:
    """The same observation with a log in which one text is replaced by another."""

    def relog(seen: Observation, old: str, new: str) -> Observation:
        role = seen.roles[0]
        text = (LOGS / role.log.name).read_text(encoding="utf-8")
        assert old in text
        path = tmp_path / role.log.name
        path.write_text(text.replace(old, new), encoding="utf-8")
        return replace(seen, roles=(replace(role, log=log.read(path)),))

    return relog


@pytest.fixture
def replanned() -> Callable[..., Observation]:
    """The same observation judged by another plan of its first role."""

    def replan(seen: Observation, **changes: object) -> Observation:
        role = replace(seen.roles[0], plan=role_plan(**changes))
        return replace(seen, roles=(role,))

    return replan

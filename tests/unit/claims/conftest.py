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
from e2e.plan import RolePlan
from tests.stubs.plans import MODEL, case_plan, role_plan

LOGS = Path(__file__).parent / "logs"
ENVIRON = {"VLLM_PLUGINS": "", "SPT_NOENV": "1", "PATH": "/usr/bin"}
PACKAGES = Packages(
    "/venv/bin/python3", {"vllm": "0.32.0+cpu", "torch": "2.13.0+cpu", "transformers": "5.19.0"}
)


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

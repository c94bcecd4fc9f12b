"""Observations of real deployments, to be broken one way at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from e2e.claims import log
from e2e.claims.observation import Observation, RoleSeen
from e2e.claims.packages import Packages, Plugin
from e2e.claims.processes import SeenProcess
from e2e.plan import AfdPlan, CasePlan, RolePlan
from tests.stubs.plans import MODEL, case_plan, role_plan

LOGS = Path(__file__).parent / "logs"
ENVIRON = {"VLLM_PLUGINS": "", "SPT_NOENV": "1", "PATH": "/usr/bin"}
AFD_PORT = 16239
FFN_READY = "AFD FFN EngineCore started; workers run connector loop."
REFERENCE = Plugin("e2e.reference_afd:register", "afd-e2e 0.1.0")
PACKAGES = Packages(
    "/venv/bin/python3", {"vllm": "0.32.0+cpu", "torch": "2.13.0+cpu", "transformers": "5.19.0"}
)


def process(pid: int, *argv: str, **environ: str) -> SeenProcess:
    return SeenProcess(pid, argv, {**ENVIRON, **environ})


def role_seen(plan: RolePlan, log_name: str, *titles: str, first: int = 100) -> RoleSeen:
    """A server of pid `first`, and one process a title with the pids that follow."""
    environ = dict(plan.env_set)
    return RoleSeen(
        plan,
        log.read(LOGS / log_name),
        (
            process(first, "/venv/bin/python3", "/venv/bin/vllm", "serve", MODEL, **environ),
            *(process(first + 1 + n, title, **environ) for n, title in enumerate(titles)),
        ),
        PACKAGES,
    )


def afd_role(role: str, case: str, attention: int, first: int, *titles: str, **plan) -> RoleSeen:
    """A role of the reference AFD, with one FFN rank; `first` puts its worker at the log's pid."""
    config = {
        "role": role,
        "connector": "GlooAFDConnector",
        "host": "127.0.0.1",
        "port": AFD_PORT,
        "num_attention_ranks": attention,
        "num_ffn_ranks": 1,
    }
    arguments = ("vllm", "--additional-config", json.dumps({"afd": config}))
    planned = role_plan(
        **{
            "role": role,
            "argv": (*arguments, "--dtype=float32"),
            "env_set": {"VLLM_PLUGINS": "afd_reference"},
            "ready_line": FFN_READY if role == "ffn" else None,
            **plan,
        }
    )
    seen = role_seen(planned, f"{case}-{role}.log", *titles, first=first)
    return replace(seen, packages=replace(PACKAGES, plugins={"afd_reference": REFERENCE}))


def afd_plan(*roles: RoleSeen, attention: int) -> CasePlan:
    afd = AfdPlan("afd_reference", "GlooAFDConnector", "127.0.0.1", AFD_PORT, attention, 1)
    return case_plan(*(role.plan for role in roles), afd=afd)


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
        role_plan(tp=2, ep=2, argv=(*role_plan().argv, "--enable-expert-parallel")),
        "native-eager-tp2-ep2.log",
        "VLLM::EngineCore",
        "VLLM::Worker_TP0_EP0",
        "VLLM::Worker_TP1_EP1",
    )
    return Observation(case_plan(role.plan), (role,), {"num_experts": 8, "num_experts_per_tok": 2})


@pytest.fixture
def afd() -> Observation:
    """The reference AFD on a CPU, 1A1F: FFN first, then Attention."""
    one = ("VLLM::EngineCore", "VLLM::Worker")
    ffn = afd_role("ffn", "afd-eager-1a1f", 1, 20_342, *one)
    attention = afd_role("attention", "afd-eager-1a1f", 1, 20_347, *one)
    plan = afd_plan(ffn, attention, attention=1)
    return Observation(plan, (ffn, attention), {"num_experts": 8, "num_experts_per_tok": 2})


@pytest.fixture
def afd_2a1f() -> Observation:
    """The reference AFD on a CPU: two Attention ranks by DP, one FFN rank."""
    two = ("VLLM::EngineCore_DP0", "VLLM::EngineCore_DP1", "VLLM::Worker_DP1_EP1")
    two = (*two, *["python3"] * 4, "VLLM::DPCoordinator", "VLLM::Worker_DP0_EP0")
    ffn = afd_role("ffn", "afd-eager-2a1f", 2, 26_071, "VLLM::EngineCore", "VLLM::Worker")
    attention = afd_role("attention", "afd-eager-2a1f", 2, 26_157, *two, dp=2)
    role = attention.plan
    attention = replace(
        attention, plan=replace(role, argv=(*role.argv, "--enable-expert-parallel"))
    )
    plan = afd_plan(ffn, attention, attention=2)
    return Observation(plan, (ffn, attention), {"num_experts": 8, "num_experts_per_tok": 2})


@pytest.fixture
def relogged(tmp_path: Path) -> Callable[..., Observation]:
    """The same observation with one text of a role's log replaced by another."""

    def relog(seen: Observation, old: str, new: str, index: int = 0) -> Observation:
        role = seen.roles[index]
        path = tmp_path / role.log.name
        text = (path if path.exists() else LOGS / role.log.name).read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
        roles = list(seen.roles)
        roles[index] = replace(role, log=log.read(path))
        return replace(seen, roles=tuple(roles))

    return relog


@pytest.fixture
def replanned() -> Callable[..., Observation]:
    """The same observation judged by another plan of its first role."""

    def replan(seen: Observation, **changes: object) -> Observation:
        role = replace(seen.roles[0], plan=role_plan(**changes))
        return replace(seen, roles=(role,))

    return replan

"""DP, TP and EP: the engine's configuration, and the ranks that are alive.

vLLM names its processes after their ranks: `VLLM::EngineCore_DP1`, `VLLM::Worker_DP1_TP0_EP1`.
An engine of one rank on a GPU does its worker's work itself and has no worker process.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from e2e.claims.judgement import Judgement, judge
from e2e.claims.observation import Observation, RoleSeen

_NAME = re.compile(r"::(?P<kind>EngineCore|Worker)(?P<ranks>(?:_[A-Z]+\d+)*)\s*$")
_EXPERTS = re.compile(r"\[EP Rank \d+/(?P<size>\d+)\].*number of experts: (?P<count>\d+/\d+)")


@dataclass(frozen=True)
class Rank:
    kind: str
    pid: int
    dp: int
    tp: int
    ep: int | None


def claims(seen: Observation) -> list[Judgement]:
    return [
        judgement
        for role in seen.roles
        for judgement in (_configured(role), _alive(role), _experts(role))
    ]


def live_ranks(role: RoleSeen) -> list[Rank]:
    """The engines and workers among the living processes, by their titles."""
    found = ((process.pid, _NAME.search(process.title)) for process in role.processes)
    return [_rank(pid, name) for pid, name in found if name]


def _rank(pid: int, name: re.Match[str]) -> Rank:
    ranks = dict(re.findall(r"_([A-Z]+)(\d+)", name["ranks"]))
    ep = int(ranks["EP"]) if "EP" in ranks else None
    return Rank(name["kind"], pid, int(ranks.get("DP", 0)), int(ranks.get("TP", 0)), ep)


def _configured(role: RoleSeen) -> Judgement:
    expected = f"DP{role.plan.dp} TP{role.plan.tp}"
    dp, tp = (role.log.setting(f"{kind}_parallel_size") for kind in ("data", "tensor"))
    return judge(
        f"{role.plan.role} parallel sizes",
        held=(dp, tp) == (str(role.plan.dp), str(role.plan.tp)),
        expected=expected,
        seen=f"DP{dp} TP{tp}",
        where=role.log.where("config"),
        proof="data_parallel_size and tensor_parallel_size as a living engine was configured",
    )


def _alive(role: RoleSeen) -> Judgement:
    plan, ranks = role.plan, live_ranks(role)
    engines = sorted(rank.dp for rank in ranks if rank.kind == "EngineCore")
    workers = sorted((rank.dp, rank.tp) for rank in ranks if rank.kind == "Worker")
    every = [(dp, tp) for dp in range(plan.dp) for tp in range(plan.tp)]
    held = engines == list(range(plan.dp)) and (workers == every or (not workers and plan.tp == 1))
    return judge(
        f"{plan.role} live ranks",
        held=held,
        expected=f"engines of DP ranks {list(range(plan.dp))}, workers (DP, TP) {every}",
        seen=f"engines of DP ranks {engines}, workers (DP, TP) {workers or 'none'}",
        where="process titles: " + (", ".join(_titles(role)) or "none"),
        proof="one living VLLM::EngineCore for each DP rank and one VLLM::Worker for each rank",
    )


def _experts(role: RoleSeen) -> Judgement:
    """EP of one rank is only an argument; above one, vLLM says so by title and in the log. An
    Attention role is given the argument for its groups' sake and has no experts to place."""
    wanted = role.plan.ep
    planned = "--enable-expert-parallel" in role.plan.argv
    argument = role.log.argument("enable_expert_parallel") is True
    workers = [rank for rank in live_ranks(role) if rank.kind == "Worker"]
    ranks = sorted(rank.ep for rank in workers if rank.ep is not None)
    line = role.log.first("experts")
    placed = _EXPERTS.search(line.text) if line else None
    size = int(placed["size"]) if placed else None
    held = argument == planned
    if wanted is None:
        held = held and (planned or (not ranks and line is None))
    else:
        held = held and planned and size in ((None, 1) if wanted == 1 else (wanted,))
        held = held and (not workers or ranks == list(range(wanted)))
    off = "no experts, its groups as of EP" if planned else "off"
    return judge(
        f"{role.plan.role} expert parallelism",
        held=held,
        expected=f"EP{wanted}" if wanted else off,
        seen=f"enable_expert_parallel {argument}, EP ranks of living workers {ranks or 'none'}"
        + (f", {placed['count']} experts on the rank that logs" if placed else ""),
        where=role.log.where("experts" if line else "arguments"),
        proof=f'EP ranks 0 to {wanted - 1} alive and "Expert parallelism is enabled" with {wanted} '
        "ranks"
        if wanted and wanted > 1
        else "the living server's non-default arguments",
    )


def _titles(role: RoleSeen) -> list[str]:
    return [process.title for process in role.processes if _NAME.search(process.title)]

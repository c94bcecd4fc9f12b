"""Eager or graphs: what the engine was configured with, and whether graphs were captured."""

from __future__ import annotations

import re

from e2e.claims.judgement import Judgement, judge
from e2e.claims.observation import Observation, RoleSeen


def claims(seen: Observation) -> list[Judgement]:
    wanted = seen.plan.execution
    return [
        *(_configured(role, wanted) for role in seen.roles),
        *(_captured(role, wanted) for role in seen.roles if _would_say(role, wanted)),
    ]


def _configured(role: RoleSeen, wanted: str) -> Judgement:
    eager = role.log.setting("enforce_eager")
    expected = str(wanted == "eager")
    mode = _graph_mode(role)
    planned = _planned_graph_mode(role)
    held = eager == expected and (wanted == "eager" or planned is None or mode == planned)
    return judge(
        f"{role.plan.role} execution mode",
        held=held,
        expected=f"{wanted} (enforce_eager={expected}"
        + (f", cudagraph_mode {planned})" if wanted == "graph" and planned else ")"),
        seen=f"enforce_eager={eager}, cudagraph_mode {mode}",
        where=role.log.where("config"),
        proof="the configuration line of a living engine in the role's log",
    )


def _would_say(role: RoleSeen, wanted: str) -> bool:
    """FFN captures what Attention's graphs need of it without vLLM's line that says so."""
    return wanted == "eager" or role.plan.role != "ffn"


def _captured(role: RoleSeen, wanted: str) -> Judgement:
    must = wanted == "graph"
    captured = role.log.first("captured")
    return judge(
        f"{role.plan.role} graph capture",
        held=(captured is not None) == must,
        expected="graphs captured" if must else "no graph captured",
        seen="graphs captured" if captured else "no graph captured",
        where=role.log.where("captured"),
        proof='the line "Graph capturing finished"' if must else "a log without that line",
    )


def _graph_mode(role: RoleSeen) -> str | None:
    line = role.log.first("config")
    found = re.search(r"'cudagraph_mode': <CUDAGraphMode\.(\w+)", line.text) if line else None
    return found[1] if found else None


def _planned_graph_mode(role: RoleSeen) -> str | None:
    found = re.search(r'"cudagraph_mode": *"(\w+)"', " ".join(role.plan.argv))
    return found[1] if found else None

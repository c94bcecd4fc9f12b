"""vLLM plugins: those of the plan are asked for by every process, are installed, and load."""

from __future__ import annotations

from e2e.claims.judgement import Judgement, judge
from e2e.claims.observation import Observation, RoleSeen

VARIABLE = "VLLM_PLUGINS"
REFERENCE = "e2e."


def claims(seen: Observation) -> list[Judgement]:
    return [
        judgement
        for role in seen.roles
        for judgement in (_asked_for(role), *(_active(role, name) for name in _planned(role)))
    ]


def _planned(role: RoleSeen) -> list[str]:
    return list(filter(None, role.plan.env_set.get(VARIABLE, "").split(",")))


def _asked_for(role: RoleSeen) -> Judgement:
    expected = role.plan.env_set.get(VARIABLE, "")
    values = {(process.environ or {}).get(VARIABLE) for process in role.processes}
    return judge(
        f"{role.plan.role} plugins asked for",
        held=values == {expected},
        expected=f"{VARIABLE}={expected}",
        seen=", ".join(sorted(_value(value) for value in values)) or "no living process",
        where=f"environment of {len(role.processes)} living processes",
        proof=f"{VARIABLE}={expected} in every living process; unset would load every plugin",
    )


def _active(role: RoleSeen, name: str) -> Judgement:
    """vLLM says at its debug level only that it loaded a plugin, but always that it failed to."""
    point = role.packages.plugins.get(name)
    failures = [line for line in role.log.lines.get("plugin failed", ()) if name in line.text]
    there = ", ".join(role.packages.plugins) or "none"
    kind = "this project's" if point and point.value.startswith(REFERENCE) else "installed"
    seen = f"{kind} {point.value} of {point.distribution}" if point else f"none (there: {there})"
    return judge(
        f"{role.plan.role} plugin {name}",
        held=point is not None and not failures,
        expected=f"entry point {name}, loaded",
        seen=failures[0].text if failures else seen,
        where=f"entry points of {role.packages.interpreter}, {role.log.name}",
        proof="the entry point in the server's own interpreter, and no failure to load it",
    )


def _value(value: str | None) -> str:
    return "unset" if value is None else f"{VARIABLE}={value}"

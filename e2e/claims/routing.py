"""Natural routing: nothing scrubbed reached a living process, and plugins are as planned.

Read from the environments of the live processes, not of the plan: a wrapper script can set what
it likes.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from e2e.claims.judgement import Judgement, judge
from e2e.claims.observation import Observation, RoleSeen
from e2e.claims.processes import SeenProcess

PLUGINS = "VLLM_PLUGINS"


def claims(seen: Observation) -> list[Judgement]:
    return [
        judgement
        for role in seen.roles
        for judgement in (_scrubbed(role, seen.plan.scrub), _plugins(role))
    ]


def _scrubbed(role: RoleSeen, patterns: tuple[str, ...]) -> Judgement:
    smuggled = sorted(
        f"{name}={value} in pid {process.pid}"
        for process in role.processes
        for name, value in (process.environ or {}).items()
        if any(fnmatchcase(name, pattern) for pattern in patterns) and name not in role.plan.env_set
    )
    unread = [str(process.pid) for process in role.processes if not _whole(process, role)]
    return judge(
        f"{role.plan.role} scrubbed variables",
        held=not smuggled and not unread and bool(role.processes),
        expected="none of " + (", ".join(patterns) or "nothing"),
        seen="; ".join(smuggled)
        or (f"environment of pid {', '.join(unread)} cannot be read" if unread else "none"),
        where=_where(role),
        proof="the whole environment of every living process, without these variables",
    )


def _plugins(role: RoleSeen) -> Judgement:
    expected = role.plan.env_set.get(PLUGINS, "")
    values = {(process.environ or {}).get(PLUGINS) for process in role.processes}
    return judge(
        f"{role.plan.role} plugins asked for",
        held=values == {expected},
        expected=f"{PLUGINS}={expected}",
        seen=", ".join(sorted(_value(value) for value in values)) or "no living process",
        where=_where(role),
        proof=f"{PLUGINS}={expected} in every living process; unset would load every plugin",
    )


def _whole(process: SeenProcess, role: RoleSeen) -> bool:
    """A process that renames itself overwrites its environment unless setproctitle sees
    SPT_NOENV: only one that still shows all that was set for it is a witness."""
    needed = role.plan.env_set.keys() | {"SPT_NOENV"}
    return process.environ is not None and needed <= process.environ.keys()


def _value(value: str | None) -> str:
    return "unset" if value is None else f"{PLUGINS}={value}"


def _where(role: RoleSeen) -> str:
    return f"environment of {len(role.processes)} living processes"

"""Natural routing: nothing scrubbed reached a living process.

Read from the environments of the live processes, not of the plan: a wrapper script can set what
it likes.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from e2e.claims.judgement import Judgement, judge
from e2e.claims.observation import Observation, RoleSeen
from e2e.claims.processes import SeenProcess


def claims(seen: Observation) -> list[Judgement]:
    return [_scrubbed(role, seen.plan.scrub) for role in seen.roles]


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
        where=f"environment of {len(role.processes)} living processes",
        proof="the whole environment of every living process, without these variables",
    )


def _whole(process: SeenProcess, role: RoleSeen) -> bool:
    """A process that renames itself overwrites its environment unless setproctitle sees
    SPT_NOENV: only one that still shows all that was set for it is a witness."""
    needed = role.plan.env_set.keys() | {"SPT_NOENV"}
    return process.environ is not None and needed <= process.environ.keys()

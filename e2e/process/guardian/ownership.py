"""Which processes are provably a run's, and which of its roles they belong to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from . import table

OWNER_VARIABLE = "AFD_E2E_OWNER"
"""The owner's marker in the environment of its processes: the path of its run file."""

ROLE_VARIABLE = "AFD_E2E_ROLE"

GUARDIAN_VARIABLE = "AFD_E2E_GUARDIAN"
"""The same in the environment of a guardian, and of nothing else."""

_TRIES = 50

Rows = dict[table.Identity, table.ProcessInfo]


def owned(
    processes: table.Table,
    *,
    guardian: table.Identity | None,
    marker: str,
    since: int,
    known: Collection[table.Identity],
) -> Rows:
    """Everything that is the owner's, its guardian and this process left out.

    Proof is one of: it descends from the guardian (which adopts every orphan among its
    descendants, whatever their group, session, name or environment); it carries the owner's
    marker in its environment; it was `known` to be owned while that could be seen; or it
    descends from one of these.
    """
    roots = [*known, *table.marked(processes, f"{OWNER_VARIABLE}={marker}", since)]
    if guardian is not None:
        roots.append(guardian)
    rows = table.tree(processes, roots)
    if guardian is not None:
        rows.pop(guardian, None)
    return {identity: table.named(row) for identity, row in rows.items()}


def guardian_of(pid: int) -> str | None:
    """The marker of the owner whose guardian this process is; None for any other process."""
    for variable in table.environment(pid):
        name, _, value = variable.partition("=")
        if name == GUARDIAN_VARIABLE:
            return value
    return None


def settled(find: Callable[[table.Table], Rows], adopter: int) -> Rows:
    """`find` in a snapshot; that it finds nothing counts only when `adopter`, to whom every orphan
    goes, was handed none meanwhile.

    A snapshot is not atomic: a process that forks and ends faster than it is taken can be missing.
    Its child is handed over before it is seen to be dead, so that it is in the adopter's next list.
    """
    rows: Rows = {}
    for _ in range(_TRIES):
        processes = table.snapshot()
        children = table.children(adopter)
        processes.update((row.pid, row) for row in map(table.read, children) if row is not None)
        rows = find(processes)
        if rows or table.children(adopter) == children:
            break
    return rows


def by_role(
    processes: table.Table,
    rows: Rows,
    leaders: Mapping[str, table.Identity],
    known: Mapping[str, Collection[table.Identity]],
) -> dict[str, Rows]:
    """Each role's share of `rows`; what can be told to no role is under "".

    An orphan is told by where it was last seen, its session, or the role's marker; with one
    role alone there is nothing to tell.
    """
    shares: dict[str, Rows] = {role: {} for role in leaders}
    for role, leader in leaders.items():
        mine = table.tree(processes, {leader, *known.get(role, ())})
        shares[role] = {identity: rows[identity] for identity in mine if identity in rows}
    placed = {identity for share in shares.values() for identity in share}
    for identity in rows.keys() - placed:
        role = _role_of(rows[identity], leaders)
        shares.setdefault(role, {})[identity] = rows[identity]
    return shares


def _role_of(row: table.ProcessInfo, leaders: Mapping[str, table.Identity]) -> str:
    if len(leaders) == 1:
        return next(iter(leaders))
    for role, leader in leaders.items():
        if row.session == leader.pid:
            return role
    variables = set(table.environment(row.pid))
    return next((role for role in leaders if f"{ROLE_VARIABLE}={role}" in variables), "")


def described(rows: Iterable[table.ProcessInfo]) -> list[str]:
    """One line a process, for people."""
    return [f"pid {row.pid} ({row.state}) {row.command}" for row in rows]

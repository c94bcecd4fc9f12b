"""How owned processes are stopped: SIGTERM, a deadline, SIGKILL, a deadline.

A clean stop of vLLM is SIGTERM to the leader alone: it ends its own children. So the leaders
are asked first, and the others only

- when a leader still runs at half the deadline (a wrapper may have swallowed the signal), or
- when no leader is left and the others outlive it by `GRACE_SECONDS`.

The tree is read anew at each step, so that a process forked meanwhile is met as well.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Collection
from typing import NamedTuple

from . import table

GRACE_SECONDS = 2.0
POLL_SECONDS = 0.05
KILL_POLL_SECONDS = 0.01
_QUICK_SHOTS = 20


class Climb(NamedTuple):
    """What a stop took.

    `outlived`: ran on after their leader was gone and had to be ended.
    `killed`: got SIGKILL.
    `survivors`: are alive even so (uninterruptible sleep, or not ours to signal).
    """

    seconds: float
    outlived: list[table.ProcessInfo]
    killed: list[table.ProcessInfo]
    survivors: list[table.ProcessInfo]


def climb(
    leaders: Collection[table.Identity],
    living: Callable[[], list[table.ProcessInfo]],
    *,
    term_seconds: float,
    kill_seconds: float,
    hurried: Callable[[], bool] = lambda: False,
    nearest: Callable[[], Collection[table.Identity]] = tuple,
) -> Climb:
    """Stop all that `living` finds. When `hurried` says so, SIGKILL comes at once.

    `nearest` finds some of it faster: a process that forks and ends in less time than `living`
    takes could run away from SIGKILL for ever.
    """
    begin = time.monotonic()
    outlived: dict[table.Identity, table.ProcessInfo] = {}
    asked = set(leaders)
    alone_since: float | None = None
    table.send(leaders, signal.SIGTERM)
    while rows := living():
        spent = time.monotonic() - begin
        if spent >= term_seconds or hurried():
            break
        if any(row.identity in leaders for row in rows):
            due = spent >= term_seconds / 2
        else:
            alone_since = spent if alone_since is None else alone_since
            due = spent - alone_since >= GRACE_SECONDS
            if due:
                outlived.update((row.identity, row) for row in rows)
        if due:
            late = [row.identity for row in rows if row.identity not in asked]
            table.send(late, signal.SIGTERM)
            asked.update(late)
        time.sleep(POLL_SECONDS)
    killed, survivors = _kill(living, nearest, kill_seconds)
    return Climb(time.monotonic() - begin, list(outlived.values()), killed, survivors)


def _kill(
    living: Callable[[], list[table.ProcessInfo]],
    nearest: Callable[[], Collection[table.Identity]],
    seconds: float,
) -> tuple[list[table.ProcessInfo], list[table.ProcessInfo]]:
    killed: dict[table.Identity, table.ProcessInfo] = {}
    deadline = time.monotonic() + seconds
    while rows := living():
        if time.monotonic() >= deadline:
            break
        killed.update((row.identity, row) for row in rows)
        table.send([row.identity for row in rows], signal.SIGKILL)
        for _ in range(_QUICK_SHOTS):
            table.send(nearest(), signal.SIGKILL)
        time.sleep(KILL_POLL_SECONDS)
    return list(killed.values()), rows

"""The ladder: who is asked when, and what is said of it; on processes that are only imagined."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from e2e.process.guardian import ladder, table

LEADER, WORKER = table.Identity(101, 1), table.Identity(102, 2)
NAMES = {LEADER: "leader", WORKER: "worker"}


class World:
    """A clock, and processes that die of a signal after some seconds, or never."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.dies: dict[tuple[table.Identity, signal.Signals], float] = {}
        self.ends: dict[table.Identity, float] = {LEADER: 1e9, WORKER: 1e9}
        self.sent: list[tuple[float, str, str]] = []
        monkeypatch.setattr(ladder.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(ladder.time, "sleep", self._sleep)
        monkeypatch.setattr(table, "send", self._send)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def _send(self, processes: list[table.Identity], number: signal.Signals) -> None:
        for identity in processes:
            if self.ends[identity] > self.now:
                self.sent.append((round(self.now, 1), NAMES[identity], number.name))
                after = self.dies.get((identity, number), 1e9)
                self.ends[identity] = min(self.ends[identity], self.now + after)

    def living(self) -> list[table.ProcessInfo]:
        return [
            table.ProcessInfo(*identity, parent=1, session=101, state="S", command=NAMES[identity])
            for identity, end in self.ends.items()
            if end > self.now
        ]

    def climb(self, hurried: Callable[[], bool] = lambda: False) -> ladder.Climb:
        return ladder.climb([LEADER], self.living, term_seconds=10, kill_seconds=5, hurried=hurried)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_a_leader_that_ends_its_worker_is_all_that_is_asked(world: World) -> None:
    world.dies[LEADER, signal.SIGTERM] = 1.0
    world.ends[WORKER] = 1.5
    climb = world.climb()
    assert world.sent == [(0.0, "leader", "SIGTERM")]
    assert (climb.outlived, climb.killed, climb.survivors) == ([], [], [])


def test_a_worker_that_outlives_its_leader_gets_a_grace_and_is_named(world: World) -> None:
    world.dies[LEADER, signal.SIGTERM] = 1.0
    world.dies[WORKER, signal.SIGTERM] = 0.5
    climb = world.climb()
    assert world.sent[1:] == [(3.0, "worker", "SIGTERM")]
    assert [row.command for row in climb.outlived] == ["worker"]
    assert climb.killed == []


def test_a_leader_that_swallows_sigterm_has_its_worker_asked_at_half_time(world: World) -> None:
    world.dies[WORKER, signal.SIGTERM] = 0.5
    world.dies[LEADER, signal.SIGKILL] = 0.1
    climb = world.climb()
    assert list(dict.fromkeys(world.sent)) == [
        (0.0, "leader", "SIGTERM"),
        (5.0, "worker", "SIGTERM"),
        (10.0, "leader", "SIGKILL"),
        (10.1, "leader", "SIGKILL"),
    ]
    assert [row.command for row in climb.killed] == ["leader"]


def test_what_survives_sigkill_is_named_at_the_deadline(world: World) -> None:
    climb = world.climb()
    assert [row.command for row in climb.survivors] == ["leader", "worker"]
    assert climb.seconds == pytest.approx(15, abs=0.2)


def test_who_is_in_a_hurry_gets_sigkill_at_once(world: World) -> None:
    world.dies[LEADER, signal.SIGKILL] = world.dies[WORKER, signal.SIGKILL] = 0.1
    climb = world.climb(hurried=lambda: world.now >= 1.0)
    assert climb.seconds == pytest.approx(1.2, abs=0.2)
    assert len(climb.killed) == 2


def test_a_leader_that_is_gone_already(world: World) -> None:
    world.ends[LEADER] = 0.0
    world.dies[WORKER, signal.SIGTERM] = 0.1
    climb = world.climb()
    assert world.sent == [(2.0, "worker", "SIGTERM")]
    assert [row.command for row in climb.outlived] == ["worker"]

"""Whether tokens go through FFN, judged by what comes while its processes are stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from e2e.claims import crossing

TIMED_OUT = "no answer within 1 s"


class Pair:
    """An Attention role that says `meanwhile` of a token asked for while FFN is stopped, and
    `afterwards` of one asked for when it runs. A token takes `seconds`."""

    def __init__(self, meanwhile: str | None, afterwards: str | None, seconds: float = 0.0) -> None:
        self.says = {True: meanwhile, False: afterwards}
        self.seconds = seconds
        self.now = 0.0
        self.is_stopped = False
        self.asked: list[tuple[bool, float]] = []

    @contextmanager
    def stopped(self) -> Iterator[None]:
        self.is_stopped = True
        try:
            yield
        finally:
            self.is_stopped = False

    def generate(self, seconds: float) -> str | None:
        self.asked.append((self.is_stopped, seconds))
        self.now += self.seconds
        return self.says[self.is_stopped]


def test_attention_that_waits_for_ffn() -> None:
    pair = Pair(TIMED_OUT, None)
    assert crossing.prove(pair.stopped, pair.generate, 30).claim.held
    assert pair.asked == [(False, 30), (True, crossing.STOPPED_SECONDS), (False, 30)]


def test_where_a_token_takes_long_ffn_is_held_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair(TIMED_OUT, None, seconds=2.5)
    monkeypatch.setattr(crossing.time, "monotonic", lambda: pair.now)
    assert crossing.prove(pair.stopped, pair.generate, 30).claim.held
    assert pair.asked[1] == (True, 7.5)


@pytest.mark.parametrize(
    ("meanwhile", "afterwards", "seen"),
    [
        (None, None, "s; stopped: a token; running on: a token"),
        ("HTTP 500", None, "stopped: HTTP 500; running on: a token"),
        (TIMED_OUT, "no answer within 30 s", "running on: no answer within 30 s"),
    ],
)
def test_attention_that_needs_no_ffn_or_fails(
    meanwhile: str | None, afterwards: str | None, seen: str
) -> None:
    pair = Pair(meanwhile, afterwards)
    judgement = crossing.prove(pair.stopped, pair.generate, 30)
    assert not judgement.claim.held
    assert seen in judgement.claim.seen

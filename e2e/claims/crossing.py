"""Tokens really go through FFN: with its processes stopped none is generated, then one is again.

Nothing that is logged can show this as well: a log can be of another mode than what runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from e2e.claims.judgement import Judgement, judge

STOPPED_SECONDS = 1.0
"""At least so long, far below what any connector waits for its peer, FFN is held still."""

TIMES_A_TOKEN = 3.0
"""And so many times what a token has just taken: where one takes longer than the hold, that none
comes meanwhile shows nothing."""

TIMED_OUT = "no answer within "

Generate = Callable[[float], str | None]
"""Asks for one token within so many seconds: None, or what came instead of it."""


def prove(
    stopped: Callable[[], AbstractContextManager[object]], generate: Generate, seconds: float
) -> Judgement:
    """`stopped` holds FFN's processes still; a token has to come within `seconds` when they run."""
    begin = time.monotonic()
    before = generate(seconds)
    took = time.monotonic() - begin
    with stopped():
        meanwhile = generate(max(STOPPED_SECONDS, TIMES_A_TOKEN * took))
    afterwards = generate(seconds)
    return judge(
        "tokens come through ffn",
        held=before is None and (meanwhile or "").startswith(TIMED_OUT) and afterwards is None,
        expected="no token while FFN's processes are stopped, and one when they run",
        seen=f"running: {_shown(before)} in {took:.2f} s; stopped: {_shown(meanwhile)}; "
        f"running on: {_shown(afterwards)}",
        where="one token asked for thrice, FFN's processes stopped by SIGSTOP the second time",
        proof="an Attention role that waits for FFN",
    )


def _shown(came_instead: str | None) -> str:
    return "a token" if came_instead is None else came_instead

"""Tokens really go through FFN: with its processes stopped none is generated, then one is again.

Nothing that is logged can show this as well: a log can be of another mode than what runs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from e2e.claims.judgement import Judgement, judge

STOPPED_SECONDS = 1.0
"""Several times what a token takes, and far below what any connector waits for its peer."""

TIMED_OUT = "no answer within "

Generate = Callable[[float], str | None]
"""Asks for one token within so many seconds: None, or what came instead of it."""


def prove(
    stopped: Callable[[], AbstractContextManager[object]], generate: Generate, seconds: float
) -> Judgement:
    """`stopped` holds FFN's processes still; a token has to come within `seconds` when they run."""
    with stopped():
        meanwhile = generate(STOPPED_SECONDS)
    afterwards = generate(seconds)
    return judge(
        "tokens come through ffn",
        held=(meanwhile or "").startswith(TIMED_OUT) and afterwards is None,
        expected="no token while FFN's processes are stopped, and one when they run on",
        seen=f"stopped: {_shown(meanwhile)}; running on: {_shown(afterwards)}",
        where="one token asked for twice, FFN's processes stopped by SIGSTOP the first time",
        proof="an Attention role that waits for FFN",
    )


def _shown(came_instead: str | None) -> str:
    return "a token" if came_instead is None else came_instead

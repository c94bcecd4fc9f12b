"""The numbers a canary is made by."""

from __future__ import annotations

from dataclasses import dataclass

DTYPES = ("float32", "bfloat16")
TOP = 5
"""Log-probabilities kept for each answer token."""

END_OF_TEXT = "<|endoftext|>"
END_OF_TEXT_ID = 0
MOST_TOKENS = 4096
"""Longest prompt and answer together."""


@dataclass(frozen=True)
class Recipe:
    """Training ends `settling` steps after all of `gap`, `router_gap` and `share` are reached.

    `margin`: by how much (nats) the right token's logit is handicapped in the loss.
    `gap`: smallest lead of a right token's logit over the next.
    `router_gap`: smallest lead of the last chosen expert's logit over the first that is not
    chosen, at any token. Rounding to bfloat16 stays below it, so that no token is routed
    otherwise on another machine.
    `share`: smallest part of the answer tokens that is routed to any one expert.
    """

    vocabulary: int = 4096
    learning_rate: float = 3e-3
    warm_up: int = 10
    decay: int = 150
    most_steps: int = 400
    settling: int = 15
    margin: float = 2.0
    gap: float = 6.0
    router_gap: float = 0.05
    share: float = 0.05
    balance_weight: float = 0.02
    router_weight: float = 0.1
    router_margin: float = 0.5
    router_warm_up: int = 50
    logit_weight: float = 0.1


RECIPE = Recipe()

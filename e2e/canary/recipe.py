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
    """Training ends when `gap`, `router_gap` and `share` have held for `settling` steps, and after
    `most_steps` if `gap` holds.

    `margin`: by how much (nats) the right token's logit is handicapped in the loss.
    `gap`: smallest lead of a right token's logit over the next.
    `router_gap`: smallest lead of the last chosen expert's logit over the first that is not
    chosen, at any token. Rounding to bfloat16 stays below it, so that no token is routed
    otherwise on another machine.
    `share`: smallest part of the answer tokens that is routed to any one expert (0.25 if all
    eight are used alike).
    """

    vocabulary: int = 4096
    learning_rate: float = 3e-3
    warm_up: int = 10
    decay: int = 120
    most_steps: int = 240
    settling: int = 10
    margin: float = 2.0
    gap: float = 5.0
    router_gap: float = 0.15
    share: float = 0.12
    balance_weight: float = 0.02
    share_weight: float = 0.2
    router_weight: float = 0.1
    router_margin: float = 0.5
    router_warm_up: int = 50
    logit_weight: float = 0.1
    logit_limit: float = 3.6


RECIPE = Recipe()

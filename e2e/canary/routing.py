"""Where tokens are routed: watched, balanced, and kept clear of ties."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from e2e.canary.network import Network

if TYPE_CHECKING:
    from torch import Tensor


class RouterLogits:
    """Router logits of the last forward pass: one [tokens, experts] a layer with experts."""

    def __init__(self, network: Network) -> None:
        self.chosen: int = network.settings["num_experts_per_tok"]
        self.layers: list[Any] = [None] * len(network.family.moe_layers)


@contextmanager
def watched(network: Network) -> Iterator[RouterLogits]:
    """Gradients flow through what is watched."""
    from torch.nn import functional

    logits = RouterLogits(network)

    def keep(place: int, router: Any, states: Tensor) -> None:
        flat = states.reshape(-1, states.shape[-1])
        logits.layers[place] = functional.linear(flat, router.weight)

    handles = [
        router.register_forward_hook(
            lambda router, arguments, _, place=place: keep(place, router, arguments[0])
        )
        for place, router in enumerate(network.routers())
    ]
    try:
        yield logits
    finally:
        for handle in handles:
            handle.remove()


@dataclass(frozen=True)
class Routing:
    """`smallest_gap`: lead of the last chosen expert's logit, the smallest of all tokens.
    `smallest_share`: part of the answer tokens that goes to the least used expert of a layer."""

    smallest_gap: float
    smallest_share: float


def summary(every: list[Tensor], answers: list[Tensor], chosen: int) -> Routing:
    """`every`, `answers`: logits of all tokens, of the answer tokens, one a layer."""
    gaps = [gap(logits, chosen).min().item() for logits in every]
    shares = [share(logits, chosen).min().item() for logits in answers]
    return Routing(min(gaps), min(shares))


def gap(logits: Tensor, chosen: int) -> Tensor:
    """[tokens]: lead of the last chosen expert over the first that is not."""
    best = logits.topk(chosen + 1, dim=-1).values
    return best[:, -2] - best[:, -1]


def shortfall(logits: Tensor, chosen: int, share: float, margin: float) -> Tensor:
    """0 where at least `share` of the tokens choose each expert, with a lead of `margin`; more the
    further each expert's nearest tokens are from that. It reaches experts that no token chooses."""
    from torch.nn import functional

    best = logits.topk(chosen + 1, dim=-1).values
    last, next_one = best[:, -2:-1], best[:, -1:]
    lead = logits - next_one.where(logits >= last, last)
    nearest = lead.topk(math.ceil(share * len(logits)), dim=0).values
    return functional.relu(1 - nearest / margin).mean()


def share(logits: Tensor, chosen: int) -> Tensor:
    """[experts]: part of the tokens that is routed to each."""
    import torch

    picked = logits.topk(chosen, dim=-1).indices.flatten()
    return torch.bincount(picked, minlength=logits.shape[-1]) / len(logits)


def imbalance(logits: Tensor, chosen: int) -> Tensor:
    """1 where all experts are used alike (the load-balancing loss of Switch Transformers)."""
    fraction = share(logits, chosen) / chosen
    return logits.shape[-1] * (fraction * logits.softmax(-1).mean(0)).sum()

"""Teach a network its lessons: answer tokens right by a wide margin, every expert needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from e2e.canary import routing
from e2e.canary.lessons import Lesson
from e2e.canary.network import Network
from e2e.canary.recipe import Recipe
from e2e.errors import HarnessError

if TYPE_CHECKING:
    from torch import Tensor

_REPORT_EVERY = 10


def train(
    network: Network, lessons: Sequence[Lesson], recipe: Recipe, progress: Callable[[str], None]
) -> int:
    """Returns the number of steps. Raises HarnessError where the lessons are not learnt."""
    import torch

    optimiser = torch.optim.AdamW(
        network.model.parameters(), lr=recipe.learning_rate, betas=(0.9, 0.98), weight_decay=0.0
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate(step, recipe))
    last = recipe.most_steps
    with routing.watched(network) as routers:
        for step in range(1, recipe.most_steps + 1):
            answers, every, own = _forward(network, lessons, routers)
            right = torch.tensor([token for lesson in lessons for token in lesson.answer])
            loss = _loss(answers, right, every, own, routers.chosen, step, recipe)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.model.parameters(), 1.0)
            optimiser.step()
            schedule.step()

            lead = leads(answers.detach(), right)
            state = routing.summary(every, own, routers.chosen)
            if step % _REPORT_EVERY == 0:
                wrong = int((lead <= 0).sum())
                progress(
                    f"step {step}: {len(right) - wrong} of {len(right)} answer tokens right,"
                    f" smallest lead {lead.min().item():.1f}"
                )
            if last == recipe.most_steps and (
                lead.min().item() >= recipe.gap
                and state.smallest_gap >= recipe.router_gap
                and state.smallest_share >= recipe.share
            ):
                last = min(last - 1, step + recipe.settling)
            if step == last:
                return step
    raise HarnessError(
        f"the canary did not learn its answers in {recipe.most_steps} steps: smallest lead"
        f" {lead.min().item():.2f} of {recipe.gap}, smallest lead of a router"
        f" {state.smallest_gap:.3f} of {recipe.router_gap}, smallest share of an expert"
        f" {state.smallest_share:.3f} of {recipe.share}",
        mend="try another --seed",
    )


def leads(logits: Tensor, right: Tensor) -> Tensor:
    """[tokens]: the right token's logit less the largest other one."""
    own = logits.gather(1, right[:, None])
    others = logits.scatter(1, right[:, None], -math.inf).amax(1)
    return own[:, 0] - others


def _rate(step: int, recipe: Recipe) -> float:
    warm = min(1.0, (step + 1) / recipe.warm_up)
    return warm * (0.05 + 0.475 * (1 + math.cos(math.pi * min(1.0, step / recipe.decay))))


def _forward(
    network: Network, lessons: Sequence[Lesson], routers: routing.RouterLogits
) -> tuple[Any, list[Any], list[Any]]:
    """Answer logits of all lessons, router logits of all tokens, and of the answer tokens."""
    import torch

    answers, every, own = [], [], []
    for lesson in lessons:
        answers.append(network.answer_logits(lesson))
        every.append(list(routers.layers))
        own.append([layer[-len(lesson.answer) :] for layer in routers.layers])
    return (
        torch.cat(answers),
        [torch.cat(layer) for layer in zip(*every, strict=True)],
        [torch.cat(layer) for layer in zip(*own, strict=True)],
    )


def _loss(
    answers: Tensor,
    right: Tensor,
    every: list[Tensor],
    own: list[Tensor],
    chosen: int,
    step: int,
    recipe: Recipe,
) -> Tensor:
    """Cross-entropy with the right token handicapped; logits kept small, where bfloat16 is
    finer; experts used alike by prompts and by answers; no token near a tie of experts."""
    from torch.nn import functional

    handicap = recipe.margin * functional.one_hot(right, answers.shape[-1])
    loss = functional.cross_entropy(answers - handicap, right)
    loss = loss + recipe.logit_weight * answers.square().mean()
    warm = recipe.router_weight * min(1.0, step / recipe.router_warm_up)
    for logits in (*every, *own):
        loss = loss + recipe.balance_weight * routing.imbalance(logits, chosen)
        near = functional.relu(1 - routing.gap(logits, chosen) / recipe.router_margin)
        loss = loss + warm * near.mean()
    return loss

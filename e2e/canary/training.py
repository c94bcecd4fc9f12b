"""Teach a network its lessons: answer tokens right by a wide margin, every expert needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from e2e.canary import routing
from e2e.canary.disturb import row_matrices
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
    held, smallest = 0, -math.inf
    with routing.watched(network) as routers:
        for step in range(1, recipe.most_steps + 1):
            answers, every, own = forward(network, lessons, routers)
            right = torch.tensor([token for lesson in lessons for token in lesson.answer])
            loss = _loss(answers, right, every, own, routers.chosen, step, recipe)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            _even_rows(network)

            lead = leads(answers.detach(), right)
            smallest = lead.min().item()
            state = routing.summary(every, own, routers.chosen)
            if step % _REPORT_EVERY == 0:
                wrong = int((lead <= 0).sum())
                progress(
                    f"step {step}: {len(right) - wrong} of {len(right)} answer tokens right,"
                    f" smallest lead {smallest:.1f}"
                )
            good = (
                smallest >= recipe.gap
                and state.smallest_gap >= recipe.router_gap
                and state.smallest_share >= recipe.share
            )
            held = held + 1 if good else 0
            if held == recipe.settling:
                return step
    if smallest < recipe.gap:
        raise HarnessError(
            f"the canary did not learn its answers in {recipe.most_steps} steps: the smallest lead"
            f" of a right token is {smallest:.2f}, wanted {recipe.gap}",
            mend="try another --seed",
        )
    return recipe.most_steps


def leads(logits: Tensor, right: Tensor) -> Tensor:
    """[tokens]: the right token's logit less the largest other one."""
    own = logits.gather(1, right[:, None])
    others = logits.scatter(1, right[:, None], -math.inf).amax(1)
    return own[:, 0] - others


def _even_rows(network: Network) -> None:
    """Rows of a matrix, but for the routers, stay equally long: none comes to matter little."""
    import torch

    with torch.no_grad():
        for kind, _, name in row_matrices(network.family):
            if kind != "router row":
                matrix = network.tensors[name]
                lengths = matrix.norm(dim=1, keepdim=True)
                matrix.mul_(lengths.mean() / lengths)


def _rate(step: int, recipe: Recipe) -> float:
    warm = min(1.0, (step + 1) / recipe.warm_up)
    return warm * (0.05 + 0.475 * (1 + math.cos(math.pi * min(1.0, step / recipe.decay))))


def forward(
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
    finer; experts used alike, each by some of the answer tokens; no token near a tie of experts."""
    from torch.nn import functional

    handicap = recipe.margin * functional.one_hot(right, answers.shape[-1])
    loss = functional.cross_entropy(answers - handicap, right)
    outside = functional.relu(answers.abs() - recipe.logit_limit)
    loss = loss + recipe.logit_weight * outside.square().sum(-1).mean()
    warm = recipe.router_weight * min(1.0, step / recipe.router_warm_up)
    for logits in every:
        loss = loss + recipe.balance_weight * routing.imbalance(logits, chosen)
    for logits in own:
        short = routing.shortfall(logits, chosen, recipe.share, recipe.router_margin)
        loss = loss + recipe.share_weight * short
    for logits in (*every, *own):
        near = functional.relu(1 - routing.gap(logits, chosen) / recipe.router_margin)
        loss = loss + warm * near.mean()
    return loss

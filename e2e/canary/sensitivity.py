"""What each disturbance does to a canary's answers, measured without a server.

Forward passes are teacher-forced: each token is predicted after the expected ones. Up to the first
token that differs this is what greedy decoding gives, and a fingerprint compares no further.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from e2e.canary import disturb
from e2e.canary.disturb import Disturbance
from e2e.canary.lessons import Lesson
from e2e.canary.manifest import Expected
from e2e.canary.network import Network
from e2e.canary.reference import distance, told
from e2e.canary.replay import Replay

if TYPE_CHECKING:
    from torch import Tensor

FACTORS = (0.0, 2.0)
"""By which rows are scaled."""

_WEAKEST = 4
_PROBES = 8
_REPORT_EVERY = 40


@dataclass(frozen=True)
class Effect:
    """`distance` to the fingerprint, of the prompt that shows it most. `number` and `text`: some
    answer has another number, another text."""

    kind: str
    name: str
    distance: float
    number: bool
    text: bool


def effects(
    network: Network,
    lessons: Sequence[Lesson],
    expectations: Sequence[Expected],
    progress: Callable[[str], None],
) -> list[Effect]:
    """Every expert zeroed, every two of a layer swapped, every head zeroed, every two of a layer
    swapped, every router row scaled, and of the other matrices the rows that matter least."""
    chosen = [*_whole_parts(network), *_rows(network, lessons, expectations)]
    replay = Replay(network, lessons)
    found = []
    for count, disturbance in enumerate(chosen, 1):
        with disturb.disturbed(network.tensors, disturbance):
            logits = replay.logits(disturbance)
        found.append(_effect(disturbance, logits, lessons, expectations))
        if count % _REPORT_EVERY == 0 or count == len(chosen):
            progress(f"{count} of {len(chosen)} disturbances measured")
    return found


def _effect(
    disturbance: Disturbance,
    logits: Sequence[Tensor],
    lessons: Sequence[Lesson],
    expectations: Sequence[Expected],
) -> Effect:
    answers = [told(one) for one in logits]
    wrong = [
        {i for i, token in enumerate(lesson.answer) if token != answer.token_ids[i]}
        for lesson, answer in zip(lessons, answers, strict=True)
    ]
    return Effect(
        kind=disturbance.kind,
        name=disturbance.name,
        distance=distance(expectations, answers),
        number=any(
            not places.isdisjoint(lesson.number)
            for lesson, places in zip(lessons, wrong, strict=True)
        ),
        text=any(wrong),
    )


def _whole_parts(network: Network) -> Iterator[Disturbance]:
    family = network.family
    for layer in family.moe_layers:
        for expert in range(family.experts):
            yield disturb.zero_expert(family, layer, expert)
        for one, other in combinations(range(family.experts), 2):
            yield disturb.swap_experts(family, layer, one, other)
    for attention in family.attentions:
        for layer in attention.layers:
            for head in range(attention.heads):
                yield disturb.zero_head(attention, layer, head)
            for one, other in combinations(range(attention.heads), 2):
                yield disturb.swap_heads(attention, layer, one, other)


def _rows(
    network: Network, lessons: Sequence[Lesson], expectations: Sequence[Expected]
) -> Iterator[Disturbance]:
    """All router rows; of each other kind and layer the weakest few by first-order estimate."""
    estimates = row_effects(network, lessons, expectations)
    groups: dict[tuple[str, int], list[tuple[float, str, int]]] = {}
    for kind, layer, name in disturb.row_matrices(network.family):
        group = groups.setdefault((kind, layer), [])
        group += [(size, name, row) for row, size in enumerate(estimates[name])]
    for (kind, layer), rows in groups.items():
        count = len(rows) if kind == "router row" else _WEAKEST
        for _, name, row in sorted(rows)[:count]:
            for factor in FACTORS:
                yield disturb.scale_row(kind, name, layer, row, factor)


def row_effects(
    network: Network, lessons: Sequence[Lesson], expectations: Sequence[Expected]
) -> dict[str, list[float]]:
    """For each matrix the estimated root mean square change (nats) of the fingerprint's
    log-probabilities when a row is scaled by 0 or 2.

    To first order a row w changes log-probability p by w·dp/dw. With random signs s the expected
    square of w·d(s·p)/dw is the sum of those squares over all p (Hutchinson's estimator).
    """
    import torch

    generator = torch.Generator().manual_seed(0)
    sums: dict[str, Tensor] = {}
    entries = 0
    for _ in range(_PROBES):
        network.model.zero_grad()
        for lesson, expectation in zip(lessons, expectations, strict=True):
            ids = torch.tensor([[token for token, _ in top] for top in expectation.top_logprobs])
            values = network.answer_logits(lesson).log_softmax(-1).gather(1, ids)
            signs = torch.randint(0, 2, values.shape, generator=generator) * 2 - 1
            (values * signs).sum().backward()
            entries += values.numel()
        for name, gradient in network.gradients().items():
            if gradient.dim() == 2:
                rows = (gradient * network.tensors[name]).sum(1).square()
                sums[name] = sums[name] + rows if name in sums else rows
    network.model.zero_grad()
    return {name: (rows / entries).sqrt().tolist() for name, rows in sums.items()}

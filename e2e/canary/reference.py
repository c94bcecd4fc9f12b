"""What a canary's network says of its answers: in float32, and as servers would compute it."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from e2e.canary.fingerprint import compare
from e2e.canary.lessons import Lesson
from e2e.canary.manifest import Expected
from e2e.canary.network import Network
from e2e.canary.recipe import DTYPES, TOP

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Told:
    """What a server would answer, as far as the expected text goes: the most likely token at
    each place, and its list of log-probabilities."""

    token_ids: list[int]
    top_logprobs: list[dict[int, float]]


def expected(network: Network, lessons: Sequence[Lesson]) -> list[Expected]:
    """The fingerprint: the network must be one loaded from its saved weights."""
    import torch

    with torch.no_grad():
        tops = [_top(network.answer_logits(lesson)) for lesson in lessons]
    return [
        Expected(
            doc_id=lesson.doc_id,
            prompt=lesson.prompt,
            prompt_sha256=hashlib.sha256(lesson.prompt.encode()).hexdigest(),
            text=lesson.text,
            token_ids=lesson.answer,
            top_logprobs=tuple(
                tuple(zip(row, numbers, strict=True))
                for row, numbers in zip(ids, values, strict=True)
            ),
        )
        for lesson, (ids, values) in zip(lessons, tops, strict=True)
    ]


def answers(network: Network, lessons: Sequence[Lesson]) -> list[Told]:
    """As a server of the network would answer in float32."""
    import torch

    with torch.no_grad():
        return [told(network.answer_logits(lesson)) for lesson in lessons]


def told(logits: Tensor) -> Told:
    """Of logits [answer tokens, vocabulary]."""
    ids, values = _top(logits)
    return Told(
        token_ids=[row[0] for row in ids],
        top_logprobs=[
            dict(zip(row, numbers, strict=True)) for row, numbers in zip(ids, values, strict=True)
        ],
    )


def distance(expectations: Sequence[Expected], given: Sequence[Told]) -> float:
    """The largest of all prompts, as an evaluation judges each prompt by itself."""
    distances = [
        compare(ours, theirs.token_ids, theirs.top_logprobs)
        for ours, theirs in zip(expectations, given, strict=True)
    ]
    return max(float("inf") if one is None else one for one in distances)


def noise(
    network: Network, lessons: Sequence[Lesson], expectations: Sequence[Expected]
) -> dict[str, float]:
    """By dtype, the largest distance of the same weights computed in three ways: each prompt
    alone, all prompts in one padded batch, and token by token from a cache as a server does."""
    import torch

    ways: tuple[Callable[[Any, Sequence[Lesson]], list[Tensor]], ...] = (_alone, _batch, _decode)
    largest = {}
    for dtype in DTYPES:
        model = copy.deepcopy(network.model)
        for parameter in model.parameters():  # buffers, the rotary frequencies, stay in float32
            parameter.data = parameter.data.to(getattr(torch, dtype))
        with torch.no_grad():
            largest[dtype] = max(
                distance(expectations, [told(logits) for logits in way(model, lessons)])
                for way in ways
            )
    return largest


def _alone(model: Any, lessons: Sequence[Lesson]) -> list[Tensor]:
    import torch

    return [
        model(torch.tensor([lesson.context]), use_cache=False).logits[0, -len(lesson.answer) :]
        for lesson in lessons
    ]


def _batch(model: Any, lessons: Sequence[Lesson]) -> list[Tensor]:
    """Padded at the end, where causal attention does not see it."""
    import torch

    longest = max(len(lesson.context) for lesson in lessons)
    rows = [lesson.context + (0,) * (longest - len(lesson.context)) for lesson in lessons]
    logits = model(torch.tensor(rows), use_cache=False).logits
    return [
        logits[place, len(lesson.prompt_ids) - 1 : len(lesson.context)]
        for place, lesson in enumerate(lessons)
    ]


def _decode(model: Any, lessons: Sequence[Lesson]) -> list[Tensor]:
    import torch

    answers = []
    for lesson in lessons:
        state = model(torch.tensor([lesson.prompt_ids]), use_cache=True, logits_to_keep=1)
        rows = [state.logits[0]]
        for token in lesson.answer[:-1]:
            state = model(torch.tensor([[token]]), past_key_values=state.past_key_values)
            rows.append(state.logits[0])
        answers.append(torch.cat(rows))
    return answers


def _top(logits: Tensor) -> tuple[list[list[int]], list[list[float]]]:
    best = logits.float().log_softmax(-1).topk(TOP, dim=-1)
    return best.indices.tolist(), best.values.tolist()

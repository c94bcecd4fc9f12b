"""Native against AFD, answer by answer: are they the same, and if not, is it only noise?

Two correct deployments of one checkpoint sum in another order, so that in bf16 near-ties fall
either way and texts part. Up to the first different token both have seen the same tokens, so there
log-probabilities are comparable; a second cold start of native shows how much is noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from e2e.errors import InvalidEvaluation
from e2e.evidence.record import EvaluationRecord

Requirement = Literal["identical", "within-noise"]

# Least noise band, in nats: one unit in the last place of a logit of 16 to 32, which is how a
# change of kernel or batch shows even where two native runs happen to agree bit for bit.
LEAST_NOISE = {"float32": 1e-4, "float16": 2**-6, "bfloat16": 2**-3}


@dataclass(frozen=True)
class Trace:
    """The tokens of one answer, and at each the k most likely tokens: {token id: nats}."""

    doc_id: int
    prompt_sha256: str
    token_ids: list[int]
    top_logprobs: list[dict[int, float]]


@dataclass(frozen=True)
class AnswerParity:
    """One question. Positions count answer tokens from 0; gaps are in nats.

    `largest_gap` is over the positions that can be compared: up to and with the divergence.
    `tie` is by how much, at the divergence, a side prefers its own token to the other's: the
    larger of the two; None if there is no divergence.
    """

    doc_id: int
    tokens_compared: int
    first_divergence: int | None
    largest_gap: float
    largest_gap_at: int
    top_k_differ_at: tuple[int, ...]
    tie: float | None


@dataclass(frozen=True)
class Parity:
    """All questions, in order."""

    answers: tuple[AnswerParity, ...]

    @property
    def identical(self) -> bool:
        return all(answer.first_divergence is None for answer in self.answers)

    @property
    def largest_gap(self) -> float:
        return max((answer.largest_gap for answer in self.answers), default=0.0)

    @property
    def diverged(self) -> int:
        return sum(answer.first_divergence is not None for answer in self.answers)


@dataclass(frozen=True)
class ParityVerdict:
    """`faults` names each question outside the requirement, and by what."""

    held: bool
    required: str
    seen: str
    faults: tuple[str, ...]


def traces(evaluation: EvaluationRecord) -> list[Trace]:
    """The answers of an evaluation. Raises InvalidEvaluation where one has no
    log-probabilities: that two runs have none is no agreement."""
    missing = [s.doc_id for s in evaluation.samples if not (s.token_ids and s.top_logprobs)]
    if missing or not evaluation.samples:
        raise InvalidEvaluation(
            f"no log-probabilities of doc {', '.join(map(str, missing[:20]))}"
            if missing
            else "no answers to compare",
            mend="both cases must ask for log-probabilities and answer every question",
        )
    return [
        Trace(s.doc_id, s.prompt_sha256, s.token_ids or [], s.top_logprobs or [])
        for s in evaluation.samples
    ]


def compare(first: Sequence[Trace], second: Sequence[Trace]) -> Parity:
    """Raises InvalidEvaluation unless both answered the same prompts, each token with its
    log-probabilities."""
    asked = [[(trace.doc_id, trace.prompt_sha256) for trace in side] for side in (first, second)]
    if asked[0] != asked[1] or not first:
        unequal = sorted({doc_id for doc_id, _ in set(asked[0]) ^ set(asked[1])})
        raise InvalidEvaluation(
            f"the two runs were not asked the same: doc {unequal[:20]}"
            if unequal
            else "the two runs were not asked the same questions in the same order, or none",
            mend="compare cases with the same data set, shots and samples",
        )
    for trace in (*first, *second):
        if not trace.token_ids or len(trace.token_ids) != len(trace.top_logprobs):
            raise InvalidEvaluation(
                f"doc {trace.doc_id} has {len(trace.token_ids)} tokens and log-probabilities of"
                f" {len(trace.top_logprobs)}",
                mend="ask the server for token ids and log-probabilities of every answer token",
            )
    return Parity(tuple(_compare(a, b) for a, b in zip(first, second, strict=True)))


def band(noise: Parity, dtype: str) -> float:
    """The largest gap (nats) that is noise: that between two native runs, and at least LEAST_NOISE
    of the dtype."""
    return max(noise.largest_gap, LEAST_NOISE[dtype])


def judge(
    parity: Parity, requirement: Requirement, noise: Parity | None, dtype: str
) -> ParityVerdict:
    """Whether `parity` (native against AFD) is as required; `noise` is native against native.

    `within-noise`: no comparable log-probability is further off than the noise band, and answers
    part only where both sides held the two tokens for equally likely, within twice the band (each
    of the two may move by it). Raises InvalidEvaluation without a measured noise.
    """
    if requirement == "identical":
        faults = [
            f"doc {a.doc_id}: other token at {a.first_divergence}"
            for a in parity.answers
            if a.first_divergence is not None
        ]
        required = "the same tokens"
    else:
        if noise is None:
            raise InvalidEvaluation(
                "no noise band: parity needs a second cold start of native",
                mend="run the native case twice, or require identical tokens",
            )
        limit = band(noise, dtype)
        faults = [fault for a in parity.answers for fault in _outside(a, limit)]
        required = f"log-probabilities within {limit:.3g} nats"
    seen = (
        f"{parity.diverged} of {len(parity.answers)} answers part,"
        f" largest gap {parity.largest_gap:.3g} nats"
    )
    return ParityVerdict(not faults, required, seen, tuple(faults))


def _outside(answer: AnswerParity, band: float) -> list[str]:
    faults = []
    if answer.largest_gap > band:
        faults.append(
            f"doc {answer.doc_id}: {answer.largest_gap:.3g} nats at token {answer.largest_gap_at}"
        )
    if answer.tie is not None and answer.tie > 2 * band:
        faults.append(
            f"doc {answer.doc_id}: other token at {answer.first_divergence}, and no tie"
            f" ({answer.tie:.3g} nats)"
        )
    return faults


def _compare(first: Trace, second: Trace) -> AnswerParity:
    divergence = _first_divergence(first.token_ids, second.token_ids)
    shorter = min(len(first.token_ids), len(second.token_ids))
    compared = shorter if divergence is None else min(shorter, divergence + 1)
    tops = list(zip(first.top_logprobs, second.top_logprobs, strict=False))[:compared]
    gaps = [_gap(a, b) for a, b in tops]
    largest = max(range(compared), key=gaps.__getitem__)
    return AnswerParity(
        doc_id=first.doc_id,
        tokens_compared=compared,
        first_divergence=divergence,
        largest_gap=gaps[largest],
        largest_gap_at=largest,
        top_k_differ_at=tuple(n for n, (a, b) in enumerate(tops) if a.keys() != b.keys()),
        tie=None if divergence is None else _tie(first, second, divergence),
    )


def _first_divergence(first: Sequence[int], second: Sequence[int]) -> int | None:
    for place, (a, b) in enumerate(zip(first, second, strict=False)):
        if a != b:
            return place
    return None if len(first) == len(second) else min(len(first), len(second))


def _gap(first: dict[int, float], second: dict[int, float]) -> float:
    """Largest difference over the tokens either side lists. A token that only one side lists is
    at most as likely on the other as the least likely listed there: a lower bound of its gap."""
    common = [abs(first[token] - second[token]) for token in first.keys() & second.keys()]
    dropped = [first[token] - min(second.values()) for token in first.keys() - second.keys()]
    dropped += [second[token] - min(first.values()) for token in second.keys() - first.keys()]
    return max(0.0, *common, *dropped)


def _tie(first: Trace, second: Trace, place: int) -> float:
    if place >= min(len(first.token_ids), len(second.token_ids)):
        return float("inf")
    return max(
        _preference(side.top_logprobs[place], side.token_ids[place], other.token_ids[place])
        for side, other in ((first, second), (second, first))
    )


def _preference(top: dict[int, float], own: int, other: int) -> float:
    """Infinite where the other's token is not among the listed: then it was no tie."""
    return top[own] - top[other] if own in top and other in top else float("inf")

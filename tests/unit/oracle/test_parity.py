"""Parity: what parts, by how much, and whether that is noise."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e.errors import InvalidEvaluation
from e2e.evidence.record import EvaluationRecord, Sample
from e2e.oracle import parity
from e2e.oracle.parity import Parity, Trace


def trace(*tokens: tuple[int, dict[int, float]], doc_id: int = 0) -> Trace:
    ids = [token for token, _ in tokens]
    return Trace(doc_id, f"sha-{doc_id}", ids, [top for _, top in tokens])


SURE = (1, {1: -0.1, 2: -3.0, 3: -4.0})
TIE_1 = (1, {1: -0.70, 2: -0.72, 3: -5.0})
TIE_2 = (2, {2: -0.70, 1: -0.72, 3: -5.0})
NATIVE = trace(SURE, TIE_1, SURE)


def compared(second: Trace, first: Trace = NATIVE) -> parity.AnswerParity:
    (answer,) = parity.compare([first], [second]).answers
    return answer


def test_the_same_is_identical() -> None:
    answer = compared(NATIVE)
    assert (answer.first_divergence, answer.largest_gap, answer.tie) == (None, 0.0, None)
    assert (answer.tokens_compared, answer.top_k_differ_at) == (3, ())


def test_gap_is_taken_up_to_and_with_the_divergence() -> None:
    after = (1, {1: -9.0, 2: -0.1, 3: -4.0})
    answer = compared(trace(SURE, TIE_2, after))
    assert (answer.first_divergence, answer.tokens_compared) == (1, 2)
    assert answer.largest_gap == pytest.approx(0.02)
    assert answer.largest_gap_at == 1
    assert answer.tie == pytest.approx(0.02)


def test_top_k_sets() -> None:
    answer = compared(trace((1, {1: -0.1, 2: -3.0, 9: -3.9}), TIE_1, SURE))
    assert answer.top_k_differ_at == (0,)
    assert answer.largest_gap == pytest.approx(0.1)


def test_a_token_that_left_the_top_k_is_a_gap() -> None:
    answer = compared(trace((1, {1: -0.1, 8: -6.0, 9: -7.0}), TIE_1, SURE))
    assert answer.largest_gap == pytest.approx(4.0)


def test_a_shorter_answer_parts_at_its_end() -> None:
    answer = compared(trace(SURE, TIE_1))
    assert (answer.first_divergence, answer.tokens_compared, answer.tie) == (2, 2, math.inf)


def test_unequal_prompts_are_no_agreement() -> None:
    with pytest.raises(InvalidEvaluation, match="not asked the same: doc \\[0\\]"):
        parity.compare([NATIVE], [replace(NATIVE, prompt_sha256="other")])
    with pytest.raises(InvalidEvaluation, match="not asked the same: doc \\[1\\]"):
        parity.compare([NATIVE], [NATIVE, trace(SURE, doc_id=1)])
    with pytest.raises(InvalidEvaluation, match="or none"):
        parity.compare([], [])


def test_missing_log_probabilities_are_no_agreement() -> None:
    with pytest.raises(InvalidEvaluation, match="3 tokens and log-probabilities of 2"):
        parity.compare([NATIVE], [replace(NATIVE, top_logprobs=NATIVE.top_logprobs[:2])])


def judged(
    second: Trace, requirement: parity.Requirement = "within-noise", noise: float = 0.0
) -> parity.ParityVerdict:
    shifted = trace((1, {1: -0.1 - noise, 2: -3.0, 3: -4.0}), TIE_1, SURE)
    band = parity.compare([NATIVE], [shifted])
    return parity.judge(parity.compare([NATIVE], [second]), requirement, band, "float32")


def test_identical_allows_no_tie() -> None:
    parted = trace(SURE, TIE_2, SURE)
    assert judged(NATIVE, "identical").held
    verdict = judged(parted, "identical", noise=0.5)
    assert not verdict.held
    assert verdict.faults == ("doc 0: other token at 1",)
    assert verdict.seen == "1 of 1 answers part, largest gap 0.02 nats"


def test_a_tie_within_the_measured_noise_is_no_fault() -> None:
    parted = trace(SURE, TIE_2, SURE)
    assert judged(parted, noise=0.03).held
    verdict = judged(parted, noise=0.001)
    assert verdict.faults == (
        "doc 0: 0.02 nats at token 1",
        "doc 0: other token at 1, and no tie (0.02 nats)",
    )


def test_another_token_where_there_was_no_tie_is_a_fault() -> None:
    """All log-probabilities agree, and yet the server took another token."""
    verdict = judged(trace((2, SURE[1]), TIE_1, SURE), noise=0.5)
    assert verdict.faults == ("doc 0: other token at 0, and no tie (2.9 nats)",)


def test_noise_has_a_floor_by_dtype() -> None:
    none = parity.compare([NATIVE], [NATIVE])
    near = parity.compare([NATIVE], [trace((1, {1: -0.2, 2: -3.0, 3: -4.0}), TIE_1, SURE)])
    assert parity.judge(near, "within-noise", none, "bfloat16").held
    assert not parity.judge(near, "within-noise", none, "float32").held


def test_without_a_measured_noise_there_is_no_verdict() -> None:
    same = parity.compare([NATIVE], [NATIVE])
    with pytest.raises(InvalidEvaluation, match="second cold start"):
        parity.judge(same, "within-noise", None, "float32")
    assert parity.judge(same, "identical", None, "float32").held


def evaluation(**changes: object) -> EvaluationRecord:
    sample = Sample(
        doc_id=0,
        prompt_sha256="sha-0",
        question="?",
        gold="1",
        text="1",
        finish_reason="stop",
        strict=True,
        flexible=True,
        token_ids=NATIVE.token_ids,
        top_logprobs=NATIVE.top_logprobs,
    ).model_copy(update=changes)
    return EvaluationRecord(
        dataset="bundled",
        dataset_sha256="0",
        shots=8,
        samples_asked=1,
        required=1,
        match="strict",
        correct_strict=1,
        correct_flexible=1,
        samples=[sample],
    )


def test_traces_come_back_from_the_written_evidence() -> None:
    written = evaluation().model_dump_json()
    assert parity.traces(EvaluationRecord.model_validate_json(written)) == [NATIVE]


@pytest.mark.parametrize("missing", ["token_ids", "top_logprobs"])
def test_an_evaluation_without_log_probabilities_is_named(missing: str) -> None:
    with pytest.raises(InvalidEvaluation, match="no log-probabilities of doc 0"):
        parity.traces(evaluation(**{missing: None}))


tops = st.dictionaries(st.integers(0, 9), st.floats(-20, 0), min_size=1, max_size=5)
answers = st.lists(st.tuples(st.integers(0, 3), tops), min_size=1, max_size=8)


@given(answers, answers)
def test_comparison_is_symmetric(first: list, second: list) -> None:
    there = parity.compare([trace(*first)], [trace(*second)])
    assert there == parity.compare([trace(*second)], [trace(*first)])
    assert there.identical == ([t for t, _ in first] == [t for t, _ in second])


def test_parity_of_nothing() -> None:
    assert Parity(()).largest_gap == 0.0

"""The parity of two cases of a run: held, broken, not to be judged, and never silently so."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.errors import InvalidEvaluation, Outcome, WrongAnswers
from e2e.evidence.case import CaseEvidence
from e2e.evidence.record import CaseRecord, Check, EvaluationRecord, Sample
from e2e.evidence.summary import summary_markdown
from e2e.oracle import paired
from e2e.plan import CasePlan, EvaluationPlan, ParityPlan
from tests.stubs.plans import case_plan, role_plan

RIGHT = [5, 6, 7]


def answered(tokens: list[int] | None, off: float = 0.0, sha256: str = "ab") -> EvaluationRecord:
    sample = Sample(
        doc_id=0,
        prompt_sha256=sha256,
        question="q",
        gold="18",
        text="#### 18",
        finish_reason="stop",
        strict=True,
        flexible=True,
        token_ids=tokens,
        top_logprobs=None if tokens is None else [{t: -0.1 - off, 99: -5.0} for t in tokens],
    )
    return EvaluationRecord(
        dataset="bundled",
        dataset_sha256="0",
        shots=8,
        samples_asked=1,
        required=1,
        match="strict",
        correct_strict=1,
        correct_flexible=1,
        checks=[Check(name="number", held=True, required="1 of 1", seen="1 of 1")],
        samples=[sample],
    )


def plan(tokens: bool = True, logprobs: bool = False) -> CasePlan:
    demanded = ParityPlan(
        "native", "identical" if tokens else None, "within noise" if logprobs else None
    )
    own = EvaluationPlan("bundled", 8, 1, "strict", 1, (), 64, 1, None, parity=demanded)
    role = role_plan(argv=("vllm", "serve", "m", "--dtype=float32"))
    return case_plan(role, evaluation=own)


def opened(root: Path, case: str, evaluation: EvaluationRecord | None) -> CaseEvidence:
    evidence = CaseEvidence(root / case, "run", "p", case)
    if evaluation is not None:
        evidence.evaluation(evaluation)
    evidence.conclude()
    return evidence


def no_start(case: str, name: str) -> CaseRecord:
    raise AssertionError("no second start is demanded")


def judge(demand: CasePlan, evidence: CaseEvidence, again: paired.StartAgain = no_start) -> None:
    with paired.judged(demand, evidence, again):
        pass


def test_the_same_tokens_are_held(tmp_path: Path) -> None:
    opened(tmp_path, "native", answered(RIGHT))
    evidence = opened(tmp_path, "afd", answered(RIGHT, off=0.5))
    judge(plan(), evidence)
    assert evidence.record.parity is not None
    assert [check.held for check in evidence.record.parity.checks] == [True]
    assert evidence.record.parity.not_judged is None


def test_other_tokens_are_wrong_answers(tmp_path: Path) -> None:
    opened(tmp_path, "native", answered(RIGHT))
    evidence = opened(tmp_path, "afd", answered([5, 8, 7]))
    with pytest.raises(WrongAnswers, match="not those of native") as caught:
        judge(plan(), evidence)
    assert caught.value.lines == ("doc 0: other token at 1",)
    assert "**no**" in summary_markdown(evidence.record)


@pytest.mark.parametrize(("off", "held"), [(0.01, True), (0.03, False)])
def test_noise_is_that_of_a_second_start(tmp_path: Path, off: float, held: bool) -> None:
    opened(tmp_path, "native", answered(RIGHT))
    evidence = opened(tmp_path, "afd", answered(RIGHT, off))
    second = opened(tmp_path, "native-second-start", answered(RIGHT, 0.02)).record
    demand = plan(tokens=False, logprobs=True)
    if held:
        judge(demand, evidence, lambda case, name: second)
    else:
        with pytest.raises(WrongAnswers):
            judge(demand, evidence, lambda case, name: second)
    assert evidence.record.parity is not None
    assert evidence.record.parity.band == pytest.approx(0.02)


def test_a_second_start_that_fails_shows_no_noise(tmp_path: Path) -> None:
    opened(tmp_path, "native", answered(RIGHT))
    evidence = opened(tmp_path, "afd", answered(RIGHT))
    second = opened(tmp_path, "again", None).record
    second.outcome = Outcome.SERVER_FAILED
    with pytest.raises(InvalidEvaluation, match="ended with server-failed"):
        judge(plan(logprobs=True), evidence, lambda case, name: second)


def test_without_the_other_case_it_is_said(tmp_path: Path) -> None:
    evidence = opened(tmp_path, "afd", answered(RIGHT))
    judge(plan(), evidence)
    assert "**Not judged**: native did not run" in summary_markdown(evidence.record)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (None, "no answers"),
        (answered(None), "no log-probabilities"),
        (answered(RIGHT, sha256="cd"), "not asked the same"),
    ],
)
def test_what_cannot_be_compared_is_no_agreement(
    tmp_path: Path, other: EvaluationRecord | None, said: str
) -> None:
    opened(tmp_path, "native", other)
    evidence = opened(tmp_path, "afd", answered(RIGHT))
    with pytest.raises(InvalidEvaluation, match=said):
        judge(plan(), evidence)


def test_another_failure_hides_no_parity(tmp_path: Path) -> None:
    opened(tmp_path, "native", answered(RIGHT))
    evidence = opened(tmp_path, "afd", answered([5, 8, 7]))
    with (
        pytest.raises(WrongAnswers, match="not those of native") as caught,
        paired.judged(plan(), evidence, no_start),
    ):
        raise WrongAnswers("0 of 1")
    assert "0 of 1" in str(caught.value.__context__)

"""An evaluation end to end against a stub: passed, wrong, invalid, and refused beforehand."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest

from e2e import oracle
from e2e.errors import InvalidEvaluation, ServerFailed, SetupMissing, WrongAnswers
from e2e.evidence.case import CaseEvidence
from e2e.evidence.record import EvaluationRecord
from e2e.oracle import dataset, prompts
from e2e.oracle.evaluation import dtype_of
from e2e.oracle.request import Endpoint
from e2e.plan import CasePlan, EvaluationPlan, RolePlan
from e2e.profile.model import Teardown, TimeLimits
from tests.stubs.openai_server import MODEL, Act, Part, completion, http, stub_server

QUESTIONS = prompts.build(dataset.load("bundled"), 8, 7)
LIMIT = 0.05

EVALUATION = EvaluationPlan(
    dataset="bundled",
    shots=8,
    samples=7,
    match="strict",
    required=7,
    canary_checks=(),
    max_tokens=512,
    concurrency=4,
    lowered_from=None,
)


def plan_of(**changes: Any) -> CasePlan:
    role = RolePlan(
        role="native",
        argv=("vllm", "serve", "--dtype", "float32"),
        env_set={},
        env_unset=(),
        devices=("cpu:0",),
        ports={},
        served_name=MODEL,
        dp=1,
        tp=1,
        ep=None,
        ready_line=None,
        exit_codes=(0,),
    )
    return CasePlan(
        profile="stub",
        case="baseline-eager",
        backend="cpu",
        model="/checkpoint",
        canary=None,
        model_config={},
        min_memory_gib=1,
        weights_gib=None,
        roles=(role,),
        afd=None,
        execution="eager",
        dbo=False,
        scrub=(),
        evaluation=replace(EVALUATION, **changes),
        limits=TimeLimits(),
        teardown=Teardown(),
    )


@dataclass
class Live:
    endpoint: Endpoint
    check_alive: Callable[[], None] = lambda: None

    def hung(self, what: str) -> ServerFailed:
        return ServerFailed(what, role="native")


def number_of(request: dict[str, Any]) -> int:
    return next(q.doc_id for q in QUESTIONS if q.text == request["prompt"])


@dataclass
class Run:
    """What an evaluation left: its record, notes and error."""

    record: EvaluationRecord
    notes: list[str]
    error: Exception | None
    requests: list[dict[str, Any]]


def run(
    tmp_path: Path, plan: CasePlan, respond: Callable[[int], dict[str, Any] | list[Part]]
) -> Run:
    def reply(request: dict[str, Any]) -> list[Part]:
        answer = respond(number_of(request))
        return answer if isinstance(answer, list) else [http(answer)]

    evidence = CaseEvidence(tmp_path, "run", "stub", "baseline-eager")
    error = None
    with stub_server(reply) as stub:
        try:
            oracle.evaluate(
                plan, oracle.questions(plan), Live(Endpoint(stub.base_url, MODEL)), evidence
            )
        except (WrongAnswers, InvalidEvaluation, ServerFailed) as raised:
            error = raised
    kept = json.loads((tmp_path / "evidence.json").read_text())
    record = EvaluationRecord.model_validate(kept["evaluation"])
    return Run(record, kept["notes"], error, stub.requests)


def right(doc_id: int) -> dict[str, Any]:
    return completion(f" {QUESTIONS[doc_id].gold_answer}")


def test_all_right(tmp_path: Path) -> None:
    done = run(tmp_path, plan_of(), right)
    assert done.error is None
    assert (done.record.correct_strict, done.record.samples_asked) == (7, 7)
    assert [(c.name, c.held, c.seen) for c in done.record.checks] == [("number", True, "7 of 7")]
    assert done.record.interval_95 == pytest.approx((0.6457, 1), abs=1e-4)
    assert [s.prompt_sha256 for s in done.record.samples] == [q.sha256 for q in QUESTIONS]
    assert "logprobs" not in done.requests[0]
    assert any("7 of 7 demands 100%" in note for note in done.notes)


def test_one_wrong_is_shown_with_its_question(tmp_path: Path) -> None:
    done = run(tmp_path, plan_of(), lambda n: completion("#### 1\n") if n == 4 else right(n))
    assert isinstance(done.error, WrongAnswers)
    said = str(done.error)
    assert "number: 6 of 7, required 7 of 7 strict" in said
    assert "doc 4, noticed by number" in said
    assert QUESTIONS[4].question in said
    assert "expected: 120" in said
    assert "given:    #### 1\\n" in said
    assert done.record.correct_strict == 6
    assert [s.extracted_strict for s in done.record.samples][4] == "1"


def test_one_wrong_of_seven_can_be_enough(tmp_path: Path) -> None:
    plan = plan_of(required=6)
    assert run(tmp_path, plan, lambda n: completion("7") if n == 4 else right(n)).error is None


@pytest.mark.parametrize(("match", "fails"), [("strict", True), ("flexible", False)])
def test_match(tmp_path: Path, match: Literal["strict", "flexible"], fails: bool) -> None:
    plan = plan_of(match=match)
    done = run(tmp_path, plan, lambda n: completion(f"It is {QUESTIONS[n].gold}."))
    assert isinstance(done.error, WrongAnswers) is fails
    assert (done.record.correct_strict, done.record.correct_flexible) == (0, 7)


def test_an_invalid_answer_is_no_wrong_one(tmp_path: Path) -> None:
    def respond(n: int) -> dict[str, Any] | list[Part]:
        if n == 2:
            return completion("It", finish_reason="length")
        if n == 5:
            return [http({"error": {"message": "oom"}}, "500 Internal Server Error")]
        return completion("#### 1") if n == 6 else right(n)

    done = run(tmp_path, plan_of(), respond)
    assert isinstance(done.error, InvalidEvaluation)
    assert "2 of 7 answers cannot be judged" in str(done.error)
    assert "doc 2: truncated at 512 tokens" in str(done.error)
    assert "doc 5: HTTP 500" in str(done.error)
    assert [s.strict for s in done.record.samples] == [True, True, None, True, True, None, False]
    assert done.record.samples[2].text == "It"
    assert (done.record.checks, done.record.interval_95) == ([], None)


def test_lowered_is_marked(tmp_path: Path) -> None:
    done = run(tmp_path, plan_of(samples=3, required=3, lowered_from=7), right)
    assert done.record.lowered_from == 7
    assert "3 questions instead of the profile's 7: this is not the profile's verdict" in done.notes


def test_death_of_the_server_is_not_an_evaluation(tmp_path: Path) -> None:
    def dead() -> None:
        raise ServerFailed("native exited with 1", role="native")

    evidence = CaseEvidence(tmp_path, "run", "stub", "baseline-eager")
    with stub_server(lambda request: []) as stub, pytest.raises(ServerFailed):
        oracle.evaluate(
            plan_of(),
            oracle.questions(plan_of()),
            Live(Endpoint(stub.base_url, MODEL), dead),
            evidence,
        )


@dataclass
class Learnt:
    """What a canary's fingerprint holds of one prompt."""

    text: str


@pytest.fixture
def canary(monkeypatch: pytest.MonkeyPatch) -> dict[str, Learnt]:
    """A fingerprint of the seven prompts; distance: of the first token's log-probability to -1."""
    learnt = {q.sha256: Learnt(f" {q.gold_answer}") for q in QUESTIONS}
    module: Any = ModuleType("fingerprint")
    holder: Any = ModuleType("held")
    holder.expected = learnt.get
    module.load = lambda folder: holder if learnt else None
    holder.limit = lambda dtype: LIMIT if dtype == "float32" else 10 * LIMIT
    module.compare = lambda expected, token_ids, top: abs(-1 - top[0][token_ids[0]])
    import e2e.canary

    monkeypatch.setitem(sys.modules, "e2e.canary.fingerprint", module)
    monkeypatch.setattr(e2e.canary, "fingerprint", module, raising=False)
    return learnt


UNLIKELY = (6, 7, 8, 9)


def with_logprob(doc_id: int, value: float, text: str | None = None) -> dict[str, Any]:
    logprobs = {
        "tokens": ["token_id:5"],
        "token_logprobs": [value],
        "top_logprobs": [{"token_id:5": value} | {f"token_id:{n}": -9.0 for n in UNLIKELY}],
    }
    return completion(text or f" {QUESTIONS[doc_id].gold_answer}", logprobs=logprobs)


BOTH = ("text", "fingerprint")


@pytest.mark.usefixtures("canary")
class TestCanary:
    def test_all_three_hold(self, tmp_path: Path) -> None:
        done = run(tmp_path, plan_of(canary_checks=BOTH), lambda n: with_logprob(n, -1.01))
        assert done.error is None
        assert [c.name for c in done.record.checks] == ["number", "text", "fingerprint"]
        assert all(c.held for c in done.record.checks)
        assert done.requests[0]["logprobs"] == 5
        assert done.requests[0]["return_tokens_as_token_ids"] is True
        sample = done.record.samples[0]
        assert sample.fingerprint_distance == pytest.approx(0.01)
        assert sample.token_ids == [5]
        assert sample.top_logprobs == [{5: -1.01} | dict.fromkeys(UNLIKELY, -9.0)]

    def test_only_the_fingerprint_notices(self, tmp_path: Path) -> None:
        done = run(
            tmp_path,
            plan_of(canary_checks=BOTH),
            lambda n: with_logprob(n, -1.2 if n == 3 else -1.0),
        )
        said = str(done.error)
        assert isinstance(done.error, WrongAnswers)
        assert "fingerprint: 6 of 7 (largest 0.2)" in said
        assert "(not noticed by number, text)" in said
        assert "doc 3, noticed by fingerprint" in said
        assert "distance to the fingerprint: 0.2" in said

    def test_text_notices_what_the_number_does_not(self, tmp_path: Path) -> None:
        def respond(n: int) -> dict[str, Any]:
            return with_logprob(n, -1.0, f"Otherwise.\n#### {QUESTIONS[n].gold}")

        done = run(tmp_path, plan_of(canary_checks=BOTH), respond)
        assert "text: 0 of 7, required 7 of 7 letter for letter" in str(done.error)
        assert "(not noticed by number, fingerprint)" in str(done.error)

    def test_without_log_probabilities_nothing_is_judged(self, tmp_path: Path) -> None:
        done = run(tmp_path, plan_of(canary_checks=BOTH), right)
        assert isinstance(done.error, InvalidEvaluation)
        assert "no log-probabilities in the reply" in str(done.error)

    def test_fewer_log_probabilities_than_asked_for_are_no_fingerprint(
        self, tmp_path: Path
    ) -> None:
        def respond(n: int) -> dict[str, Any]:
            reply = with_logprob(n, -1.0)
            reply["choices"][0]["logprobs"]["top_logprobs"] = [{"token_id:5": -1.0}]
            return reply

        done = run(tmp_path, plan_of(canary_checks=BOTH), respond)
        assert isinstance(done.error, InvalidEvaluation)
        assert "1 of 5 log-probabilities at token 0" in str(done.error)

    def test_refused_without_a_fingerprint(self, canary: dict[str, Learnt]) -> None:
        canary.clear()
        with pytest.raises(SetupMissing, match="text and fingerprint, and /checkpoint has no"):
            oracle.questions(plan_of(canary_checks=BOTH))

    def test_refused_for_a_prompt_not_learnt(self, canary: dict[str, Learnt]) -> None:
        del canary[QUESTIONS[2].sha256]
        with pytest.raises(SetupMissing, match="has not learnt the prompts of doc 2"):
            oracle.questions(plan_of(canary_checks=BOTH))


@pytest.mark.parametrize(
    ("arguments", "dtype"),
    [
        (("--dtype", "float32"), "float32"),
        (("--dtype=float",), "float32"),
        (("--dtype", "auto"), "bfloat16"),
        ((), "bfloat16"),
    ],
)
def test_dtype_is_the_servers(arguments: tuple[str, ...], dtype: str) -> None:
    plan = plan_of()
    role = replace(plan.roles[0], argv=("vllm", "serve", *arguments))
    assert dtype_of(replace(plan, roles=(role,))) == dtype


def test_a_server_that_answers_no_more_has_hung_and_what_it_answered_is_kept(
    tmp_path: Path,
) -> None:
    limits = TimeLimits(stall=0.3)
    plan = replace(plan_of(concurrency=1), limits=limits)
    done = run(tmp_path, plan, lambda doc_id: right(doc_id) if doc_id < 2 else [Act.HANG])
    assert isinstance(done.error, ServerFailed)
    assert done.error.what == "stalled: no answer completed for 0.3 s"
    assert done.record.correct_strict == 2
    assert [sample.invalid for sample in done.record.samples[2:]] == [done.error.what] * 5

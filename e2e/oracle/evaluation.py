"""One case's evaluation: ask, score, keep everything, and judge."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from e2e import statistics
from e2e.errors import ServerFailed, SetupMissing
from e2e.evidence.case import CaseEvidence
from e2e.evidence.record import EvaluationRecord
from e2e.oracle import dataset, verdict
from e2e.oracle.dataset import Dataset
from e2e.oracle.prompts import Prompt, build
from e2e.oracle.request import Endpoint, RequestSettings
from e2e.plan import CasePlan

if TYPE_CHECKING:
    from e2e.canary.fingerprint import Expected
    from e2e.oracle.reply import Answer

_TOP_LOGPROBS = 5
_DTYPES = {"auto": "bfloat16", "float": "float32", "half": "float16"}


class Answering(Protocol):
    """A live deployment, as far as it is asked questions."""

    @property
    def endpoint(self) -> Endpoint: ...

    def check_alive(self) -> None: ...

    def hung(self, what: str) -> ServerFailed: ...


@dataclass(frozen=True)
class Questions:
    """What will be asked, and what a canary's fingerprint expects of each question (None where
    the profile does not ask for it). `limit` is the largest distance that is noise."""

    dataset: Dataset
    prompts: list[Prompt]
    expected: list[Expected | None]
    limit: float


def questions(plan: CasePlan) -> Questions:
    """Everything of an evaluation that can be wrong before a server is launched.

    Raises SetupMissing: the data set, too few rows, a canary check without a fingerprint or of a
    question that the canary has not learnt.
    """
    evaluation = plan.evaluation
    rows = dataset.load(dataset.chosen(evaluation.dataset, os.environ))
    prompts = build(rows, evaluation.shots, evaluation.samples)
    if not evaluation.canary_checks:
        return Questions(rows, prompts, [None] * len(prompts), 0.0)

    from e2e.canary import fingerprint

    demanded = f"the profile demands the canary's {' and '.join(evaluation.canary_checks)}"
    learnt = fingerprint.load(Path(plan.model))
    if learnt is None:
        raise SetupMissing(
            f"{demanded}, and {plan.model} has no fingerprint",
            mend="build the checkpoint with `afd-e2e canary build`, or drop `canary_checks`",
        )
    expected = [learnt.expected(prompt.sha256) for prompt in prompts]
    unknown = [p.doc_id for p, e in zip(prompts, expected, strict=True) if e is None]
    if unknown:
        raise SetupMissing(
            f"{demanded}, and the canary {plan.model} has not learnt the prompts of doc"
            f" {', '.join(map(str, unknown[:20]))}",
            mend="build it with the same data set, shots and samples",
        )
    return Questions(rows, prompts, expected, learnt.limit(dtype_of(plan)))


def evaluate(
    plan: CasePlan, asked: Questions, deployment: Answering, evidence: CaseEvidence
) -> None:
    """Raises InvalidEvaluation, WrongAnswers, what `check_alive` raises, and what `hung` makes of
    a server that answers nothing for `limits.stall`, while questions are out.
    Every prompt hash, answer and verdict is in the evidence before anything is raised of them.
    """
    from e2e.oracle.client import ask

    hangs: list[ServerFailed] = []
    with evidence.phase("evaluation"):
        answers = ask(
            deployment.endpoint,
            asked.prompts,
            _settings(plan),
            deployment.check_alive,
            lambda count, total: evidence.progress(f"{count} of {total} answers"),
            lambda reason: hangs.append(deployment.hung(reason)),
        )
        record, criteria = _judged(plan, asked, answers)
        evidence.evaluation(record)
        _note_limits(plan, record, evidence)
        for hang in hangs:
            raise hang
        verdict.require_valid(record.samples)
        verdict.require_right(record, criteria)


def dtype_of(plan: CasePlan) -> str:
    """What the server computes in: its `--dtype`, bfloat16 where it chooses by itself."""
    argv = plan.entry_role.argv
    for place, argument in enumerate(argv):
        name, _, value = argument.partition("=")
        if name == "--dtype":
            value = value or argv[place + 1]
            return (
                "bfloat16"
                if value == "auto"
                else {"float": "float32", "half": "float16"}.get(value, value)
            )
    return "bfloat16"


def _settings(plan: CasePlan) -> RequestSettings:
    return RequestSettings(
        max_tokens=plan.evaluation.max_tokens,
        concurrency=plan.evaluation.concurrency,
        request_seconds=plan.limits.request,
        stall_seconds=plan.limits.stall,
        total_seconds=plan.limits.evaluation,
        logprobs=_TOP_LOGPROBS if plan.evaluation.log_probabilities else None,
    )


def _judged(
    plan: CasePlan, asked: Questions, answers: list[Answer]
) -> tuple[EvaluationRecord, verdict.Criteria]:
    samples = [
        verdict.sample_of(
            prompt, answer, expected.text if expected else None, _distance(expected, answer)
        )
        for prompt, answer, expected in zip(asked.prompts, answers, asked.expected, strict=True)
    ]
    criteria = verdict.criteria(plan.evaluation, asked.limit)
    strict = sum(sample.strict is True for sample in samples)
    flexible = sum(sample.flexible is True for sample in samples)
    correct = strict if plan.evaluation.match == "strict" else flexible
    valid = not any(sample.invalid for sample in samples)
    record = EvaluationRecord(
        dataset=asked.dataset.source,
        dataset_sha256=asked.dataset.sha256,
        shots=plan.evaluation.shots,
        samples_asked=len(samples),
        required=plan.evaluation.required_of(len(samples)),
        match=plan.evaluation.match,
        correct_strict=strict,
        correct_flexible=flexible,
        lowered_from=plan.evaluation.lowered_from,
        interval_95=statistics.wilson(correct, len(samples)) if valid else None,
        shows=_shows(plan, correct, len(samples)) if valid else "",
        checks=verdict.checks_of(plan.evaluation, samples, criteria, asked.limit) if valid else [],
        samples=samples,
    )
    return record, criteria


def _shows(plan: CasePlan, correct: int, asked: int) -> str:
    if plan.canary is None:
        return statistics.what_n_shows(correct, asked)
    return (
        f"{correct} of {asked} answers that the canary has learnt:"
        " whether it was computed rightly, and nothing of a model's accuracy"
    )


def _distance(expected: Expected | None, answer: Answer) -> float | None:
    if expected is None or answer.token_ids is None or answer.top_logprobs is None:
        return None
    from e2e.canary import fingerprint

    return fingerprint.compare(expected, answer.token_ids, answer.top_logprobs)


def _note_limits(plan: CasePlan, record: EvaluationRecord, evidence: CaseEvidence) -> None:
    if record.lowered_from is not None:
        evidence.note(
            f"{record.samples_asked} questions instead of the profile's {record.lowered_from}:"
            " this is not the profile's verdict"
        )
    warning = statistics.warning(record.required, record.samples_asked)
    # A canary has learnt its answers: they are no sample of an accuracy.
    if warning and plan.canary is None:
        evidence.note(warning)

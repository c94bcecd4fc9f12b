"""Answers -> samples with verdicts -> checks, and the error that says which check noticed what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from e2e.errors import InvalidEvaluation, WrongAnswers
from e2e.evidence.record import Check, CheckName, EvaluationRecord, Sample
from e2e.oracle.prompts import Prompt
from e2e.oracle.reply import Answer
from e2e.oracle.scoring import score
from e2e.plan import EvaluationPlan

Criteria = dict[CheckName, Callable[[Sample], bool]]

_MOST_SHOWN = 5
_MOST_NAMED = 20
_LONGEST = 300


def sample_of(
    prompt: Prompt, answer: Answer, expected_text: str | None, distance: float | None
) -> Sample:
    """The record of one question. An invalid answer has no verdict: neither right nor wrong."""
    verdict = None
    if answer.invalid is None and answer.text is not None:
        verdict = score(answer.text, prompt.gold_answer)
    return Sample(
        doc_id=prompt.doc_id,
        prompt_sha256=prompt.sha256,
        question=prompt.question,
        gold=prompt.gold,
        text=answer.text,
        finish_reason=answer.finish_reason,
        strict=verdict.strict if verdict else None,
        flexible=verdict.flexible if verdict else None,
        extracted_strict=verdict.extracted_strict if verdict else None,
        extracted_flexible=verdict.extracted_flexible if verdict else None,
        expected_text=expected_text,
        token_ids=answer.token_ids,
        top_logprobs=answer.top_logprobs,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        fingerprint_distance=distance,
        seconds=answer.seconds,
        attempts=answer.attempts,
        retries=list(answer.retries),
        invalid=answer.invalid,
    )


def criteria(plan: EvaluationPlan, limit: float) -> Criteria:
    """What makes a sample good, by name of the check. `limit`: the largest distance to a canary's
    fingerprint that is still noise; a sample without a distance is never within it."""
    chosen: Criteria = {
        "number": lambda s: bool(s.strict if plan.match == "strict" else s.flexible)
    }
    if "text" in plan.canary_checks:
        chosen["text"] = lambda s: s.text is not None and s.text == s.expected_text
    if "fingerprint" in plan.canary_checks:
        chosen["fingerprint"] = lambda s: (
            s.fingerprint_distance is not None and s.fingerprint_distance <= limit
        )
    return chosen


def checks_of(
    plan: EvaluationPlan, samples: Sequence[Sample], chosen: Criteria, limit: float
) -> list[Check]:
    """The number needs as many good samples as planned; what a canary has learnt needs all."""
    distances = [s.fingerprint_distance for s in samples if s.fingerprint_distance is not None]
    how = {
        "number": plan.match,
        "text": "letter for letter",
        "fingerprint": f"within {limit:.4g} of the fingerprint",
    }
    seen_beside = {"fingerprint": f" (largest {max(distances, default=float('nan')):.4g})"}
    checks = []
    for name, good in chosen.items():
        count = sum(map(good, samples))
        needed = plan.required_of(len(samples)) if name == "number" else len(samples)
        checks.append(
            Check(
                name=name,
                held=count >= needed,
                required=f"{needed} of {len(samples)} {how[name]}",
                seen=f"{count} of {len(samples)}{seen_beside.get(name, '')}",
            )
        )
    return checks


def require_valid(samples: Sequence[Sample]) -> None:
    """Raises InvalidEvaluation naming every answer that cannot be judged (the first 20)."""
    invalid = [sample for sample in samples if sample.invalid]
    if invalid:
        raise InvalidEvaluation(
            f"{len(invalid)} of {len(samples)} answers cannot be judged,"
            f" the first is doc {invalid[0].doc_id}: {invalid[0].invalid}",
            lines=[f"doc {sample.doc_id}: {sample.invalid}" for sample in invalid[:_MOST_NAMED]],
            mend="this is no verdict on the model: the server's log shows what became of them",
        )


def require_right(record: EvaluationRecord, chosen: Criteria) -> None:
    """Raises WrongAnswers where a check did not hold, with the questions it noticed (five)."""
    failed = [check for check in record.checks if not check.held]
    if not failed:
        return
    held = [check.name for check in record.checks if check.held]
    noticed = {
        sample.doc_id: [c.name for c in failed if not chosen[c.name](sample)]
        for sample in record.samples
    }
    wrong = [sample for sample in record.samples if noticed[sample.doc_id]]
    raise WrongAnswers(
        "; ".join(f"{c.name}: {c.seen}, required {c.required}" for c in failed)
        + (f" (not noticed by {', '.join(held)})" if held else ""),
        lines=[line for s in wrong[:_MOST_SHOWN] for line in _shown(s, noticed[s.doc_id])],
        mend="the answers are whole: it is the model, its weights or how it is computed;"
        " all answers are in evidence.json",
    )


def _shown(sample: Sample, noticed: Iterable[str]) -> list[str]:
    distance = sample.fingerprint_distance
    return [
        f"doc {sample.doc_id}, noticed by {', '.join(noticed)}",
        f"  question: {_line(sample.question)}",
        f"  expected: {_line(sample.expected_text or sample.gold)}",
        f"  given:    {_line(sample.text or '')}",
        *([f"  distance to the fingerprint: {distance:.4g}"] if distance is not None else []),
    ]


def _line(text: str) -> str:
    line = text.replace("\n", "\\n")
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"

"""The parity that a case demands: its answers beside those of another case of the same run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.errors import HarnessError, InvalidEvaluation, Outcome, WrongAnswers
from e2e.evidence.case import CaseEvidence
from e2e.evidence.record import CaseRecord, Check, CheckName, EvaluationRecord, Parity
from e2e.oracle import parity
from e2e.oracle.evaluation import dtype_of
from e2e.plan import CasePlan, ParityPlan

# Runs a case of this run once more, cold, under this name; its record.
StartAgain = Callable[[str, str], CaseRecord]

_MOST_NAMED = 20


@contextmanager
def judged(plan: CasePlan, evidence: CaseEvidence, start_again: StartAgain) -> Iterator[None]:
    """After the body, whatever else it has found, its answers are compared if they are whole. What
    cannot be compared because the other case did not run is recorded as not judged.

    Raises WrongAnswers, and InvalidEvaluation where both ran and cannot be compared: without
    log-probabilities, asked otherwise, or without a noise that was measured.
    """
    demanded = plan.evaluation.parity
    if demanded is None:
        yield
        return
    found = Parity(against=demanded.against, required=_required(demanded))
    _not_judged(found, "the case ended before its answers were whole", evidence)
    try:
        yield
    except HarnessError:
        if evidence.record.evaluation is not None and evidence.record.evaluation.checks:
            _judge(plan, demanded, found, evidence, start_again)
        raise
    _judge(plan, demanded, found, evidence, start_again)


def read(folder: Path) -> CaseRecord:
    """The record in a folder of evidence. Raises InvalidEvaluation."""
    file = folder / "evidence.json"
    try:
        return CaseRecord.model_validate_json(file.read_bytes())
    except (OSError, ValueError) as error:
        raise InvalidEvaluation(f"{file} is no record of a case: {str(error)[:300]}") from error


def _required(demanded: ParityPlan) -> list[str]:
    return [
        f"{name}: {demand}"
        for name, demand in (("tokens", demanded.tokens), ("logprobs", demanded.logprobs))
        if demand is not None
    ]


def _judge(
    plan: CasePlan,
    demanded: ParityPlan,
    found: Parity,
    evidence: CaseEvidence,
    start_again: StartAgain,
) -> None:
    with evidence.phase("parity"):
        other = _of_the_run(demanded.against, evidence)
        if other is None:
            _not_judged(found, f"{demanded.against} did not run before it in this run", evidence)
            return
        try:
            faults = _compare(plan, demanded, found, other, evidence, start_again)
        except HarnessError as error:
            _not_judged(found, error.what, evidence)
            raise
        evidence.parity(found)
        failed = [check for check in found.checks if not check.held]
        if failed:
            raise WrongAnswers(
                f"the answers are not those of {demanded.against}: "
                + "; ".join(f"{c.name}: {c.seen}, required {c.required}" for c in failed),
                lines=faults[:_MOST_NAMED],
                mend="both cases answered whole: what they compute is not the same;"
                " `afd-e2e compare` puts their evidence side by side",
            )


def _compare(
    plan: CasePlan,
    demanded: ParityPlan,
    found: Parity,
    other: CaseRecord,
    evidence: CaseEvidence,
    start_again: StartAgain,
) -> list[str]:
    """Fills in what was found; the answers that are not as demanded, and in what."""
    own, theirs = evidence.record.evaluation, other.evaluation
    if own is None or theirs is None:
        raise InvalidEvaluation(
            f"{demanded.against} ended with {other.outcome} and has no answers to compare with",
            mend=f"see its evidence: {demanded.against}/summary.md",
        )
    if _lowered_otherwise(own, theirs):
        found.not_judged = (
            f"AFD_GSM8K_LIMIT: {own.samples_asked} questions here, {theirs.samples_asked} there"
        )
        return []
    first = parity.traces(theirs)
    seen = parity.compare(first, parity.traces(own))
    faults: list[str] = []
    if demanded.tokens is not None:
        faults += _add(found, "tokens", parity.judge(seen, "identical", None, dtype_of(plan)))
    if demanded.logprobs is not None:
        found.noise = f"{demanded.against}-second-start"
        noise = parity.compare(first, parity.traces(_second(demanded, found.noise, start_again)))
        found.band = parity.band(noise, dtype_of(plan))
        faults += _add(found, "logprobs", parity.judge(seen, "within-noise", noise, dtype_of(plan)))
    return list(dict.fromkeys(faults))


def _second(demanded: ParityPlan, name: str, start_again: StartAgain) -> EvaluationRecord:
    second = start_again(demanded.against, name)
    if second.outcome is not Outcome.PASSED or second.evaluation is None:
        raise InvalidEvaluation(
            f"the second cold start of {demanded.against} ended with {second.outcome}: no noise"
            " was measured",
            mend=f"see its evidence: {name}/summary.md",
        )
    return second.evaluation


def _add(found: Parity, name: CheckName, verdict: parity.ParityVerdict) -> tuple[str, ...]:
    found.checks.append(
        Check(name=name, held=verdict.held, required=verdict.required, seen=verdict.seen)
    )
    return verdict.faults


def _lowered_otherwise(own: EvaluationRecord, theirs: EvaluationRecord) -> bool:
    """A case with overlap is never asked fewer questions than it needs, the other one may be."""
    lowered = own.lowered_from is not None or theirs.lowered_from is not None
    return lowered and own.samples_asked != theirs.samples_asked


def _of_the_run(case: str, evidence: CaseEvidence) -> CaseRecord | None:
    """What the other case left in this run: where several tests used it (each with a folder of its
    own), the one that asked the questions."""
    root = evidence.folder.parent
    folders = [root / case, *sorted(root.glob(f"{case}-test*"))]
    records = [read(folder) for folder in folders if (folder / "evidence.json").is_file()]
    return next((r for r in records if r.evaluation is not None), next(iter(records), None))


def _not_judged(found: Parity, why: str, evidence: CaseEvidence) -> None:
    evidence.parity(found.model_copy(update={"not_judged": why, "checks": []}))

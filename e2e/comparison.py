"""Cases side by side: what each showed, and whether they answered alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from e2e import statistics
from e2e.errors import InvalidEvaluation, ProfileError, WrongAnswers
from e2e.evidence.record import CaseRecord, EvaluationRecord
from e2e.oracle import parity

Row = tuple[str, list[str]]


def read_cases(folders: Sequence[Path]) -> list[CaseRecord]:
    """The records in these folders: evidence folders of cases, or of whole runs, whose cases come
    in the order in which they ran.

    Raises ProfileError naming a folder without a readable record.
    """
    records: list[CaseRecord] = []
    for folder in folders:
        paths = [folder / "evidence.json"] if (folder / "evidence.json").is_file() else []
        paths = paths or list(folder.glob("*/evidence.json"))
        if not paths:
            raise ProfileError(
                f"{folder} holds no evidence.json",
                mend="name the folder of a run or of one of its cases",
            )
        records += sorted(map(_read, paths), key=lambda record: record.started)
    return records


def _read(path: Path) -> CaseRecord:
    try:
        return CaseRecord.model_validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ProfileError(f"{path} is no record of a case: {str(error)[:300]}") from error


def rows(records: Sequence[CaseRecord]) -> list[Row]:
    """One row a property, one cell a record."""
    cells: list[tuple[str, Callable[[CaseRecord], str]]] = [
        ("outcome", lambda record: str(record.outcome or "not concluded")),
        ("strict", lambda record: _of(record, lambda e: f"{e.correct_strict}/{e.samples_asked}")),
        ("text", lambda record: _check(record, "text")),
        ("fingerprint", lambda record: _check(record, "fingerprint")),
        ("parity", _parity),
        ("claims", lambda record: _held([claim.held for claim in record.claims])),
        ("proofs", lambda record: _held([proof.held for proof in record.proofs])),
        ("ready, s", lambda record: _each(record, "ready_seconds")),
        ("evaluation, s", lambda record: _phase(record, "evaluation")),
        ("stop, s", lambda record: _each(record, "stop_seconds")),
        ("peak memory, MiB", lambda record: _each(record, "peak_memory_mib")),
    ]
    return [(name, [cell(record) for record in records]) for name, cell in cells]


def answered_alike(first: CaseRecord, second: CaseRecord) -> list[str]:
    """How the answers of two cases compare: token by token where both have log-probabilities,
    and right against wrong by McNemar's exact test. What cannot be compared is said."""
    if first.evaluation is None or second.evaluation is None:
        return ["no evaluation to compare"]
    return [
        *_tokens(first.evaluation, second.evaluation),
        *_verdicts(first.evaluation, second.evaluation),
    ]


def require(
    requirement: parity.Requirement, records: Sequence[CaseRecord], noise: CaseRecord | None
) -> None:
    """All others answered as the first, `identical` or `within-noise` (which takes a second run
    of the first as `noise`). Raises WrongAnswers, InvalidEvaluation, and ProfileError where there
    is nothing to compare."""
    if len(records) < 2:
        raise ProfileError("one case alone cannot be compared", mend="name two or more")
    first, *others = records
    band = parity.compare(_traces(first), _traces(noise)) if noise else None
    dtype = _dtype(first)
    verdicts = {
        other.case: parity.judge(
            parity.compare(_traces(first), _traces(other)), requirement, band, dtype
        )
        for other in others
    }
    failed = {case: verdict for case, verdict in verdicts.items() if not verdict.held}
    if failed:
        raise WrongAnswers(
            f"{', '.join(failed)} did not answer as {first.case}",
            lines=[f"{case}: {fault}" for case, v in failed.items() for fault in v.faults],
            mend=f"required: {next(iter(failed.values())).required}",
        )


def _traces(record: CaseRecord) -> list[parity.Trace]:
    if record.evaluation is None:
        raise InvalidEvaluation(f"{record.profile}/{record.case} has no evaluation")
    return parity.traces(record.evaluation)


def _dtype(record: CaseRecord) -> str:
    """As the servers' logs say it, by the claim of it."""
    claims = [claim.seen for claim in record.claims if claim.name.endswith(" dtype")]
    return claims[0].removeprefix("torch.") if claims else "bfloat16"


def _tokens(first: EvaluationRecord, second: EvaluationRecord) -> list[str]:
    try:
        found = parity.compare(parity.traces(first), parity.traces(second))
    except InvalidEvaluation as error:
        return [f"tokens cannot be compared: {error.what}"]
    count = len(found.answers)
    head = (
        f"the token ids of all {count} answers are identical"
        if found.identical
        else f"{found.diverged} of {count} answers have other tokens"
    )
    parted = [
        f"doc {answer.doc_id} parts at token {answer.first_divergence}"
        for answer in found.answers
        if answer.first_divergence is not None
    ]
    return [f"{head}, largest gap {found.largest_gap:.3g} nats", *parted]


def _verdicts(first: EvaluationRecord, second: EvaluationRecord) -> list[str]:
    verdicts = [{s.doc_id: s.strict for s in e.samples} for e in (first, second)]
    shared = [doc for doc in verdicts[0] if doc in verdicts[1]]
    pairs = [(verdicts[0][doc], verdicts[1][doc]) for doc in shared]
    judged = [(bool(a), bool(b)) for a, b in pairs if a is not None and b is not None]
    if not judged:
        return []
    paired = statistics.mcnemar(judged)
    if paired.only_first == paired.only_second == 0:
        return []
    return [
        f"right only here or there: {paired.only_first} and {paired.only_second}, "
        f"exact McNemar p = {paired.p:.3g}"
    ]


def _of(record: CaseRecord, cell: Callable[[EvaluationRecord], str]) -> str:
    return "" if record.evaluation is None else cell(record.evaluation)


def _parity(record: CaseRecord) -> str:
    if record.parity is None:
        return ""
    if record.parity.not_judged is not None:
        return "not judged"
    return _held([check.held for check in record.parity.checks])


def _check(record: CaseRecord, name: str) -> str:
    checks = record.evaluation.checks if record.evaluation else []
    return next((check.seen for check in checks if check.name == name), "")


def _held(held: Sequence[bool]) -> str:
    return f"{sum(held)} of {len(held)} held" if held else ""


def _each(record: CaseRecord, name: str) -> str:
    values = [(role.role, getattr(role, name)) for role in record.roles]
    known = [(role, value) for role, value in values if value is not None]
    if len(known) == 1:
        return f"{known[0][1]:.1f}"
    return ", ".join(f"{role} {value:.1f}" for role, value in known)


def _phase(record: CaseRecord, name: str) -> str:
    seconds = [phase.seconds for phase in record.phases if phase.name == name]
    return f"{sum(seconds):.1f}" if seconds else ""

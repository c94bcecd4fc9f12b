"""`summary.md`, made from the record alone."""

from __future__ import annotations

from collections.abc import Iterable

from e2e.evidence.explain import where
from e2e.evidence.record import CaseRecord, Claim, EvaluationRecord, Failure, Parity, Proof, Sample

_LONGEST_CELL = 160


def summary_markdown(record: CaseRecord) -> str:
    """The whole case on a page or two: outcome, failures, answers, claims, proofs, roles."""
    sections = [
        f"# {record.profile}/{record.case}: {record.outcome or 'not concluded'}",
        f"Run `{record.run_id}`, started {record.started}, "
        f"{sum(phase.seconds for phase in record.phases):.1f} s.",
        _failures(record.failures),
        _evaluation(record.evaluation),
        _parity(record.parity),
        _table(
            "Claims", ("claim", "held", "expected", "seen", "where"), map(_claim, record.claims)
        ),
        _table("Proofs", ("proof", "held", "seconds", "found"), map(_proof, record.proofs)),
        _table(
            "Roles",
            ("role", "devices", "ports", "ready s", "stop s", "exit", "peak MiB", "log"),
            (
                (
                    role.role,
                    ", ".join(role.devices),
                    ", ".join(f"{name} {port}" for name, port in role.ports.items()),
                    role.ready_seconds,
                    role.stop_seconds,
                    f"{role.exit_code}{' (killed)' if role.forced_kill else ''}",
                    role.peak_memory_mib,
                    role.log,
                )
                for role in record.roles
            ),
        ),
        _table(
            "Phases", ("phase", "seconds"), ((phase.name, phase.seconds) for phase in record.phases)
        ),
        _table("Software", ("what", "version"), record.software.items()),
        _table("Hardware", ("what", "value"), record.hardware.items()),
        _notes(record.notes),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _failures(failures: list[Failure]) -> str:
    if not failures:
        return ""
    blocks = ["## Failures"]
    for failure in failures:
        place = where(failure)
        blocks.append(f"**{failure.outcome}**{f' ({place})' if place else ''}: {failure.what}")
        if failure.lines:
            blocks.append("```text\n" + "\n".join(failure.lines) + "\n```")
        if failure.mend:
            blocks.append(f"To do: {failure.mend}")
    return "\n\n".join(blocks)


def _evaluation(evaluation: EvaluationRecord | None) -> str:
    if evaluation is None:
        return ""
    lowered = evaluation.lowered_from
    marks = [
        "## Evaluation",
        f"{evaluation.dataset}, {evaluation.shots} shots: "
        f"{evaluation.correct_strict} of {evaluation.samples_asked} strict, "
        f"{evaluation.correct_flexible} flexible; "
        f"{evaluation.required} {evaluation.match} required.",
    ]
    if lowered is not None:
        marks.append(f"**Not the profile's verdict**: lowered from {lowered} samples.")
    if evaluation.shows:
        marks.append(f"What this shows: {evaluation.shows}.")
    checks = _table(
        "",
        ("check", "held", "required", "seen"),
        ((c.name, _yes(c.held), c.required, c.seen) for c in evaluation.checks),
    )
    samples = _table(
        "",
        ("doc", "strict", "gold", "extracted", "finish", "fingerprint", "seconds", "answer"),
        map(_sample, evaluation.samples),
    )
    return "\n\n".join(part for part in (*marks, checks, samples) if part)


def _parity(parity: Parity | None) -> str:
    if parity is None:
        return ""
    demanded = f"Demanded beside {parity.against}: {', '.join(parity.required)}."
    if parity.not_judged is not None:
        return f"## Parity\n\n**Not judged**: {parity.not_judged}. {demanded}"
    noise = f" Noise: `{parity.noise}`, {parity.band:.3g} nats." if parity.noise else ""
    return f"## Parity\n\n{demanded}{noise}\n\n" + _table(
        "",
        ("check", "held", "required", "seen"),
        ((c.name, _yes(c.held), c.required, c.seen) for c in parity.checks),
    )


def _sample(sample: Sample) -> tuple[object, ...]:
    return (
        sample.doc_id,
        "invalid" if sample.invalid else _yes(bool(sample.strict)),
        sample.gold,
        sample.extracted_strict,
        sample.finish_reason,
        sample.fingerprint_distance,
        sample.seconds,
        sample.invalid or sample.text,
    )


def _claim(claim: Claim) -> tuple[object, ...]:
    return claim.name, _yes(claim.held), claim.expected, claim.seen, claim.where


def _proof(proof: Proof) -> tuple[object, ...]:
    return proof.name, _yes(proof.held), proof.seconds, "; ".join(proof.found)


def _notes(notes: list[str]) -> str:
    return "\n".join(["## Notes", "", *(f"- {note}" for note in notes)]) if notes else ""


def _table(title: str, header: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    if not lines:
        return ""
    head = [f"| {' | '.join(header)} |", "|" + " --- |" * len(header)]
    return "\n".join([*([f"## {title}", ""] if title else []), *head, *lines])


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = _number(value) if isinstance(value, float) else " ".join(str(value).split())
    text = text.replace("|", "\\|")
    return text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 1] + "…"


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _yes(held: bool) -> str:
    return "yes" if held else "**no**"

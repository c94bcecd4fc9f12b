"""One failure in words, for terminals and test reports."""

from __future__ import annotations

from e2e.evidence.record import Failure


def where(failure: Failure) -> str:
    """Phase, role, device and log, those that are known."""
    named = (
        ("phase", failure.phase),
        ("role", failure.role),
        ("device", failure.device),
        ("log", failure.log),
    )
    return ", ".join(f"{name} {value}" for name, value in named if value)


def explain_failure(failure: Failure) -> str:
    place = where(failure)
    lines = [f"{failure.outcome}{f' ({place})' if place else ''}: {failure.what}"]
    lines += [f"    | {line}" for line in failure.lines]
    if failure.mend:
        lines.append(f"  to do: {failure.mend}")
    return "\n".join(lines)

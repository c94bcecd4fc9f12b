"""What all proofs share: a look that is repeated until nothing is left, and its record."""

from __future__ import annotations

import time
from collections.abc import Callable

from e2e.errors import ResidueLeft
from e2e.evidence.case import CaseEvidence
from e2e.evidence.record import Proof
from e2e.process.signals import current

POLL_SECONDS = 0.05


def until_nothing(left: Callable[[], list[str]], seconds: float) -> tuple[list[str], float]:
    """What `left` still finds when `seconds` are over, and how long it took; at once when []."""
    begin = time.monotonic()
    while found := left():
        if time.monotonic() - begin >= seconds or current().hurried():
            break
        time.sleep(POLL_SECONDS)
    return found, round(time.monotonic() - begin, 3)


def record(
    evidence: CaseEvidence,
    name: str,
    found: list[str],
    seconds: float,
    *,
    mend: str,
    detail: dict[str, object] | None = None,
) -> None:
    """The proof as held or not, and what was found as a failure of the case."""
    evidence.proof(
        Proof(name=name, held=not found, found=found, seconds=seconds, detail=detail or {})
    )
    if found:
        evidence.failure(ResidueLeft(f"{name}: {'; '.join(found)}", mend=mend))

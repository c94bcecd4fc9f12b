"""/dev/shm, and the sockets and temporary files of the run, are as before."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.evidence.case import CaseEvidence
from e2e.plan import CasePlan
from e2e.process import Owner
from e2e.process.guardian import holdings, sweep
from e2e.process.signals import current
from e2e.proofs.picture import record, until_nothing

NAME = "shared memory returned"
SOCKETS_NAME = "sockets and temporary files gone"
_CLOCK_SECONDS = 1.0


@contextmanager
def shared_memory_returns(plan: CasePlan, owner: Owner, evidence: CaseEvidence) -> Iterator[None]:
    """On exit /dev/shm holds nothing new that the run left there, and its sockets and temporary
    files are gone.

    The run's own are segments and sockets that its processes were seen to hold; they are named
    and removed. A segment that appeared meanwhile, is this user's and is in nobody's hands is
    named and left alone. Whatever a living process holds is other people's. What roles leave in
    the run's private folder is no fault: that is what it is for.
    """
    before = holdings.shared_memory()
    began = time.time() - _CLOCK_SECONDS
    try:
        yield
    finally:
        with current().deferred():
            patience = plan.limits.release if owner.living() else 0.0
            _settle_segments(before, began, patience, owner, evidence)
            _settle_sockets(owner, evidence)


def _settle_segments(
    before: set[str], began: float, patience: float, owner: Owner, evidence: CaseEvidence
) -> None:
    shared = owner.sightings.shared

    def left() -> list[str]:
        new = holdings.shared_memory() - before
        return [
            line
            for name in sorted(new - holdings.in_use(new))
            if (line := _described(name, began, name in shared))
        ]

    found, seconds = until_nothing(left, patience)
    removed = sweep.shared_memory(shared, owner.sightings.shared_before)
    record(
        evidence,
        NAME,
        found,
        seconds,
        mend="what the roles were seen to hold has been removed; remove the rest yourself, if it "
        "is not somebody else's",
        detail={"removed": removed},
    )


def _described(name: str, began: float, held: bool) -> str | None:
    """A segment in nobody's hands; None when it is not of this user and this case."""
    path = Path(holdings.SHARED_MEMORY, name)
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    if status.st_uid != os.geteuid() or status.st_ctime < began:
        return None
    whose = "left by a role" if held else "appeared meanwhile, in nobody's hands"
    return f"{path}, {status.st_size} bytes, {whose}"


def _settle_sockets(owner: Owner, evidence: CaseEvidence) -> None:
    outside = [path for path in owner.sightings.sockets if not path.startswith(f"{owner.private}/")]
    left = sweep.sockets(outside)
    tidied = sweep.folder(str(owner.private))
    found = [f"{path}, left by a role" for path in left]
    if owner.private.exists():
        found.append(f"{owner.private} cannot be removed")
    record(
        evidence,
        SOCKETS_NAME,
        found,
        0.0,
        mend="sockets that roles left have been removed; point them into the run's private folder",
        detail={"in_private_folder": tidied},
    )

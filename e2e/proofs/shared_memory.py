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
_MEND = "segments that are provably this run's have been removed; look at the others yourself"


@contextmanager
def shared_memory_returns(plan: CasePlan, owner: Owner, evidence: CaseEvidence) -> Iterator[None]:
    """On exit /dev/shm holds nothing new that the run left there.

    The run's are segments that its processes had open or mapped; they are removed. Segments that
    appeared meanwhile, are this user's and are in nobody's hands are named, and left alone.
    Others are other people's.
    """
    before = holdings.shared_memory()
    began = time.time()
    try:
        yield
    finally:
        with current().deferred():
            found, seconds = until_nothing(lambda: _left(before, began, owner), plan.limits.release)
            removed = sweep.shared_memory(owner.sightings.shared, owner.sightings.shared_before)
            record(evidence, NAME, found, seconds, mend=_MEND, detail={"removed": removed})


def _left(before: set[str], began: float, owner: Owner) -> list[str]:
    new = holdings.shared_memory() - before
    lines = []
    for name in sorted(new - holdings.in_use(new)):
        path = Path(holdings.SHARED_MEMORY, name)
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        if status.st_uid == os.geteuid() and status.st_ctime >= began - 1:
            whose = "held by a role" if name in owner.sightings.shared else "in nobody's hands"
            lines.append(f"{path}, {status.st_size} bytes, {whose}")
    return lines

"""/dev/shm, and the sockets and temporary files of the run, are as before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.evidence.case import CaseEvidence
from e2e.plan import CasePlan
from e2e.process import Owner
from e2e.process.guardian import ownership, segments, sweep, table
from e2e.process.guardian.segments import Segment
from e2e.process.signals import current
from e2e.proofs.picture import record, until_nothing

NAME = "shared memory returned"
SOCKETS_NAME = "sockets and temporary files gone"


@contextmanager
def shared_memory_returns(plan: CasePlan, owner: Owner, evidence: CaseEvidence) -> Iterator[None]:
    """On exit /dev/shm holds nothing new that the run left there, and its sockets and temporary
    files are gone.

    The run's own are segments and sockets that its processes were seen to hold; they are named
    and removed. A new segment of this user that was never seen in anybody's hands is named and
    left alone; while another run of this user lives on the host it may be that run's, and is no
    more than noted. What living processes hold, or others have held, is other people's. What
    roles leave in the run's private folder is no fault: that is what it is for.
    """
    try:
        yield
    finally:
        with current().deferred():
            _settle_segments(plan.limits.release, owner, evidence)
            _settle_sockets(owner, evidence)


def _settle_segments(patience: float, owner: Owner, evidence: CaseEvidence) -> None:
    seen = owner.sightings
    others_run = _other_runs(owner)

    def left() -> list[str]:
        ours = seen.shared & segments.segments()
        found = [_described(segment, "left by a role") for segment in ours - segments.in_use(ours)]
        if not others_run:
            found += [_described(one, "new, in nobody's hands") for one in seen.unclaimed()]
        return sorted(found)

    found, seconds = until_nothing(left, patience)
    record(
        evidence,
        NAME,
        found,
        seconds,
        mend="what the roles were seen to hold has been removed; remove the rest yourself, if it "
        "is not somebody else's",
        detail={
            "removed": segments.remove(seen.shared),
            "unclaimed": sorted(segment.path for segment in seen.unclaimed()),
        },
    )


def _other_runs(owner: Owner) -> bool:
    guardians = {ownership.guardian_of(pid) for pid in table.snapshot()}
    return bool(guardians - {None, owner.marker})


def _described(segment: Segment, whose: str) -> str:
    try:
        return f"{segment.path}, {Path(segment.path).stat().st_size} bytes, {whose}"
    except FileNotFoundError:
        return f"{segment.path}, {whose}"


def _settle_sockets(owner: Owner, evidence: CaseEvidence) -> None:
    outside = [path for path in owner.sightings.sockets if not path.startswith(f"{owner.private}/")]
    left = sweep.remove_sockets(outside)
    tidied = sweep.remove_folder(str(owner.private))
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

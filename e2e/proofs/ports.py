"""Every port comes back: those of the plan, and any other that the roles listened on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from e2e.evidence.case import CaseEvidence
from e2e.plan import CasePlan
from e2e.process import Owner
from e2e.process.guardian import sockets
from e2e.process.ports import users_of
from e2e.process.signals import current
from e2e.proofs.picture import record, until_nothing

NAME = "ports released"


@contextmanager
def ports_released(plan: CasePlan, owner: Owner, evidence: CaseEvidence) -> Iterator[None]:
    """On exit nothing listens on a port of the plan, and none of the sockets that the roles
    listened on exists any more. Connections in TIME_WAIT are no residue; a port of the kernel's
    choosing that somebody else listens on by now is none either."""
    try:
        yield
    finally:
        with current().deferred():
            found, seconds = until_nothing(lambda: _left(plan, owner), plan.limits.release)
            record(
                evidence,
                NAME,
                found,
                seconds,
                mend="end the processes named before the next run",
                detail={
                    "plan": list(plan.ports),
                    "seen": sorted(set(owner.sightings.ports.values())),
                },
            )


def _left(plan: CasePlan, owner: Owner) -> list[str]:
    seen = owner.sightings.ports
    left = {
        socket.number
        for socket in sockets.ports()
        if socket.listening and (socket.number in plan.ports or socket.inode in seen)
    }
    return [f"port {port} is listened on by {users_of(port)}" for port in sorted(left)]

"""No process is left, whatever group, session, name or environment it went to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from e2e.errors import HarnessError
from e2e.evidence.case import CaseEvidence
from e2e.plan import CasePlan
from e2e.process import Owner
from e2e.process.guardian.ownership import described
from e2e.process.signals import current
from e2e.proofs.picture import record

NAME = "no process left"


@contextmanager
def no_process_left(plan: CasePlan, owner: Owner, evidence: CaseEvidence) -> Iterator[None]:
    """Around the launch: on exit all roles have been stopped, and nothing of theirs is alive.

    What is found is named and killed. A process that had to be ended after its leader was gone
    counts as left as well, and so does one that survives SIGKILL: quarantine its device.
    """
    try:
        yield
    finally:
        with current().deferred():
            _settle(plan, owner, evidence)


def _settle(plan: CasePlan, owner: Owner, evidence: CaseEvidence) -> None:
    climb = owner.end_rest(plan.limits.release)
    survivors = described(climb.survivors)
    found = [f"{line} survives SIGKILL: quarantine its device" for line in survivors]
    found += [
        f"{line} was alive after the stop and had to be ended"
        for line in described(climb.outlived or climb.killed)
        if line not in survivors
    ]
    for role, report in owner.stopped.items():
        others = [row for row in report.killed if row.pid != owner.processes[role].pid]
        found += [
            f"{line}, of {role}, ran on after its leader was gone and had to be ended"
            for line in described(report.outlived)
        ]
        found += [
            f"{line}, of {role}, had to be killed"
            for line in described(row for row in others if row not in report.outlived)
        ]
    record(
        evidence,
        NAME,
        found,
        round(climb.seconds, 3),
        mend="the roles' logs may tell why these did not end with their leader; a wrapper script "
        "has to exec the server",
        detail={"pids_seen": {role: p.pids_seen() for role, p in owner.processes.items()}},
    )
    try:
        owner.check()
    except HarnessError as error:
        evidence.failure(error)

"""A case around a stand-in, to be run as a process of its own and killed.

    python -m tests.faults.one_case FOLDER PORT SECONDS

The stand-in's orders are in the environment; its evaluation takes so many seconds. Each phase is
told on standard output as it begins, and the exit code is that of the outcome.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from e2e import leases, proofs
from e2e.errors import HarnessError, Interrupted, ServerFailed
from e2e.evidence.case import CaseEvidence
from e2e.plan import CasePlan
from e2e.process import OwnedProcess, Owner
from e2e.process.signals import SignalReceived, current, interruptible
from tests.faults.setting import POLL_SECONDS, health, plan_of, standin
from tests.faults.standin.faults import Orders

RUN = "run-of-faults"
READY_SECONDS = 10.0


class Teller:
    """Says each phase on standard output."""

    def phase(self, name: str) -> None:
        print(name, flush=True)

    def progress(self, text: str) -> None: ...


def main(folder: Path, port: int, seconds: float) -> int:
    plan = plan_of(port)
    evidence = CaseEvidence(folder, RUN, plan.profile, plan.case, reporter=Teller())
    try:
        with interruptible() as interruption, interruption.deferred():
            run(plan, evidence, seconds)
    except SignalReceived as received:
        evidence.failure(Interrupted(str(received)))
    except HarnessError as error:
        evidence.failure(error)
    return evidence.conclude().exit_code


def run(plan: CasePlan, evidence: CaseEvidence, seconds: float) -> None:
    with (
        leases.hold(plan.devices, plan.ports, "one case") as held,
        Owner(RUN, evidence.folder, held, stop_seconds=3, kill_seconds=3) as owner,
        proofs.shared_memory_returns(plan, owner, evidence),
        proofs.ports_released(plan, owner, evidence),
        proofs.no_process_left(plan, owner, evidence),
    ):
        with evidence.phase("launch"):
            orders = Orders.read(os.environ)
            process = owner.spawn(standin(evidence.folder, plan.ports[0], orders))
        try:
            with current().allowed():
                serve(plan, evidence, owner, process, seconds)
        finally:
            with evidence.phase("stop"):
                process.stop(plan.limits.stop, plan.limits.kill)


def serve(
    plan: CasePlan, evidence: CaseEvidence, owner: Owner, process: OwnedProcess, seconds: float
) -> None:
    with evidence.phase("ready"):
        deadline = time.monotonic() + READY_SECONDS
        while health(plan.ports[0]) != 200:
            check(owner, process)
            if time.monotonic() > deadline:
                raise ServerFailed("was not ready in time", role=process.role)
    with evidence.phase("evaluate"):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            check(owner, process)


def check(owner: Owner, process: OwnedProcess) -> None:
    owner.check()
    if (code := process.exit_code()) is not None:
        raise ServerFailed(f"exited with {code}", role=process.role, lines=process.last_lines())
    time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))

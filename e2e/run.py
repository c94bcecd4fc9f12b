"""The story of one case: launch the real thing, prove every claim, prove that nothing is left."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from e2e import claims, doctor, leases, oracle, proofs, session
from e2e.devices import uuids
from e2e.errors import HarnessError, Interrupted, Outcome
from e2e.evidence.case import CaseEvidence
from e2e.evidence.record import CaseRecord
from e2e.oracle import paired
from e2e.plan import CasePlan
from e2e.process import Owner
from e2e.process.signals import current, interruptible
from e2e.profile.model import Profile
from e2e.systems.deployment import Deployment, launch


def run_case(plan: CasePlan, evidence: CaseEvidence) -> None:
    doctor.require(plan, evidence)
    questions = oracle.questions(plan)
    with (
        _proven(plan, evidence) as deployment,
        claims.under_load(plan, deployment, evidence),
    ):
        oracle.evaluate(plan, questions, deployment, evidence)


@contextmanager
def proven_deployment(plan: CasePlan, evidence: CaseEvidence) -> Iterator[Deployment]:
    """A running deployment that has generated a token and shows what its profile claims, on a
    machine that has what it needs. Raises SetupMissing before anything is launched."""
    doctor.require(plan, evidence)
    with _proven(plan, evidence) as deployment:
        yield deployment


@contextmanager
def _proven(plan: CasePlan, evidence: CaseEvidence) -> Iterator[Deployment]:
    """Each proof takes a picture on entry and must find it again on exit. A signal ends the body,
    never a launch, a stop or a proof.
    """
    with (
        current().deferred(),
        leases.hold(uuids(plan.devices), plan.ports, holder=evidence.record.run_id) as held,
        Owner(evidence.record.run_id, evidence.folder, held) as owner,
        proofs.device_memory_returns(plan, owner, evidence),
        proofs.shared_memory_returns(plan, owner, evidence),
        proofs.ports_released(plan, owner, evidence),
        proofs.no_process_left(plan, owner, evidence),
        launch(plan, owner, evidence) as deployment,
        current().allowed(),
    ):
        for warning in held.warnings:
            evidence.note(warning)
        deployment.wait_until_generating()
        claims.prove(plan, deployment, evidence)
        yield deployment


def execute(
    profile: Profile, case: str, variables: Mapping[str, str], evidence: CaseEvidence
) -> Outcome:
    """Prepare and run a case; whatever ends it is in the evidence, and so is its outcome."""
    with recorded(evidence):
        with evidence.phase("prepare"):
            plan = session.prepare(
                profile,
                case,
                variables,
                evidence.progress,
                lambda plan: doctor.require(plan, evidence),
            )
        with paired.judged(plan, evidence, partial(_again, profile, variables, evidence)):
            run_case(plan, evidence)
    return evidence.conclude()


def _again(
    profile: Profile, variables: Mapping[str, str], evidence: CaseEvidence, case: str, name: str
) -> CaseRecord:
    """A second cold start of a case of this run, under a name of its own: one for all that ask."""
    if (evidence.folder.parent / name / "evidence.json").is_file():
        return paired.read(evidence.folder.parent / name)
    with evidence.phase(name):
        second = evidence.beside(name)
        if execute(profile, case, variables, second) is Outcome.INTERRUPTED:
            raise Interrupted(f"interrupted in {name}")
    return second.record


@contextmanager
def recorded(evidence: CaseEvidence) -> Iterator[None]:
    """Everything that ends the body is kept as a failure and goes no further, an exit with code 0
    least of all; but what a test runner ends its own tests with (pytest-timeout) goes on. A signal
    ends the body once, and never a teardown."""
    try:
        with interruptible():
            yield
    except BaseException as error:
        for failure in _chain(error):
            evidence.failure(failure)
        if not isinstance(error, Exception | KeyboardInterrupt | SystemExit):
            evidence.conclude()
            raise


def _chain(error: BaseException | None) -> Iterator[HarnessError]:
    """The error and those it was raised on top of: a failure of a teardown hides no other. The
    causes of an error are no failures of their own, and what came before them is."""
    while error is not None:
        if isinstance(error, HarnessError):
            yield error
        elif isinstance(error, KeyboardInterrupt):
            yield Interrupted(str(error) or "interrupted")
        else:
            yield HarnessError(
                f"the harness itself failed: {type(error).__name__}: {error}",
                lines=traceback.format_exception(error, chain=False),
                mend="please report this with the evidence folder",
            )
        caused = error.__cause__ is not None
        while error.__cause__ is not None:
            error = error.__cause__
        error = error.__context__
        while caused and error is not None and not isinstance(error, HarnessError):
            error = error.__context__

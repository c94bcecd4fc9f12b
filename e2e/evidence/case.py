"""The evidence of one case while it is being gathered: everything writes to it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from e2e.errors import HarnessError, Outcome, SetupMissing
from e2e.evidence.record import (
    CaseRecord,
    Claim,
    EvaluationRecord,
    Failure,
    Parity,
    Phase,
    Proof,
    RoleRecord,
)
from e2e.evidence.secrets import redact, without
from e2e.evidence.summary import summary_markdown


class Reporter(Protocol):
    """Who is told how a case proceeds, while it does."""

    def phase(self, name: str) -> None: ...

    def progress(self, text: str) -> None: ...


class Silent:
    """Tells nobody."""

    def phase(self, name: str) -> None: ...

    def progress(self, text: str) -> None: ...


class CaseEvidence:
    """Owns `folder`: evidence.json, summary.md and the logs. What comes into `record` is without
    `secrets`, so that nothing made from it can show one.

    Each change is written at once and atomically, so that whatever ends the harness leaves a
    readable record. A folder that cannot be written never disturbs a teardown: it is found by
    `conclude`, and no case passes without its evidence.
    """

    def __init__(
        self,
        folder: Path,
        run_id: str,
        profile: str,
        case: str,
        *,
        secrets: list[str] | None = None,
        reporter: Reporter | None = None,
    ) -> None:
        self.folder = folder
        self.secrets = secrets or []
        self.record = CaseRecord(run_id=run_id, profile=profile, case=case, started=_now())
        self._reporter = reporter or Silent()
        self._phase: str | None = None
        self._unwritable: OSError | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unusable(folder, "made", error) from error
        self.save()
        if self._unwritable:
            raise _unusable(folder, "written to", self._unwritable) from self._unwritable

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a phase; failures that end it carry its name."""
        outer, self._phase = self._phase, name
        started, begin = _now(), time.monotonic()
        self._reporter.phase(name)
        try:
            yield
        except HarnessError as error:
            error.phase = error.phase or name
            raise
        finally:
            self._phase = outer
            self.record.phases.append(
                Phase(name=name, started=started, seconds=round(time.monotonic() - begin, 3))
            )
            self.save()

    def progress(self, text: str) -> None:
        """Tell whoever watches; not part of the record."""
        self._reporter.progress(redact(text, self.secrets))

    def failure(self, error: HarnessError) -> None:
        failure = Failure(
            outcome=error.outcome,
            what=error.what,
            phase=error.phase or self._phase,
            role=error.role,
            device=error.device,
            log=str(error.log) if error.log else None,
            lines=list(error.lines),
            mend=error.mend,
        )
        self.record.failures.append(without(failure, self.secrets))
        self.save()

    def claim(self, claim: Claim) -> None:
        self.record.claims.append(without(claim, self.secrets))
        self.save()

    def proof(self, proof: Proof) -> None:
        self.record.proofs.append(without(proof, self.secrets))
        self.save()

    def role(self, role: RoleRecord) -> None:
        """Add a role, or replace what was known of it."""
        known = {record.role: record for record in self.record.roles}
        self.record.roles = list({**known, role.role: without(role, self.secrets)}.values())
        self.save()

    def evaluation(self, evaluation: EvaluationRecord) -> None:
        self.record.evaluation = without(evaluation, self.secrets)
        self.save()

    def parity(self, parity: Parity) -> None:
        """Replace what was known of it."""
        self.record.parity = without(parity, self.secrets)
        self.save()

    def beside(self, name: str) -> CaseEvidence:
        """Another evidence of the same run, in a folder beside this one, told to the same."""
        return CaseEvidence(
            self.folder.parent / name,
            self.record.run_id,
            self.record.profile,
            name,
            secrets=self.secrets,
            reporter=self._reporter,
        )

    def note(self, text: str) -> None:
        self.record.notes.append(redact(text, self.secrets))
        self.save()

    def conclude(self) -> Outcome:
        """Fix the outcome, the first of the failures' in the order of `Outcome`, in which they are
        kept: what ended the run before what was found while it was stopped."""
        self.save()
        if self._unwritable:
            self.failure(
                HarnessError(
                    f"evidence could not be written to {self.folder}: {self._unwritable.strerror}",
                    mend="free space there, or choose another folder with --evidence",
                )
            )
        order = list(Outcome)
        failures = self.record.failures
        failures.sort(key=lambda failure: (order.index(failure.outcome), failure.phase == "stop"))
        self.record.outcome = failures[0].outcome if failures else Outcome.PASSED
        self.save()
        self._write("summary.md", summary_markdown(self.record))
        if self._unwritable and self.record.outcome is Outcome.PASSED:
            self.record.outcome = Outcome.HARNESS_ERROR
        return self.record.outcome

    def attach(self, name: str, text: str) -> None:
        """Keep a file of its own beside the record."""
        self._write(name, redact(text, self.secrets))

    def save(self) -> None:
        self._write("evidence.json", self.record.model_dump_json(indent=2) + "\n")

    def _write(self, name: str, text: str) -> None:
        partial = self.folder / f"{name}.partial"
        try:
            partial.write_text(text, encoding="utf-8")
            partial.replace(self.folder / name)
        except OSError as error:
            self._unwritable = self._unwritable or error
            with suppress(OSError):
                partial.unlink(missing_ok=True)


def _unusable(folder: Path, what: str, error: OSError) -> SetupMissing:
    return SetupMissing(
        f"the evidence folder {folder} cannot be {what}: {error.strerror}",
        mend="choose another with --evidence or AFD_E2E_EVIDENCE",
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")

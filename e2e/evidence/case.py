"""The evidence of one case while it is being gathered: everything writes to it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from e2e.errors import HarnessError, Outcome
from e2e.evidence.record import CaseRecord, Claim, EvaluationRecord, Failure, Phase, Proof, RoleRecord


class CaseEvidence:
    """Owns `folder` (evidence.json and the logs). Each change is written at once and atomically,
    so that whatever ends the harness leaves a readable record of what was known until then."""

    def __init__(self, folder: Path, run_id: str, profile: str, case: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.record = CaseRecord(run_id=run_id, profile=profile, case=case, started=_now())
        self._phase: str | None = None

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a phase; failures recorded meanwhile carry its name."""
        outer, self._phase = self._phase, name
        started, begin = _now(), time.monotonic()
        try:
            yield
        finally:
            self._phase = outer
            self.record.phases.append(
                Phase(name=name, started=started, seconds=round(time.monotonic() - begin, 3))
            )
            self.save()

    def failure(self, error: HarnessError) -> None:
        self.record.failures.append(
            Failure(
                outcome=error.outcome,
                what=error.what,
                phase=self._phase,
                role=error.role,
                device=error.device,
                log=str(error.log) if error.log else None,
                lines=list(error.lines),
                mend=error.mend,
            )
        )
        self.save()

    def claim(self, claim: Claim) -> None:
        self.record.claims.append(claim)
        self.save()

    def proof(self, proof: Proof) -> None:
        self.record.proofs.append(proof)
        self.save()

    def role(self, role: RoleRecord) -> None:
        """Add a role, or replace what was known of it."""
        self.record.roles = [r for r in self.record.roles if r.role != role.role] + [role]
        self.save()

    def evaluation(self, evaluation: EvaluationRecord) -> None:
        self.record.evaluation = evaluation
        self.save()

    def note(self, text: str) -> None:
        self.record.notes.append(text)
        self.save()

    def conclude(self) -> Outcome:
        """Fix the outcome: the first failure's, or passed."""
        failures = self.record.failures
        self.record.outcome = failures[0].outcome if failures else Outcome.PASSED
        self.save()
        return self.record.outcome

    def save(self) -> None:
        path = self.folder / "evidence.json"
        partial = path.with_suffix(".json.partial")
        partial.write_text(self.record.model_dump_json(indent=2) + "\n", encoding="utf-8")
        os.replace(partial, path)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")

"""Outcomes of a case, and the exceptions that carry them.

Every exception says what happened, where (role, device, log file and its last
lines) and what to do about it. Outcomes are never folded into one "failed".
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import ClassVar


class Outcome(StrEnum):
    """How a case ended. `exit_code` is what `afd-e2e run` exits with.

    A case with several failures has the outcome that stands first here: what
    ended the run before what was found afterwards.
    """

    PROFILE_INVALID = "profile-invalid"
    SETUP_MISSING = "setup-missing"
    INTERRUPTED = "interrupted"
    HARNESS_ERROR = "harness-error"
    SERVER_FAILED = "server-failed"
    CLAIM_NOT_PROVEN = "claim-not-proven"
    INVALID_EVALUATION = "invalid-evaluation"
    WRONG_ANSWERS = "wrong-answers"
    TEST_FAILED = "test-failed"
    RESIDUE_LEFT = "residue-left"
    PASSED = "passed"

    @property
    def exit_code(self) -> int:
        return _EXIT_CODES[self]


_EXIT_CODES = {
    Outcome.PASSED: 0,
    Outcome.TEST_FAILED: 1,
    Outcome.PROFILE_INVALID: 2,
    Outcome.SETUP_MISSING: 3,
    Outcome.SERVER_FAILED: 4,
    Outcome.INVALID_EVALUATION: 5,
    Outcome.WRONG_ANSWERS: 6,
    Outcome.CLAIM_NOT_PROVEN: 7,
    Outcome.RESIDUE_LEFT: 8,
    Outcome.HARNESS_ERROR: 70,
    Outcome.INTERRUPTED: 130,
}


class HarnessError(Exception):
    """What happened, where, and the mend. Subclasses fix the outcome."""

    outcome: ClassVar[Outcome] = Outcome.HARNESS_ERROR

    def __init__(
        self,
        what: str,
        *,
        mend: str = "",
        role: str | None = None,
        device: str | None = None,
        log: Path | None = None,
        lines: Sequence[str] = (),
    ) -> None:
        super().__init__(what)
        self.what = what
        self.mend = mend
        self.role = role
        self.device = device
        self.log = log
        self.lines = tuple(lines)
        self.phase: str | None = None

    def __str__(self) -> str:
        where = ", ".join(
            f"{name} {value}"
            for name, value in (("role", self.role), ("device", self.device), ("log", self.log))
            if value is not None
        )
        parts = [f"{self.what} ({where})" if where else self.what]
        parts += [f"    | {line}" for line in self.lines]
        if self.mend:
            parts.append(f"  to do: {self.mend}")
        return "\n".join(parts)


class ProfileError(HarnessError):
    """A profile or a selection of cases that cannot be used."""

    outcome = Outcome.PROFILE_INVALID


class SetupMissing(HarnessError):
    """Something a case needs is not there; found before anything is launched."""

    outcome = Outcome.SETUP_MISSING


class ServerFailed(HarnessError):
    """A role exited, hung, never became ready, or could not generate a token."""

    outcome = Outcome.SERVER_FAILED


class InvalidEvaluation(HarnessError):
    """Answers are truncated, empty, failed, doubled or missing: no verdict on the model."""

    outcome = Outcome.INVALID_EVALUATION


class WrongAnswers(HarnessError):
    """The model answered, and not as required."""

    outcome = Outcome.WRONG_ANSWERS


class ClaimNotProven(HarnessError):
    """The live deployment does not show what the profile says of it."""

    outcome = Outcome.CLAIM_NOT_PROVEN


class TestFailed(HarnessError):
    """A user's own test of a running deployment failed."""

    __test__ = False
    outcome = Outcome.TEST_FAILED


class ResidueLeft(HarnessError):
    """Something of the run is still there after the stop."""

    outcome = Outcome.RESIDUE_LEFT


class Interrupted(HarnessError):
    """A signal ended the run before it was complete."""

    outcome = Outcome.INTERRUPTED

"""A claim judged: the record for the evidence, and what would have proven it."""

from __future__ import annotations

from dataclasses import dataclass

from e2e.evidence.record import Claim


@dataclass(frozen=True)
class Judgement:
    claim: Claim
    proof: str

    @property
    def unproven(self) -> str:
        """One line for the error of a case."""
        claim = self.claim
        return (
            f"{claim.name}: expected {claim.expected}; seen {claim.seen} ({claim.where}); "
            f"proof would be {self.proof}"
        )


def judge(name: str, *, held: bool, expected: str, seen: str, where: str, proof: str) -> Judgement:
    return Judgement(Claim(name=name, held=held, expected=expected, seen=seen, where=where), proof)

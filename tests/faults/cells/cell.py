"""One fault in one phase of one role, and what has to come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from e2e.errors import Outcome
from tests.faults.one_case import Strike
from tests.faults.standin.faults import Fault

TOKEN = "TOKEN"
"""In names, paths and words: what is this test's alone."""

ROLES = ("native", "attention", "ffn")


@dataclass(frozen=True)
class Cell:
    """`fault` in a reader's words strikes `role` in `phase`; the run ends with `outcome` (None: it
    was killed itself), and its user reads all `words`, within `within` seconds from its begin on a
    busy machine. Every deadline of the profile is beyond that: what is noticed only there fails,
    unless `limits` sets one.

    How it is done: `faults` of the stand-ins, `strikes`, `broken` of the harness, a `wrapper`
    around the server, `variables` of the harness, `damage` to the set-up by its name.
    """

    fault: str
    phase: str
    role: str
    outcome: Outcome | None
    words: tuple[str, ...] = ()
    within: float = 60.0
    faults: tuple[Fault, ...] = ()
    strikes: tuple[Strike, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    answer_seconds: float = 0.0
    variables: Mapping[str, str] = field(default_factory=dict)
    wrapper: str | None = None
    damage: str = ""
    broken: str = ""
    pair: bool = False

    @property
    def case(self) -> str:
        return "pair" if self.pair or self.role in ("attention", "ffn") else "native"

    @property
    def id(self) -> str:
        return f"{self.fault}, {self.phase}, {self.role}".replace("/", "-")

    def told(self, token: str) -> Cell:
        """With its own token wherever it says so."""

        def own(text: str) -> str:
            return text.replace(TOKEN, token)

        return replace(
            self,
            words=tuple(map(own, self.words)),
            faults=tuple(
                replace(
                    fault,
                    role=fault.role or (self.role if self.role in ROLES else None),
                    name=own(fault.name),
                    path=own(fault.path),
                )
                for fault in self.faults
            ),
        )

"""Cases played in this process, or in one of their own that can be killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.evidence.record import CaseRecord, Proof
from tests.faults import one_case
from tests.faults.setting import free_port
from tests.faults.standin.faults import Fault, Orders

_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Played:
    """How a case ended, from its evidence alone."""

    folder: Path
    record: CaseRecord

    @property
    def seconds(self) -> dict[str, float]:
        return {phase.name: phase.seconds for phase in self.record.phases}

    @property
    def failures(self) -> list[str]:
        return [f"{failure.outcome}: {failure.what}" for failure in self.record.failures]

    def proof(self, name: str) -> Proof:
        return next(proof for proof in self.record.proofs if proof.name == name)

    @classmethod
    def read(cls, folder: Path) -> Played:
        text = (folder / "evidence.json").read_text(encoding="utf-8")
        return cls(folder, CaseRecord.model_validate_json(text))


def play(folder: Path, *faults: Fault, seconds: float = 0.2) -> Played:
    """A whole case in this process, its evaluation taking `seconds`."""
    variables = Orders(faults).variables()
    os.environ.update(variables)
    try:
        one_case.main(folder, free_port(), seconds)
    finally:
        for name in variables:
            del os.environ[name]
    return Played.read(folder)


@contextmanager
def playing(
    folder: Path, *faults: Fault, seconds: float = 60.0, port: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A case in a process of its own, which tells its phases on `stdout`; killed at the end."""
    arguments = [folder, str(port or free_port()), str(seconds)]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.one_case", *arguments],
        cwd=_ROOT,
        env={**os.environ, **Orders(faults).variables()},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for_phase(process: subprocess.Popen[str], phase: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == phase:
            return
    raise AssertionError(f"ended before {phase}")

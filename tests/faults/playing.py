"""Whole cases around stand-ins, played in this process, or in one of their own to be killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from e2e.evidence.record import CaseRecord, Proof
from tests.faults import one_case, setting
from tests.faults.one_case import Story, Strike
from tests.faults.standin.faults import Fault, Orders

_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Played:
    """How a case ended, from its evidence alone; `wall` are its seconds as a whole."""

    folder: Path
    record: CaseRecord
    wall: float = 0.0

    @property
    def seconds(self) -> dict[str, float]:
        return {phase.name: phase.seconds for phase in self.record.phases}

    @property
    def failures(self) -> list[str]:
        return [f"{failure.outcome}: {failure.what}" for failure in self.record.failures]

    def proof(self, name: str) -> Proof:
        return next(proof for proof in self.record.proofs if proof.name == name)

    @classmethod
    def read(cls, folder: Path, wall: float = 0.0) -> Played:
        text = (folder / "evidence.json").read_text(encoding="utf-8")
        return cls(folder, CaseRecord.model_validate_json(text), wall)


class Stage:
    """Where cases of one test are played: a program, its packages, a checkpoint, ports."""

    def __init__(self, folder: Path, ports: Iterator[int]) -> None:
        self.folder = folder
        self.ports = ports
        for name in ("packages", "model"):
            (folder / name).mkdir()
        self.packages = setting.packages(folder / "packages")
        self.model = setting.checkpoint(folder / "model")
        self.executable = setting.executable(folder)

    def variables(self, faults: Sequence[Fault], answer_seconds: float) -> dict[str, str]:
        orders = Orders(faults, str(setting.ANSWERS), answer_seconds=answer_seconds)
        return {
            "AFD_STANDIN_CASES": "1",
            "AFD_STANDIN_MODEL": str(self.model),
            "AFD_CPU_E2E_VLLM_BIN": str(self.executable),
            **orders.variables(),
        }

    def story(self, folder: Path, **changes: object) -> Story:
        told = {"port": next(self.ports), "path": str(self.packages), **changes}
        return Story(str(folder), **told)  # pyright: ignore[reportArgumentType]

    def play(
        self,
        folder: Path,
        *faults: Fault,
        answer_seconds: float = 0.0,
        variables: Mapping[str, str] | None = None,
        **story: object,
    ) -> Played:
        """A whole case in this process."""
        begin = time.monotonic()
        told = {**self.variables(faults, answer_seconds), **(variables or {})}
        with mock.patch.dict(os.environ, told):
            one_case.main(self.story(folder, **story))
        return Played.read(folder, time.monotonic() - begin)

    @contextmanager
    def playing(
        self,
        folder: Path,
        *faults: Fault,
        answer_seconds: float = 60.0,
        variables: Mapping[str, str] | None = None,
        **story: object,
    ) -> Iterator[subprocess.Popen[str]]:
        """A case in a process of its own, which tells its phases on `stdout`; killed at the end."""
        told = {**self.variables(faults, answer_seconds), **(variables or {})}
        process = subprocess.Popen(
            [sys.executable, "-m", one_case.__name__, self.story(folder, **story).to_json()],
            cwd=_ROOT,
            env={**os.environ, **told},
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


__all__ = ["Fault", "Played", "Stage", "Strike", "wait_for_phase"]

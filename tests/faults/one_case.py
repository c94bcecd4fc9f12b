"""A whole case around stand-ins, as `afd-e2e run` runs one; also as a process of its own.

    python -m tests.faults.one_case STORY

Each phase is told on standard output as it begins, and the exit code is that of the outcome. The
`Story` is JSON; what the stand-ins do wrong is in the environment.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from unittest import mock

from e2e import profile, run
from e2e.evidence.case import CaseEvidence
from e2e.evidence.secrets import secret_values
from e2e.process.guardian import table
from e2e.profile.model import Profile
from tests.faults.setting import PROFILE

RUN = "run-of-faults"
HARNESS = "harness"
_DEAD_SECONDS = 30.0


@dataclass(frozen=True)
class Strike:
    """A signal, as a phase begins, to the leader of a role or to the harness."""

    phase: str
    target: str
    signal: int


@dataclass(frozen=True)
class Story:
    """`case` of the profile, `port` its first, `limits` what differs of its time limits, `unset`
    and `path` of the environment of its servers; `broken`: a name of the harness that raises."""

    folder: str
    port: int
    case: str = "native"
    limits: Mapping[str, float] = field(default_factory=dict)
    path: str = ""
    strikes: Sequence[Strike] = ()
    broken: str = ""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, text: str) -> Story:
        told = json.loads(text)
        told["strikes"] = [Strike(**strike) for strike in told["strikes"]]
        return cls(**told)


class Striking:
    """A reporter that strikes as a phase begins, and tells it on standard output."""

    def __init__(self, strikes: Sequence[Strike]) -> None:
        self._strikes = strikes
        self.evidence: CaseEvidence
        self.struck: float | None = None

    def phase(self, name: str) -> None:
        print(name, flush=True)
        for strike in self._strikes:
            if strike.phase == name:
                self.struck = time.monotonic()
                self._strike(strike)

    def progress(self, text: str) -> None: ...

    def _strike(self, strike: Strike) -> None:
        if strike.target == HARNESS:
            os.kill(os.getpid(), strike.signal)
            return
        pid = next(r.pid for r in self.evidence.record.roles if r.role == strike.target)
        assert pid is not None
        os.kill(pid, strike.signal)
        wanted = "T" if strike.signal == signal.SIGSTOP else "Z"
        deadline = time.monotonic() + _DEAD_SECONDS
        while (row := table.read(pid)) is not None and row.state != wanted:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def main(story: Story) -> int:
    reporter = Striking(story.strikes)
    evidence = reporter.evidence = CaseEvidence(
        Path(story.folder),
        RUN,
        "standin",
        story.case,
        secrets=secret_values(os.environ),
        reporter=reporter,
    )
    variables = {**os.environ, "AFD_E2E_PORT_BASE": str(story.port)}
    with _broken(story.broken):
        return run.execute(_profile(story), story.case, variables, evidence).exit_code


def _profile(story: Story) -> Profile:
    loaded = profile.load(PROFILE)
    environment = loaded.environment.model_copy(
        update={"set": {"PYTHONPATH": story.path}, "scrub": loaded.environment.scrub}
    )
    limits = loaded.time_limits.model_copy(update=dict(story.limits))
    return loaded.model_copy(update={"environment": environment, "time_limits": limits})


def _broken(name: str) -> contextlib.AbstractContextManager[object]:
    if not name:
        return contextlib.nullcontext()
    module, _, attribute = name.rpartition(".")
    fails: Callable[..., object] = mock.Mock(side_effect=RuntimeError("boom"))
    return mock.patch.object(importlib.import_module(module), attribute, fails)


if __name__ == "__main__":
    sys.exit(main(Story.of_json(sys.argv[1])))

"""Signals at random moments of a run: whatever comes when, nothing is left.

For the long form set AFD_E2E_SIGNAL_RUNS=200. The seed of a run is its id.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import time
from pathlib import Path

import pytest

from e2e.evidence.record import CaseRecord
from e2e.process.guardian import runs
from tests.faults.leftovers import held, processes
from tests.faults.playing import Stage
from tests.faults.setting import until
from tests.faults.standin.faults import Fault

LIMITS = {"stop": 2.0, "kill": 3.0}
RUNS = int(os.environ.get("AFD_E2E_SIGNAL_RUNS", "12"))
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
FAULTS = (
    Fault("child", "start"),
    Fault("child", "evaluation", stubborn=True),
    Fault("child", "ready"),
    Fault("zombie", "start"),
    Fault("hang", "start"),
    Fault("hang", "stop"),
    Fault("kill", "ready"),
    Fault("exit", "start"),
    Fault("flood", "ready", size=10_000_000),
)


@pytest.mark.parametrize("seed", range(RUNS))
def test_nothing_is_left(stage: Stage, case_folder: Path, host_folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    segment = Path("/dev/shm", f"psm_{secrets.token_hex(6)}")
    faults = [
        Fault("shared_memory", "start", name=segment.name, held=True),
        *chance.sample(FAULTS, chance.randrange(3)),
    ]
    pair = chance.random() < 0.3
    with stage.playing(
        case_folder, *faults, answer_seconds=0.4, case="pair" if pair else "native", limits=LIMITS
    ) as harness:
        for _ in range(chance.choice((1, 1, 2, 3))):
            time.sleep(chance.uniform(0, 2.5))
            harness.send_signal(chance.choice(SIGNALS))
        until(lambda: not processes(host_folder, segment.name), "everything is gone", 60)
        until(lambda: harness.poll() is not None, "the harness has ended", 60)
    if segment.exists():  # its maker was gone before anybody could look: named, and left alone
        segment.unlink()
        assert str(segment) in "".join(file.read_text() for file in case_folder.glob("*.json"))
    until(lambda: not held(host_folder), "the leases are free", 20)
    for file in case_folder.glob("*.json"):
        json.loads(file.read_text(encoding="utf-8"))
    for path in runs.run_files(str(host_folder)):
        assert runs.read(path)[1]["ended"]["survivors"] == []
        assert not Path(runs.read(path)[1]["private"]).exists()
    if (case_folder / "evidence.json").exists():
        CaseRecord.model_validate_json((case_folder / "evidence.json").read_text(encoding="utf-8"))

"""Memory comes back, comes back late, or never; it is ours or somebody else's."""

from __future__ import annotations

import csv
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from e2e.devices import sampling
from e2e.devices.sampling import Sampler
from e2e.errors import HarnessError, SetupMissing
from e2e.evidence.case import CaseEvidence
from e2e.evidence.record import Proof
from e2e.plan import CasePlan
from e2e.process import Owner
from e2e.process.guardian.table import Identity
from e2e.profile.model import Teardown, TimeLimits
from e2e.proofs.device_memory import CURVE, device_memory_returns
from tests.stubs.device_driver import StubDriver, gpu
from tests.stubs.plans import case_plan, role_plan

SERVER = 4_000_123
STRANGER = 4_000_999


class StubOwner:
    """`seen` were its processes at some time, `pids` are alive."""

    def __init__(self, *seen: int) -> None:
        self.pids: set[int] = set()
        self.sightings = SimpleNamespace(seen={"native": {Identity(pid, 1) for pid in seen}})

    def living(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid) for pid in self.pids]


def nobody() -> Owner:
    return cast(Owner, StubOwner())


def plan(release: float = 1.0, tolerance: int = 0, backend: str = "gpu") -> CasePlan:
    return case_plan(
        role_plan(devices=("1", "0")),
        backend=backend,
        limits=TimeLimits(release=release),
        teardown=Teardown(memory_tolerance_mib=tolerance),
    )


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests need not wait half a second for the sampler's next look."""
    monkeypatch.setattr(sampling, "_INTERVAL", 0.01)


@pytest.fixture
def evidence(tmp_path: Path) -> CaseEvidence:
    return CaseEvidence(tmp_path / "case", "run", "canary-2gpu", "baseline-eager")


@pytest.fixture
def driver(often: None) -> StubDriver:
    return StubDriver()


@pytest.fixture
def stranger() -> Iterator[int]:
    """A process of somebody else that is visible from here."""
    command = [sys.executable, "-c", "input()", "training-job"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        yield process.pid
        process.kill()


def run(
    body: Callable[[StubDriver, StubOwner], None],
    driver: StubDriver,
    evidence: CaseEvidence,
    case: CasePlan | None = None,
) -> Proof:
    owner = StubOwner(SERVER)
    with device_memory_returns(case or plan(), cast(Owner, owner), evidence, lambda: driver):
        body(driver, owner)
    assert driver.closed
    return evidence.record.proofs[-1]


@contextmanager
def seen_by_the_sampler(driver: StubDriver) -> Iterator[None]:
    """Whatever is set up before the block ends has been sampled."""
    yield
    looks = driver.looks
    deadline = time.monotonic() + 5
    while driver.looks < looks + 4 and time.monotonic() < deadline:
        time.sleep(0.02)


def serve(driver: StubDriver, owner: StubOwner) -> None:
    with seen_by_the_sampler(driver):
        driver[0].holders[SERVER] = 29_148


def stop(driver: StubDriver, owner: StubOwner) -> None:
    driver[0].holders.clear()
    owner.pids.clear()


def test_memory_that_comes_back_at_once(driver, evidence):
    def body(driver, owner):
        serve(driver, owner)
        stop(driver, owner)

    proof = run(body, driver, evidence)
    assert proof.held
    assert not evidence.record.failures
    rows = {row["device"]: row for row in proof.detail["devices"]}  # pyright: ignore
    assert rows[gpu(0).label]["peak_mib"] == 29_148
    assert rows[gpu(0).label]["before_mib"] == 0
    assert rows[gpu(0).label]["driver_reserves_mib"] == 615
    assert list(rows) == [gpu(1).label, gpu(0).label]


def test_the_curve_of_a_late_release_is_kept(driver, evidence):
    def body(driver, owner):
        serve(driver, owner)
        stop(driver, owner)
        driver[0].late = [20_000, 9_000, 1_642]

    proof = run(body, driver, evidence)
    assert proof.held
    assert proof.seconds > 0.05
    with (evidence.folder / CURVE).open(encoding="utf-8") as file:
        curve = [row for row in csv.DictReader(file) if row["device"] == gpu(0).uuid]
    assert [int(row["used_mib"]) for row in curve][-2:] == [1_642, 0]
    assert {row["reserved_mib"] for row in curve} == {"615"}
    assert any(row["holders"] == f"{SERVER}:29148" for row in curve)


def test_memory_that_never_comes_back_and_nobody_owns(driver, evidence):
    def body(driver, owner):
        serve(driver, owner)
        stop(driver, owner)
        driver[0].orphaned = 1_642

    proof = run(body, driver, evidence, plan(release=0.3))
    assert not proof.held
    assert proof.found == [f"device {gpu(0).label}: 1642 MiB, no owner listed"]
    [failure] = evidence.record.failures
    assert failure.outcome == "residue-left"
    assert gpu(0).label in failure.what
    assert "quarantine" in failure.mend
    assert 0.3 <= proof.seconds < 1


def test_memory_that_a_process_of_the_run_still_holds(driver, evidence):
    def body(driver, owner):
        serve(driver, owner)
        owner.pids = {SERVER}

    proof = run(body, driver, evidence, plan(release=0.2))
    assert proof.found[0].startswith(f"device {gpu(0).label}: 29148 MiB, pid {SERVER}")


def test_a_remainder_within_the_tolerance(driver, evidence):
    def body(driver, owner):
        driver[0].orphaned = 40

    assert run(body, driver, evidence, plan(tolerance=64)).held


def test_what_the_driver_reserves_is_no_residue(driver, evidence):
    def body(driver, owner):
        driver[0].reserved += 100

    assert run(body, driver, evidence).held


def test_a_stranger_who_comes_and_stays_is_no_residue(driver, evidence, stranger):
    def body(driver, owner):
        serve(driver, owner)
        driver[0].holders[stranger] = 700
        serve(driver, owner)
        del driver[0].holders[SERVER]

    proof = run(body, driver, evidence)
    assert proof.held
    [other] = proof.detail["others"]  # pyright: ignore
    assert f"pid {stranger}" in other
    assert "training-job" in other
    assert "700 MiB" in other


def test_residue_is_seen_beside_a_stranger(driver, evidence, stranger):
    def body(driver, owner):
        driver[0].holders[stranger] = 700
        serve(driver, owner)
        del driver[0].holders[SERVER]
        driver[0].orphaned = 50

    proof = run(body, driver, evidence, plan(release=0.2))
    assert not proof.held
    assert "50 MiB, no owner listed, beside pid" in proof.found[0]


def test_a_stranger_of_another_container(driver, evidence):
    def body(driver, owner):
        driver[1].holders[STRANGER] = 300
        serve(driver, owner)
        stop(driver, owner)

    proof = run(body, driver, evidence)
    assert proof.held
    assert "not visible from here" in str(proof.detail["others"])


@pytest.mark.parametrize("mib", [512, None])
def test_a_device_in_use_before_the_launch_is_refused(driver, evidence, stranger, mib):
    driver[1].holders[stranger] = mib
    launched = False
    with (
        pytest.raises(SetupMissing) as refused,
        device_memory_returns(plan(), nobody(), evidence, lambda: driver),
    ):
        launched = True
    assert not launched
    [line] = refused.value.lines
    assert f"pid {stranger}" in line
    assert "training-job" in line
    assert "user " in line
    assert ("512 MiB" if mib else "unknown memory") in line
    assert driver.closed


def test_memory_that_an_earlier_run_left_is_refused(driver, evidence):
    driver[0].orphaned = 1_898
    with (
        pytest.raises(SetupMissing, match="1898 MiB, no owner listed"),
        device_memory_returns(plan(), nobody(), evidence, lambda: driver),
    ):
        pass


def test_a_stranger_on_another_device_is_nobody_s_business(often, evidence, stranger):
    driver = StubDriver(gpu(0), gpu(1), gpu(2))
    driver[2].holders[stranger] = 500
    assert run(serve_and_stop, driver, evidence).held


def serve_and_stop(driver: StubDriver, owner: StubOwner) -> None:
    serve(driver, owner)
    stop(driver, owner)


def test_the_proof_is_made_when_the_body_fails(driver, evidence):
    with (
        pytest.raises(HarnessError, match="died"),
        device_memory_returns(plan(release=0.2), nobody(), evidence, lambda: driver),
    ):
        driver[0].orphaned = 10
        raise HarnessError("died")
    assert not evidence.record.proofs[-1].held


def test_a_device_that_falls_off_the_bus(driver, evidence):
    def body(driver, owner):
        serve(driver, owner)
        driver[0].lost = True

    proof = run(body, driver, evidence)
    assert not proof.held
    assert "GPU is lost" in proof.found[0]


def test_nothing_is_claimed_on_a_cpu(driver, evidence):
    with device_memory_returns(plan(backend="cpu"), nobody(), evidence, lambda: driver):
        pass
    assert not evidence.record.proofs
    assert not driver.looks


def test_sampling_costs_less_than_a_hundredth_of_a_core(tmp_path):
    driver = StubDriver(*(gpu(index) for index in range(8)))
    uuids = list(driver.devices)
    with Sampler(driver, uuids, tmp_path / "curve.csv") as sampler:
        before = time.process_time()
        time.sleep(2)
        spent = time.process_time() - before
    assert spent < 0.02
    assert 0 < sampler.cpu_percent < 1


def test_an_expensive_driver_is_asked_less_often(tmp_path):
    class Slow(StubDriver):
        def memory(self, uuid):
            end = time.thread_time() + 0.01
            while time.thread_time() < end:
                pass
            return super().memory(uuid)

    driver = Slow()
    with Sampler(driver, list(driver.devices), tmp_path / "curve.csv"):
        time.sleep(1.5)
    assert driver.looks == 2


def test_an_unchanged_level_is_not_written_again(tmp_path):
    driver = StubDriver()
    path = tmp_path / "curve.csv"
    sampler = Sampler(driver, list(driver.devices), path)
    for _ in range(5):
        sampler.sample()
    assert len(path.read_text(encoding="utf-8").splitlines()) == 2


def test_a_curve_that_cannot_be_written_ends_nothing(tmp_path):
    driver = StubDriver()
    driver[0].holders = {SERVER: 500}
    with Sampler(driver, list(driver.devices), tmp_path / "gone" / "curve.csv") as sampler:
        sampler.sample()
    assert "No such file" in str(sampler.unwritten)
    assert sampler.peaks[gpu(0).uuid] == 500


def test_no_thread_is_left(driver, evidence):
    run(serve_and_stop, driver, evidence)
    assert "device-memory" not in {thread.name for thread in threading.enumerate()}

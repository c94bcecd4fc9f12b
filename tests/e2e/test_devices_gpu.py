"""The NVML driver on a real GPU machine, against nvidia-smi and against itself.

Needs nvidia-ml-py and a driver, no vLLM and no model; opts in with AFD_E2E_BACKEND=gpu.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from e2e.devices import resolve, take
from e2e.devices.nvml import NvmlDriver
from e2e.devices.sampling import Sampler
from e2e.errors import SetupMissing
from e2e.evidence.case import CaseEvidence
from e2e.process import Owner
from e2e.proofs.device_memory import CURVE, device_memory_returns
from tests.stubs import gpu_case
from tests.stubs.plans import case_plan, role_plan

pytestmark = pytest.mark.skipif(
    os.environ.get("AFD_E2E_BACKEND") != "gpu", reason="set AFD_E2E_BACKEND=gpu to opt in"
)


def _nobody() -> Owner:
    """An owner that owns nothing: every process on a device is somebody else's."""
    return cast(Owner, SimpleNamespace(sightings=SimpleNamespace(seen={}), living=list))


@pytest.fixture
def driver() -> Iterator[NvmlDriver]:
    with closing(NvmlDriver()) as driver:
        yield driver


@pytest.fixture
def evidence(tmp_path: Path) -> CaseEvidence:
    return CaseEvidence(tmp_path / "case", "run", "devices", "memory")


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[str]]:
    """A process of somebody else with 512 MiB on GPU 0."""
    with gpu_case.stranger("0") as process:
        yield process


def _smi(query: str) -> list[list[str]]:
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [[cell.strip() for cell in line.split(",")] for line in shown.splitlines()]


def test_the_inventory_is_that_of_nvidia_smi(driver):
    inventory = take(driver)
    print("\n".join(f"{name}: {value}" for name, value in inventory.facts().items()))
    whole = [device for device in inventory.devices if device.identity.parent is None]
    assert whole
    if shutil.which("nvidia-smi") is None:
        pytest.skip("no nvidia-smi to compare with")
    shown = _smi("index,uuid,name,memory.total,memory.used,driver_version")
    for device, (index, uuid, name, total, used, version) in zip(whole, shown, strict=True):
        assert (device.identity.index, device.uuid, device.identity.name) == (index, uuid, name)
        assert abs(device.memory.total - int(total)) <= 1
        assert abs(device.memory.used - int(used)) <= 2
        assert inventory.software["NVIDIA driver"] == version


def test_an_idle_device_uses_nothing_though_the_driver_reserves(driver):
    for device in take(driver).devices:
        if not device.holders:
            assert device.memory.used == 0
            assert device.memory.reserved > 0


def test_every_pair_has_a_link(driver):
    inventory = take(driver)
    whole = sum(device.identity.parent is None for device in inventory.devices)
    assert len(inventory.links) == whole * (whole - 1) // 2
    assert "unknown" not in inventory.links.values()


def test_devices_are_found_by_index_uuid_and_prefix(driver):
    inventory = take(driver)
    first = inventory.devices[0]
    for token in ("0", first.uuid, first.uuid[:12]):
        assert resolve([token], inventory) == [first]
    with pytest.raises(SetupMissing, match="no such device"):
        resolve(["GPU-none"], inventory)


def test_looking_leaves_no_trace(driver):
    before = take(driver)
    for _ in range(20):
        take(driver)
    after = take(driver)
    assert os.getpid() not in {h.pid for d in after.devices for h in d.holders}
    assert [d.memory.used for d in after.devices] == [d.memory.used for d in before.devices]


def test_sampling_every_device_costs_less_than_a_hundredth_of_a_core(driver, tmp_path):
    uuids = [identity.uuid for identity in driver.identities()]
    with Sampler(driver, uuids, tmp_path / "curve.csv") as sampler:
        before = time.process_time()
        time.sleep(10)
        spent = time.process_time() - before
    print(
        f"{len(uuids)} devices: {spent * 10:.2f}% of a core, by itself {sampler.cpu_percent:.2f}%"
    )
    assert spent / 10 < 0.01


def test_a_process_on_a_device_is_seen_and_refused(driver, evidence, stranger):
    [holder] = take(driver).devices[0].holders
    assert holder.pid == stranger.pid
    assert holder.mib is not None
    assert 512 <= holder.mib < 4096
    assert holder.user
    assert sys.executable in holder.command
    plan = case_plan(role_plan(devices=("0",)), backend="gpu")
    with (
        pytest.raises(SetupMissing, match=f"pid {stranger.pid}"),
        device_memory_returns(plan, _nobody(), evidence),
    ):
        pytest.fail("launched onto a device in use")


def test_the_curve_of_a_process_that_comes_and_goes(evidence, request):
    plan = case_plan(role_plan(devices=("0",)), backend="gpu")
    with device_memory_returns(plan, _nobody(), evidence):
        process = request.getfixturevalue("stranger")
        time.sleep(1.5)
        process.kill()
        process.wait()
    [proof] = evidence.record.proofs
    print((evidence.folder / CURVE).read_text(encoding="utf-8"))
    print(proof.model_dump_json(indent=1))
    assert proof.held
    assert f"pid {process.pid}" in str(proof.detail["others"])

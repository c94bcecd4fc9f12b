"""The NVML driver against a scripted NVML; the library's names are checked to be the real ones."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from e2e.devices import nvml, take
from e2e.devices.nvml import NvmlDriver
from e2e.errors import HarnessError, SetupMissing

MIB = 1 << 20


class Scripted:
    """NVML of a host with a GPU 0 and a GPU 1, which is divided by MIG; a handle is its UUID."""

    processes: dict[str, list[tuple[int, int | None]]]
    link_state: Callable[[str, int], int]
    nvlink: bool = True
    shut: bool = False
    lost: bool = False

    def __init__(self) -> None:
        self.processes = {}
        self.remote: dict[int, tuple[int, bytes]] = dict.fromkeys(range(18), (2, b"switch"))

    def __getattr__(self, name: str) -> Any:
        if re.match(r"NVML(Error|_)|nvmlMemory_v2", name):
            return getattr(pynvml, name)
        raise AttributeError(name)

    def nvmlInit(self) -> None: ...

    def nvmlShutdown(self) -> None:
        self.shut = True

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.95.05"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 13010

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return f"GPU-{index}"

    def nvmlDeviceGetUUID(self, handle: str) -> str:
        return handle

    def nvmlDeviceGetName(self, handle: str) -> str:
        return "NVIDIA H200"

    def nvmlDeviceGetMigMode(self, handle: str) -> list[int]:
        if handle == "GPU-0":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return [pynvml.NVML_DEVICE_MIG_ENABLE, pynvml.NVML_DEVICE_MIG_ENABLE]

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: str) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: str, index: int) -> str:
        if index != 2:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return "MIG-2"

    def nvmlDeviceGetMemoryInfo(self, handle: str, version: int) -> SimpleNamespace:
        assert version == pynvml.nvmlMemory_v2
        if self.lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return SimpleNamespace(total=143771 * MIB, used=1, reserved=615 * MIB, free=0)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[SimpleNamespace]:
        listed = self.processes.get(handle, [])
        return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in listed]

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle: str) -> list[SimpleNamespace]:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    def nvmlDeviceGetMPSComputeRunningProcesses(self, handle: str) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=7, usedGpuMemory=None)] if handle == "GPU-0" else []

    def nvmlDeviceGetP2PStatus(self, one: str, other: str, capability: int) -> int:
        assert capability == pynvml.NVML_P2P_CAPS_INDEX_NVLINK
        ok, no = pynvml.NVML_P2P_STATUS_OK, pynvml.NVML_P2P_STATUS_NOT_SUPPORTED
        return ok if self.nvlink else no

    def nvmlDeviceGetPciInfo(self, handle: str) -> SimpleNamespace:
        return SimpleNamespace(busId=handle.encode())

    def nvmlDeviceGetNvLinkState(self, handle: str, link: int) -> int:
        if link >= 20:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return link in self.remote

    def nvmlDeviceGetNvLinkRemoteDeviceType(self, handle: str, link: int) -> int:
        return self.remote[link][0]

    def nvmlDeviceGetNvLinkRemotePciInfo(self, handle: str, link: int) -> SimpleNamespace:
        return SimpleNamespace(busId=self.remote[link][1])

    def nvmlDeviceGetTopologyCommonAncestor(self, one: str, other: str) -> int:
        return pynvml.NVML_TOPOLOGY_NODE


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    library = Scripted()
    monkeypatch.setattr(nvml, "_import", lambda: library)
    return library


def test_every_name_of_the_library_is_a_real_one():
    names = set(re.findall(r"nvml\.(\w+)", inspect.getsource(nvml)))
    assert len(names) > 25
    assert not {name for name in names if not hasattr(pynvml, name)}


def test_memory_is_that_of_the_second_structure_rounded_up(scripted):
    memory = NvmlDriver().memory("GPU-0")
    assert (memory.total, memory.used, memory.reserved) == (143771, 1, 615)


def test_a_part_of_a_gpu_is_a_device_and_the_gpu_is_none(scripted):
    devices = [device.identity for device in take(NvmlDriver()).devices]
    assert [(d.index, d.uuid, d.partitioned, d.parent) for d in devices] == [
        ("0", "GPU-0", False, None),
        ("1", "GPU-1", True, None),
        ("1:2", "MIG-2", False, "GPU-1"),
    ]


def test_holders_of_all_kinds_with_known_and_unknown_memory(scripted):
    scripted.processes = {"GPU-0": [(5, 3 * MIB + 1), (6, None)]}
    holders = NvmlDriver().holders("GPU-0")
    assert [(holder.pid, holder.mib) for holder in holders] == [(5, 4), (6, None), (7, None)]


def test_links_through_switches_are_counted(scripted):
    assert NvmlDriver().link("GPU-0", "GPU-1") == "NV18"


def test_direct_links_to_another_gpu_are_not(scripted):
    scripted.remote = {0: (0, b"GPU-1"), 1: (0, b"GPU-1"), 2: (0, b"GPU-7")}
    assert NvmlDriver().link("GPU-0", "GPU-1") == "NV2"


def test_without_nvlink_the_common_ancestor_counts(scripted):
    scripted.nvlink = False
    assert NvmlDriver().link("GPU-0", "GPU-1") == "NODE"


def test_versions(scripted):
    assert NvmlDriver().software() == {"NVIDIA driver": "580.95.05", "CUDA driver": "13.1"}


def test_a_lost_gpu_is_named(scripted):
    driver = NvmlDriver()
    scripted.lost = True
    with pytest.raises(HarnessError, match="GPU-0 cannot be asked: GPU is lost"):
        driver.memory("GPU-0")


def test_close_ends_the_use_of_nvml(scripted):
    NvmlDriver().close()
    assert scripted.shut


def test_no_driver_on_this_machine(scripted, monkeypatch):
    def refuse() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(scripted, "nvmlInit", refuse, raising=False)
    with pytest.raises(SetupMissing, match="NVML Shared Library Not Found"):
        NvmlDriver()


def test_the_library_is_an_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    with pytest.raises(SetupMissing, match="nvidia-ml-py is not installed"):
        NvmlDriver()

"""The NVIDIA driver through NVML alone: no CUDA context is ever made by looking."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from e2e.devices.model import Holder, Identity, Memory
from e2e.errors import HarnessError, SetupMissing

if TYPE_CHECKING:
    from types import ModuleType

_MIB = 1 << 20


class NvmlDriver:
    """A DeviceDriver; `close` ends its use of NVML. Raises SetupMissing where NVML is missing.

    Memory is that of NVML's second structure, which tells what processes use from what the driver
    reserves; the first one adds both up, and a GPU without any process seems to hold hundreds of
    MiB.
    """

    def __init__(self) -> None:
        self._nvml = _import()
        try:
            self._nvml.nvmlInit()
        except self._nvml.NVMLError as error:
            raise SetupMissing(
                f"the NVIDIA driver cannot be asked: {error}",
                mend="check that `nvidia-smi` works here, in a container too",
            ) from error
        self._handles: dict[str, Any] = {}
        self._identities = list(self._identify())

    def close(self) -> None:
        self._nvml.nvmlShutdown()

    def software(self) -> Mapping[str, str]:
        cuda = self._nvml.nvmlSystemGetCudaDriverVersion_v2()
        return {
            "NVIDIA driver": self._nvml.nvmlSystemGetDriverVersion(),
            "CUDA driver": f"{cuda // 1000}.{cuda % 1000 // 10}",
        }

    def identities(self) -> list[Identity]:
        return list(self._identities)

    def memory(self, uuid: str) -> Memory:
        with self._askable(uuid):
            memory = self._nvml.nvmlDeviceGetMemoryInfo(
                self._handles[uuid], version=self._nvml.nvmlMemory_v2
            )
        total, used, reserved = int(memory.total), int(memory.used), int(memory.reserved)
        return Memory(total // _MIB, -(-used // _MIB), -(-reserved // _MIB))

    def holders(self, uuid: str) -> list[Holder]:
        found: dict[int, int | None] = {}
        for processes in (
            self._nvml.nvmlDeviceGetComputeRunningProcesses,
            self._nvml.nvmlDeviceGetGraphicsRunningProcesses,
            self._nvml.nvmlDeviceGetMPSComputeRunningProcesses,
        ):
            with self._askable(uuid), self._unsupported():
                for process in processes(self._handles[uuid]):
                    used = process.usedGpuMemory
                    found[process.pid] = None if used is None else -(-int(used) // _MIB)
        return [Holder(pid, mib) for pid, mib in sorted(found.items())]

    def link(self, one: str, other: str) -> str:
        nvml, first, second = self._nvml, self._handles[one], self._handles[other]
        with self._unsupported():
            joined = nvml.nvmlDeviceGetP2PStatus(first, second, nvml.NVML_P2P_CAPS_INDEX_NVLINK)
            if joined == nvml.NVML_P2P_STATUS_OK:
                return f"NV{self._nvlinks(first, second)}"
        with self._unsupported():
            return _LEVELS.get(nvml.nvmlDeviceGetTopologyCommonAncestor(first, second), "unknown")
        return "unknown"

    def _nvlinks(self, first: Any, second: Any) -> int:
        """Active links of one GPU that lead to the other, directly or through a switch."""
        nvml = self._nvml
        peer = nvml.nvmlDeviceGetPciInfo(second).busId
        count = 0
        for link in range(nvml.NVML_NVLINK_MAX_LINKS):
            with self._unsupported():
                if not nvml.nvmlDeviceGetNvLinkState(first, link):
                    continue
                kind = nvml.nvmlDeviceGetNvLinkRemoteDeviceType(first, link)
                if kind == nvml.NVML_NVLINK_DEVICE_TYPE_GPU:
                    count += nvml.nvmlDeviceGetNvLinkRemotePciInfo(first, link).busId == peer
                else:
                    count += 1
        return count

    def _identify(self) -> Iterator[Identity]:
        nvml = self._nvml
        for index in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            parts = list(self._mig_handles(handle))
            gpu = Identity(
                index=str(index),
                uuid=nvml.nvmlDeviceGetUUID(handle),
                name=nvml.nvmlDeviceGetName(handle),
                partitioned=self._mig_enabled(handle),
            )
            self._handles[gpu.uuid] = handle
            yield gpu
            for part_index, part in parts:
                identity = Identity(
                    index=f"{index}:{part_index}",
                    uuid=nvml.nvmlDeviceGetUUID(part),
                    name=nvml.nvmlDeviceGetName(part),
                    parent=gpu.uuid,
                )
                self._handles[identity.uuid] = part
                yield identity

    def _mig_enabled(self, handle: Any) -> bool:
        with self._unsupported():
            return self._nvml.nvmlDeviceGetMigMode(handle)[0] == self._nvml.NVML_DEVICE_MIG_ENABLE
        return False

    def _mig_handles(self, handle: Any) -> Iterator[tuple[int, Any]]:
        if not self._mig_enabled(handle):
            return
        for index in range(self._nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
            with contextlib.suppress(self._nvml.NVMLError_NotFound):
                yield index, self._nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)

    @contextlib.contextmanager
    def _askable(self, uuid: str) -> Iterator[None]:
        try:
            yield
        except self._nvml.NVMLError as error:
            raise HarnessError(
                f"device {uuid} cannot be asked: {error}",
                device=uuid,
                mend="look for Xid errors in the kernel's log; a lost GPU needs a reset",
            ) from error

    def _unsupported(self) -> contextlib.AbstractContextManager[None]:
        """A question that some devices and drivers have no answer to."""
        nvml = self._nvml
        return contextlib.suppress(
            nvml.NVMLError_NotSupported,
            nvml.NVMLError_FunctionNotFound,
            nvml.NVMLError_InvalidArgument,
            nvml.NVMLError_NoPermission,
        )


_LEVELS = {0: "PSB", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
"""nvmlGpuTopologyLevel_t in the words of `nvidia-smi topo -m`."""


def _import() -> ModuleType:
    try:
        import pynvml
    except ImportError as error:
        raise SetupMissing(
            "nvidia-ml-py is not installed, so no device can be proven",
            mend="install the extra: pip install 'afd-e2e[gpu]'",
        ) from error
    return pynvml

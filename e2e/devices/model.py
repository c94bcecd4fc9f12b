"""Accelerators as the harness sees them, whatever driver told it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Identity:
    """`index` is the driver's, `2:0` for the first MIG device of GPU 2. `parent` is the UUID of
    the GPU that a MIG device is part of; `partitioned` is a GPU that MIG divides, which nothing
    can run on as a whole."""

    index: str
    uuid: str
    name: str
    parent: str | None = None
    partitioned: bool = False

    @property
    def label(self) -> str:
        """`0 (GPU-1f2e3d4c)`: what a message calls the device."""
        kind, _, rest = self.uuid.partition("-")
        return f"{self.index} ({kind}-{rest[:8]})"


@dataclass(frozen=True)
class Memory:
    """MiB. `used` is what processes hold; `reserved` is the driver's own and comes back never."""

    total: int
    used: int
    reserved: int

    @property
    def free(self) -> int:
        return self.total - self.used - self.reserved


@dataclass(frozen=True)
class Holder:
    """A process on a device. `mib` is None where the driver does not say how much it holds; `user`
    and `command` are empty for a process that this host's /proc does not show."""

    pid: int
    mib: int | None
    user: str = ""
    command: str = ""

    def __str__(self) -> str:
        held = "unknown memory" if self.mib is None else f"{self.mib} MiB"
        whose = f"user {self.user}, {self.command}" if self.user else "not visible from here"
        return f"pid {self.pid} ({whose}) holds {held}"


class DeviceDriver(Protocol):
    """What is asked of a device driver: never a context on a device, never a change."""

    def software(self) -> Mapping[str, str]:
        """Name and version of the driver and its runtime."""
        ...

    def identities(self) -> list[Identity]:
        """All devices in the driver's order, each GPU followed by its MIG devices."""
        ...

    def memory(self, uuid: str) -> Memory: ...

    def holders(self, uuid: str) -> list[Holder]:
        """Who is on the device, by pid and MiB; users and commands are not looked up."""
        ...

    def link(self, one: str, other: str) -> str:
        """How two GPUs are joined, in the words of `nvidia-smi topo`: NV18, PIX, SYS ..."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Device:
    identity: Identity
    memory: Memory
    holders: tuple[Holder, ...] = ()

    @property
    def uuid(self) -> str:
        return self.identity.uuid

    @property
    def label(self) -> str:
        return self.identity.label


@dataclass(frozen=True)
class Inventory:
    """`links` has an entry for each pair of whole GPUs, by UUID, in the order of `devices`."""

    software: Mapping[str, str]
    devices: tuple[Device, ...]
    links: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def by_uuid(self, uuid: str) -> Device:
        return next(device for device in self.devices if device.uuid == uuid)

    def facts(self) -> dict[str, str]:
        """For the evidence: software, one line a device, one line a link."""
        facts = dict(self.software)
        for device in self.devices:
            memory = device.memory
            reserved = f" ({memory.reserved} MiB reserved)" if memory.reserved else ""
            facts[f"device {device.identity.index}"] = (
                f"{device.identity.name}, {memory.total} MiB{reserved}, {device.uuid}"
            )
        index = {device.uuid: device.identity.index for device in self.devices}
        for (one, other), link in self.links.items():
            facts[f"link {index[one]}-{index[other]}"] = link
        return facts

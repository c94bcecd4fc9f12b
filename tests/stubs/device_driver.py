"""A device driver that does exactly what a test tells it, badly if it is told so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from e2e.devices.model import Holder, Identity, Memory
from e2e.errors import HarnessError

TOTAL = 143_771
RESERVED = 615


@dataclass
class StubDevice:
    """`orphaned` MiB are used and nobody is listed for them; `late` are levels that the next looks
    see one after the other, whatever is held."""

    identity: Identity
    holders: dict[int, int | None] = field(default_factory=dict)
    orphaned: int = 0
    late: list[int] = field(default_factory=list)
    reserved: int = RESERVED
    lost: bool = False

    @property
    def used(self) -> int:
        if self.late:
            return self.late.pop(0)
        return self.orphaned + sum(mib or 0 for mib in self.holders.values())


class StubDriver:
    """Two H200s of one host joined by NVLink, unless told otherwise."""

    def __init__(self, *identities: Identity) -> None:
        chosen = identities or (gpu(0), gpu(1))
        self.devices = {identity.uuid: StubDevice(identity) for identity in chosen}
        self.closed = False
        self.looks = 0

    def __getitem__(self, index: int) -> StubDevice:
        return list(self.devices.values())[index]

    def software(self) -> Mapping[str, str]:
        return {"NVIDIA driver": "580.95.05", "CUDA driver": "13.0"}

    def identities(self) -> list[Identity]:
        return [device.identity for device in self.devices.values()]

    def memory(self, uuid: str) -> Memory:
        self.looks += 1
        device = self.devices[uuid]
        if device.lost:
            raise HarnessError(f"device {device.identity.label} cannot be asked: GPU is lost")
        return Memory(TOTAL, device.used, device.reserved)

    def holders(self, uuid: str) -> list[Holder]:
        return [Holder(pid, mib) for pid, mib in self.devices[uuid].holders.items()]

    def link(self, one: str, other: str) -> str:
        return "NV18"

    def close(self) -> None:
        self.closed = True


def gpu(index: int, *, partitioned: bool = False) -> Identity:
    uuid = f"GPU-{index}{index}aa{index}f00-1111-2222-3333-444455556666"
    return Identity(str(index), uuid, "NVIDIA H200", partitioned=partitioned)


def part(of: Identity, index: int) -> Identity:
    """A MIG device of a GPU."""
    uuid = f"MIG-{of.index}{index}bb{index}f00-1111-2222-3333-444455556666"
    return Identity(f"{of.index}:{index}", uuid, "NVIDIA H200 MIG 1g.18gb", parent=of.uuid)

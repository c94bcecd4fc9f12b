"""From the device ids of a plan to devices that exist, in that order."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from e2e.devices.inventory import look
from e2e.devices.model import Device, DeviceDriver, Inventory
from e2e.devices.nvml import NvmlDriver
from e2e.errors import SetupMissing

VARIABLE = "AFD_E2E_DEVICES"
VISIBLE = "CUDA_VISIBLE_DEVICES"


def resolve(ids: Sequence[str], inventory: Inventory, visible: str | None = None) -> list[Device]:
    """`ids` are indices of GPUs, UUIDs of GPUs and MIG devices, or prefixes that fit one alone.

    `visible` is a CUDA_VISIBLE_DEVICES set outside: nothing beside it may be used. (That an index
    of AFD_E2E_DEVICES counts within it, the plan has already taken into account.)
    Raises SetupMissing naming every id that cannot be used, and what there is.
    """
    allowed = None if visible is None else _visible(inventory, visible)
    chosen: list[Device] = []
    wrong: list[str] = []
    for id_ in ids:
        try:
            device = _usable(_find(id_, inventory), id_)
            if allowed is not None and device not in allowed:
                raise _Unusable(f"{id_}: device {device.label} is not within {VISIBLE}={visible}")
            if device in chosen:
                raise _Unusable(f"{id_}: device {device.label} is listed twice")
            chosen.append(device)
        except _Unusable as problem:
            wrong.append(str(problem))
    if wrong:
        there = inventory.devices if allowed is None else allowed
        raise SetupMissing(
            f"{len(wrong)} of {len(ids)} devices cannot be used",
            lines=wrong,
            mend=f"choose with {VARIABLE} from: {_listed(there)}",
        )
    return chosen


def uuids(
    ids: Sequence[str], open_driver: Callable[[], DeviceDriver] = NvmlDriver
) -> tuple[str, ...]:
    """The same devices by the one name that is always theirs, as leases need it; no driver is
    asked where there is no id. Raises SetupMissing."""
    if not ids:
        return ()
    return tuple(device.uuid for device in resolve(ids, look(open_driver), os.environ.get(VISIBLE)))


class _Unusable(Exception):
    pass


def _visible(inventory: Inventory, visible: str) -> list[Device]:
    """CUDA reads the list up to the first entry that names nothing or repeats, and so does this."""
    devices: list[Device] = []
    for id_ in (part.strip() for part in visible.split(",")):
        try:
            device = _find(id_, inventory)
        except _Unusable:
            break
        if device in devices:
            break
        devices.append(device)
    return devices


def _find(id_: str, inventory: Inventory) -> Device:
    whole = [device for device in inventory.devices if device.identity.parent is None]
    if id_.isdigit():
        if int(id_) >= len(whole):
            raise _Unusable(f"{id_}: there are {len(whole)} GPUs, counted from 0")
        return whole[int(id_)]
    found = [device for device in inventory.devices if "-" in id_ and device.uuid.startswith(id_)]
    if not found:
        raise _Unusable(f"{id_}: no such device")
    if len(found) > 1:
        raise _Unusable(f"{id_}: fits {', '.join(device.uuid for device in found)}")
    return found[0]


def _usable(device: Device, id_: str) -> Device:
    if device.identity.partitioned:
        raise _Unusable(f"{id_}: GPU {device.label} is divided by MIG; name its MIG devices")
    return device


def _listed(devices: Sequence[Device]) -> str:
    names = (f"{device.identity.index}={device.uuid}" for device in devices)
    return ", ".join(names) or "there are none"

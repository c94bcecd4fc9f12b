"""From what a person wrote in AFD_E2E_DEVICES to devices that exist, in that order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from e2e.devices.model import Device, Inventory
from e2e.errors import SetupMissing

VARIABLE = "AFD_E2E_DEVICES"
VISIBLE = "CUDA_VISIBLE_DEVICES"


def resolve(
    tokens: Sequence[str], inventory: Inventory, visible: str | None = None
) -> list[Device]:
    """`tokens` are indices, UUIDs (or prefixes that fit one device alone) and MIG ids.

    `visible` is a CUDA_VISIBLE_DEVICES set outside: indices count within it, and nothing beside
    it can be named. Raises SetupMissing naming every token that cannot be used, and what there is.
    """
    allowed = _all(inventory) if visible is None else _within(inventory, visible)
    chosen: list[Device] = []
    wrong: list[str] = []
    for token in tokens:
        try:
            device = _usable(_find(token, allowed), token)
            if device in chosen:
                raise _Unusable(f"{token}: device {device.label} is listed twice")
            chosen.append(device)
        except _Unusable as problem:
            wrong.append(str(problem))
    if wrong:
        raise SetupMissing(
            f"{len(wrong)} of {len(tokens)} devices cannot be used",
            lines=wrong,
            mend=f"set {VARIABLE} to devices of this list: {_listed(allowed)}"
            + (f" (within {VISIBLE}={visible})" if visible is not None else ""),
        )
    return chosen


class _Unusable(Exception):
    pass


@dataclass(frozen=True)
class _Allowed:
    """`counted` are those that an index counts: whole GPUs, or the entries of a visible list."""

    devices: tuple[Device, ...]
    counted: tuple[Device, ...]


def _all(inventory: Inventory) -> _Allowed:
    whole = tuple(device for device in inventory.devices if device.identity.parent is None)
    return _Allowed(inventory.devices, whole)


def _within(inventory: Inventory, visible: str) -> _Allowed:
    """CUDA reads the list up to the first entry that names nothing or repeats, and so does this."""
    everything = _all(inventory)
    devices: list[Device] = []
    for token in (part.strip() for part in visible.split(",")):
        try:
            device = _find(token, everything)
        except _Unusable:
            break
        if device in devices:
            break
        devices.append(device)
    return _Allowed(tuple(devices), tuple(devices))


def _find(token: str, allowed: _Allowed) -> Device:
    if token.isdigit():
        if int(token) >= len(allowed.counted):
            raise _Unusable(f"{token}: there are {len(allowed.counted)} devices, counted from 0")
        return allowed.counted[int(token)]
    found = [device for device in allowed.devices if _names(token, device)]
    if not found:
        raise _Unusable(f"{token}: no such device")
    if len(found) > 1:
        raise _Unusable(f"{token}: fits {', '.join(device.uuid for device in found)}")
    return found[0]


def _names(token: str, device: Device) -> bool:
    """UUIDs as the driver writes them, by prefix as CUDA takes them; a MIG device also by its
    index `GPU:part`."""
    return (device.uuid.startswith(token) and "-" in token) or device.identity.index == token


def _usable(device: Device, token: str) -> Device:
    if device.identity.partitioned:
        raise _Unusable(f"{token}: GPU {device.label} is divided by MIG; name its MIG devices")
    return device


def _listed(allowed: _Allowed) -> str:
    """Each device by what names it: its place where it has one, and its UUID."""
    place = {device.uuid: str(index) for index, device in enumerate(allowed.counted)}
    names = (f"{place.get(d.uuid, d.identity.index)}={d.uuid}" for d in allowed.devices)
    return ", ".join(names) or "there are none"

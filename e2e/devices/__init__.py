"""Accelerators: what there is, who is on it, and which of it a run was given."""

from e2e.devices.inventory import look, take
from e2e.devices.model import Device, DeviceDriver, Holder, Identity, Inventory, Memory
from e2e.devices.resolve import resolve, uuids

__all__ = [
    "Device",
    "DeviceDriver",
    "Holder",
    "Identity",
    "Inventory",
    "Memory",
    "look",
    "resolve",
    "take",
    "uuids",
]

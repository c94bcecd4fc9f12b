"""Accelerators: what there is, who is on it, and which of it a run was given."""

from e2e.devices.inventory import take
from e2e.devices.model import Device, DeviceDriver, Holder, Identity, Inventory, Memory
from e2e.devices.resolve import resolve

__all__ = ["Device", "DeviceDriver", "Holder", "Identity", "Inventory", "Memory", "resolve", "take"]

"""Everything there is on this host, and who is on it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import combinations

import psutil

from e2e.devices.model import Device, DeviceDriver, Holder, Inventory

_LONGEST_COMMAND = 120


def take(driver: DeviceDriver) -> Inventory:
    """One picture of all devices: memory, holders with user and command, links."""
    identities = driver.identities()
    whole = [identity.uuid for identity in identities if identity.parent is None]
    return Inventory(
        software=driver.software(),
        devices=tuple(
            Device(identity, driver.memory(identity.uuid), tuple(holders(driver, identity.uuid)))
            for identity in identities
        ),
        links={pair: driver.link(*pair) for pair in combinations(whole, 2)},
    )


def look(open_driver: Callable[[], DeviceDriver]) -> Inventory:
    """One picture with a driver of its own. Raises SetupMissing where there is none."""
    with closing(open_driver()) as driver:
        return take(driver)


def holders(driver: DeviceDriver, uuid: str) -> list[Holder]:
    """Who is on a device, with user and command."""
    return [described(holder) for holder in driver.holders(uuid)]


def described(holder: Holder) -> Holder:
    """The holder with what /proc says of it; as it was where the process is not visible."""
    try:
        process = psutil.Process(holder.pid)
        with process.oneshot():
            command = " ".join(process.cmdline()) or process.name()
            return replace(holder, user=process.username(), command=command[:_LONGEST_COMMAND])
    except psutil.Error:
        return holder

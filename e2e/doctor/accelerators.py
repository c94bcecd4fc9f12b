"""The devices of a plan: there, big enough, and nobody's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from e2e.devices import host
from e2e.devices.inventory import look
from e2e.devices.model import Device, DeviceDriver, Inventory
from e2e.devices.resolve import VISIBLE, resolve
from e2e.doctor.result import CheckResult, failed, passed
from e2e.errors import HarnessError, SetupMissing
from e2e.plan import CasePlan
from e2e.proofs.device_memory import occupants


def inventory(plan: CasePlan, open_driver: Callable[[], DeviceDriver]) -> Inventory:
    """What there is, of the plan's backend. Raises SetupMissing, HarnessError."""
    return host.take() if plan.backend == "cpu" else look(open_driver)


def checks(
    plan: CasePlan, variables: Mapping[str, str], there: Inventory | HarnessError
) -> Iterator[CheckResult]:
    """`there` is the inventory, or why there is none. On a CPU the host is the device, and its
    memory is another check's matter."""
    if plan.backend == "cpu":
        return
    if isinstance(there, HarnessError):
        yield failed("devices", there.what, there.mend)
        return
    try:
        devices = resolve(plan.devices, there, variables.get(VISIBLE))
    except SetupMissing as missing:
        yield failed("devices", "; ".join(missing.lines), missing.mend)
        return
    yield passed("devices", "; ".join(f"{d.label} {d.identity.name}" for d in devices))
    yield _unoccupied(plan, devices)
    yield _big_enough(plan, devices)


def _unoccupied(plan: CasePlan, devices: list[Device]) -> CheckResult:
    tolerance = plan.teardown.memory_tolerance_mib
    lines = [line for device in devices for line in occupants(device, tolerance)]
    if lines:
        return failed("devices unused", "; ".join(lines), "choose others, or end what is on these")
    return passed("devices unused", "nobody is on them")


def _big_enough(plan: CasePlan, devices: list[Device]) -> CheckResult:
    small = [
        f"device {device.label}: {device.memory.free / 1024:.1f} GiB free"
        for device in devices
        if device.memory.free < plan.min_memory_gib * 1024
    ]
    if small:
        return failed(
            "device memory",
            "; ".join(small),
            f"{plan.min_memory_gib:g} GiB are needed on each: choose larger or emptier devices",
        )
    least = min(device.memory.free for device in devices) / 1024
    return passed("device memory", f"{least:.1f} GiB free, {plan.min_memory_gib:g} needed")

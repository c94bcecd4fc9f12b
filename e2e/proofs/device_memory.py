"""Device memory comes back to its level before the launch, on every device of the case."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

from e2e.devices.inventory import described, take
from e2e.devices.model import Device, DeviceDriver
from e2e.devices.nvml import NvmlDriver
from e2e.devices.resolve import VISIBLE, resolve
from e2e.devices.sampling import Guest, Reading, Sampler
from e2e.errors import HarnessError, SetupMissing
from e2e.evidence.case import CaseEvidence
from e2e.plan import CasePlan
from e2e.process import Owner
from e2e.process.signals import current
from e2e.proofs.picture import record, until_nothing

NAME = "device memory back"
CURVE = "device-memory.csv"


@contextmanager
def device_memory_returns(
    plan: CasePlan,
    owner: Owner,
    evidence: CaseEvidence,
    open_driver: Callable[[], DeviceDriver] = NvmlDriver,
) -> Iterator[None]:
    """On exit each device is back at its level before the launch, within the tolerance; what was
    used meanwhile is in `device-memory.csv`. A late release is waited for; processes of others
    that came meanwhile are told apart from residue.

    Raises SetupMissing on entry where somebody is on a device already. A CPU has no such memory:
    nothing is recorded.
    """
    if plan.backend == "cpu":
        yield
        return
    with closing(open_driver()) as driver:
        devices = resolve(plan.devices, take(driver), os.environ.get(VISIBLE))
        refuse_occupied(devices, plan.teardown.memory_tolerance_mib)
        sampler = Sampler(driver, [device.uuid for device in devices], evidence.folder / CURVE)
        try:
            with sampler:
                yield
        finally:
            with current().deferred():
                release = _Release(devices, sampler, owner, plan.teardown.memory_tolerance_mib)
                found, seconds = until_nothing(release.left, plan.limits.release)
                record(
                    evidence,
                    NAME,
                    found,
                    seconds,
                    mend="end the processes named; where no owner is listed, or one is in D state, "
                    "the device belongs into quarantine until it is reset",
                    detail=release.detail(),
                )


def refuse_occupied(devices: Sequence[Device], tolerance: int) -> None:
    """Raises SetupMissing naming whoever is on the devices, and memory that nobody owns up to."""
    occupied = [line for device in devices for line in occupants(device, tolerance)]
    if occupied:
        raise SetupMissing(
            "devices are in use before the launch",
            lines=occupied,
            mend="choose free devices, or end what is on these; nothing of it was touched",
        )


def occupants(device: Device, tolerance: int) -> list[str]:
    """One line for each process on a device; one for memory above `tolerance` MiB that no process
    is listed for."""
    lines = [f"device {device.label}: {holder}" for holder in device.holders]
    if not lines and device.memory.used > tolerance:
        lines = [f"device {device.label}: {device.memory.used} MiB, no owner listed"]
    return lines


class _Release:
    """What is left on the devices, at each look after the stop."""

    def __init__(
        self, devices: Sequence[Device], sampler: Sampler, owner: Owner, tolerance: int
    ) -> None:
        self._devices = devices
        self._sampler = sampler
        self._owner = owner
        self._tolerance = tolerance
        self._returned: dict[str, float] = {}

    def left(self) -> list[str]:
        """A line for each device that is not back: how many MiB, and whose."""
        try:
            return self._above(self._sampler.sample())
        except HarnessError as problem:
            return [problem.what]

    def detail(self) -> dict[str, object]:
        """For the evidence: each device's levels, who else was there, what sampling cost."""
        ended = self._sampler.problem
        return {
            "devices": [
                {
                    "device": device.label,
                    "uuid": device.uuid,
                    "before_mib": device.memory.used,
                    "peak_mib": self._sampler.peaks[device.uuid],
                    "back_at_seconds": self._returned.get(device.uuid),
                    "driver_reserves_mib": device.memory.reserved,
                }
                for device in self._devices
            ],
            "others": [str(guest) for guest in self._others().values()],
            "sampling_cpu_percent": round(self._sampler.cpu_percent, 3),
            "curve": self._sampler.unwritten or (ended.what if ended else CURVE),
        }

    def _above(self, readings: Mapping[str, Reading]) -> list[str]:
        others = self._others()
        lines: list[str] = []
        for device in self._devices:
            reading = readings[device.uuid]
            theirs = [h for h in reading.holders if (device.uuid, h.pid) in others]
            ours = [described(h) for h in reading.holders if h not in theirs]
            excess = reading.memory.used - device.memory.used - sum(h.mib or 0 for h in theirs)
            if not ours and excess <= self._tolerance:
                self._returned.setdefault(device.uuid, round(self._sampler.seconds, 2))
                continue
            owners = ", ".join(map(str, ours)) or "no owner listed"
            beside = f", beside {', '.join(map(str, theirs))}" if theirs else ""
            lines.append(f"device {device.label}: {max(excess, 0)} MiB, {owners}{beside}")
        return lines

    def _others(self) -> dict[tuple[str, int], Guest]:
        """Whoever was on a device and never belonged to the run."""
        ours = {pid for share in self._owner.sightings.seen.values() for pid, _ in share}
        ours |= {process.pid for process in self._owner.living()}
        return {key: guest for key, guest in self._sampler.guests.items() if key[1] not in ours}

"""Device memory comes back to its level before the launch, on every device of the case."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from e2e.devices.inventory import described, take
from e2e.devices.model import Device, DeviceDriver
from e2e.devices.nvml import NvmlDriver
from e2e.devices.resolve import VISIBLE, resolve
from e2e.devices.sampling import Reading, Sampler, Visitor
from e2e.errors import HarnessError, ResidueLeft, SetupMissing
from e2e.evidence.case import CaseEvidence
from e2e.evidence.record import Proof
from e2e.plan import CasePlan

CURVE = "device-memory.csv"
_POLL = 0.1


class HasPid(Protocol):
    @property
    def pid(self) -> int: ...


class Owner(Protocol):
    def living(self) -> Sequence[HasPid]: ...


@contextmanager
def device_memory_returns(
    plan: CasePlan,
    owner: Owner,
    evidence: CaseEvidence,
    open_driver: Callable[[], DeviceDriver] = NvmlDriver,
) -> Iterator[None]:
    """Around everything that a case launches. The time series is `device-memory.csv`.

    Raises SetupMissing on entry where somebody is on a device already. On exit waits up to the
    limit `release`; memory that does not come back is recorded as a proof that does not hold and
    as ResidueLeft. On a CPU there is no such memory, and nothing is recorded.
    """
    if plan.backend == "cpu":
        yield
        return
    with closing(open_driver()) as driver:
        devices = resolve(plan.devices, take(driver), os.environ.get(VISIBLE))
        refuse_occupied(devices, plan.teardown.memory_tolerance_mib)
        sampler = Sampler(
            driver,
            [device.uuid for device in devices],
            evidence.folder / CURVE,
            lambda: {process.pid for process in owner.living()},
        )
        try:
            with sampler:
                yield
        finally:
            _settle(plan, devices, sampler, evidence)


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


@dataclass
class _Settled:
    """How it ended: what is left by device, when each came back, and why a look failed."""

    seconds: float = 0.0
    residue: dict[str, str] = field(default_factory=dict)
    returned: dict[str, float] = field(default_factory=dict)
    problem: HarnessError | None = None

    @property
    def found(self) -> list[str]:
        return [str(self.problem)] if self.problem else list(self.residue.values())


def _settle(
    plan: CasePlan, devices: Sequence[Device], sampler: Sampler, evidence: CaseEvidence
) -> None:
    settled = _wait(plan, devices, sampler)
    evidence.proof(_proof(settled, devices, sampler))
    if settled.found:
        names = (d.label for d in devices if settled.problem or d.uuid in settled.residue)
        evidence.failure(
            ResidueLeft(
                f"device memory did not come back within {plan.limits.release:g} s: "
                + "; ".join(settled.found),
                device=", ".join(names),
                mend="end the processes named; where no owner is listed or one is in D state, "
                "quarantine the device until it is reset",
            )
        )


def _wait(plan: CasePlan, devices: Sequence[Device], sampler: Sampler) -> _Settled:
    begin = time.monotonic()
    settled = _Settled(problem=sampler.problem)
    while settled.problem is None:
        try:
            readings = sampler.sample()
        except HarnessError as problem:
            settled.problem = problem
            break
        settled.seconds = round(time.monotonic() - begin, 2)
        settled.residue = _residue(plan, devices, readings, sampler.visitors)
        for device in devices:
            if device.uuid not in settled.residue:
                settled.returned.setdefault(device.uuid, settled.seconds)
        if not settled.residue or settled.seconds > plan.limits.release:
            break
        time.sleep(_POLL)
    return settled


def _residue(
    plan: CasePlan,
    devices: Sequence[Device],
    readings: Mapping[str, Reading],
    visitors: Mapping[tuple[str, int], Visitor],
) -> dict[str, str]:
    """What is above the level before the launch and is no visitor's, by device; empty if all is
    back."""
    left: dict[str, str] = {}
    for device in devices:
        reading = readings[device.uuid]
        theirs = [h for h in reading.holders if (device.uuid, h.pid) in visitors]
        ours = [described(h) for h in reading.holders if h not in theirs]
        excess = reading.memory.used - device.memory.used - sum(h.mib or 0 for h in theirs)
        if ours or excess > plan.teardown.memory_tolerance_mib:
            owners = ", ".join(map(str, ours)) or "no owner listed"
            beside = f" (beside {', '.join(map(str, theirs))})" if theirs else ""
            left[device.uuid] = f"device {device.label}: {max(excess, 0)} MiB, {owners}{beside}"
    return left


def _proof(settled: _Settled, devices: Sequence[Device], sampler: Sampler) -> Proof:
    rows = [
        {
            "device": device.label,
            "uuid": device.uuid,
            "before_mib": device.memory.used,
            "peak_mib": sampler.peaks[device.uuid],
            "returned_after_seconds": settled.returned.get(device.uuid),
            "driver_reserves_mib": device.memory.reserved,
        }
        for device in devices
    ]
    return Proof(
        name="device memory",
        held=not settled.found,
        found=settled.found,
        seconds=settled.seconds,
        detail={
            "devices": rows,
            "others": [str(visitor) for visitor in sampler.visitors.values()],
            "sampling_cpu_percent": round(sampler.cpu_percent, 3),
            "curve": CURVE,
        },
    )

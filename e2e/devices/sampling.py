"""Device memory through a run: a cheap time series, its peaks, and who came and went meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Literal

from e2e.devices.inventory import described
from e2e.devices.model import DeviceDriver, Holder, Memory
from e2e.errors import HarnessError

_INTERVAL = 0.5
_HEARTBEAT = 10.0
_CPU_SHARE = 0.005
_HEADER = "seconds,device,used_mib,reserved_mib,holders\n"


@dataclass(frozen=True)
class Reading:
    """What a device held at one moment, and who was on it."""

    memory: Memory
    holders: tuple[Holder, ...]


@dataclass
class Guest:
    """A process that was on a device, ours or not; seconds since the start of the series."""

    device: str
    holder: Holder
    came: float
    seen: float

    def __str__(self) -> str:
        return f"device {self.device}: {self.holder}, from {self.came:.1f} to {self.seen:.1f} s"


class Sampler:
    """Reads devices in a thread of its own while it is entered, and writes what changes to `path`.

    `guests` is everybody who was seen on a device, by UUID and pid. The interval grows so that
    sampling takes at most half a percent of a core (`cpu_percent` is what it took). A device that
    can no longer be asked ends the series (`problem`); a file that cannot be written ends the file
    alone (`unwritten`).
    """

    def __init__(self, driver: DeviceDriver, uuids: Sequence[str], path: Path) -> None:
        self.peaks: dict[str, int] = dict.fromkeys(uuids, 0)
        self.guests: dict[tuple[str, int], Guest] = {}
        self.problem: HarnessError | None = None
        self.unwritten: str | None = None
        self._driver = driver
        self._path = path
        self._written: dict[str, tuple[float, Reading]] = {}
        self._began = time.monotonic()
        self._cpu_seconds = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="device-memory", daemon=True)

    def __enter__(self) -> Sampler:
        self._write([_HEADER], "w")
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """Since the start of the series: the first column of the file."""
        return time.monotonic() - self._began

    @property
    def cpu_percent(self) -> float:
        """Of one core, since the start."""
        return 100 * self._cpu_seconds / max(self.seconds, 1e-9)

    def sample(self) -> dict[str, Reading]:
        """One reading of every device, recorded. Call it from one thread at a time.

        Raises HarnessError where a device cannot be asked.
        """
        now = self.seconds
        readings = {
            uuid: Reading(self._driver.memory(uuid), tuple(self._driver.holders(uuid)))
            for uuid in self.peaks
        }
        lines: list[str] = []
        for uuid, reading in readings.items():
            self.peaks[uuid] = max(self.peaks[uuid], reading.memory.used)
            for holder in reading.holders:
                self._meet(uuid, holder, now)
            at, before = self._written.get(uuid, (0.0, None))
            if reading != before or now - at >= _HEARTBEAT:
                self._written[uuid] = now, reading
                lines.append(_line(now, uuid, reading))
        self._write(lines, "a")
        return readings

    def _write(self, lines: Sequence[str], mode: Literal["a", "w"]) -> None:
        if not lines or self.unwritten:
            return
        try:
            with self._path.open(mode, encoding="utf-8") as file:
                file.writelines(lines)
        except OSError as error:
            self.unwritten = str(error)

    def _loop(self) -> None:
        wait = 0.0
        while not self._stop.wait(wait):
            begin = time.thread_time()
            try:
                self.sample()
            except HarnessError as problem:
                self.problem = problem
                return
            took = time.thread_time() - begin
            self._cpu_seconds += took
            wait = max(_INTERVAL, took / _CPU_SHARE)

    def _meet(self, uuid: str, holder: Holder, now: float) -> None:
        guest = self.guests.get((uuid, holder.pid))
        if guest is None:
            self.guests[uuid, holder.pid] = Guest(uuid, described(holder), now, now)
        else:
            held = max(holder.mib or 0, guest.holder.mib or 0) or holder.mib
            guest.holder, guest.seen = replace(guest.holder, mib=held), now


def _line(seconds: float, uuid: str, reading: Reading) -> str:
    holders = " ".join(f"{h.pid}:{'?' if h.mib is None else h.mib}" for h in reading.holders)
    memory = reading.memory
    return f"{seconds:.2f},{uuid},{memory.used},{memory.reserved},{holders}\n"

"""The CPU backend's only device: the host itself, in the same shape as an accelerator."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import psutil

from e2e.devices.model import Device, Identity, Inventory, Memory

_MIB = 1 << 20


def take() -> Inventory:
    """Cores that this process may use; memory of the host, or of its cgroup where that is less."""
    cores = len(os.sched_getaffinity(0))
    host = psutil.virtual_memory()
    total, available = host.total, host.available
    if limit := cgroup_limit():
        total, available = min(total, limit[0]), min(available, limit[0] - limit[1])
    identity = Identity("0", "cpu:0", f"{processor()}, {cores} cores")
    memory = Memory(total // _MIB, (total - available) // _MIB, 0)
    software = {"kernel": platform.release()}
    return Inventory(software, (Device(identity, memory),))


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The model of the first processor; the machine's architecture where it is not told."""
    try:
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        return platform.machine()
    return platform.machine()


def cgroup_limit(root: Path = Path("/sys/fs/cgroup")) -> tuple[int, int] | None:
    """Limit and use of the own cgroup (version 2) in bytes, its reclaimable file cache not counted
    as used; None where there is no limit."""
    try:
        limit = (root / "memory.max").read_text(encoding="utf-8").strip()
        used = int((root / "memory.current").read_text(encoding="utf-8"))
        stat = (root / "memory.stat").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    cache = next((int(line.split()[1]) for line in stat if line.startswith("inactive_file ")), 0)
    return (int(limit), used - cache) if limit.isdigit() else None

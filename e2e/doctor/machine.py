"""The host: disk, shared memory, memory, ports, and a user that has a name."""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from e2e import leases
from e2e.devices import host
from e2e.doctor.result import CheckResult, failed, passed
from e2e.plan import CasePlan
from e2e.process.ports import users_of

_GIB = 1 << 30
_DISK_GIB = 1.0
_SHARED = Path("/dev/shm")
_SHARED_GIB = 1.0
_RANK_GIB = 3.0
_NAMES = ("LOGNAME", "USER", "LNAME", "USERNAME")


def checks(plan: CasePlan, variables: Mapping[str, str], folder: Path) -> Iterator[CheckResult]:
    """`folder` is where the evidence and the logs go."""
    yield disk(folder)
    yield shared_memory(_SHARED)
    yield memory(plan)
    yield user(variables)
    yield ports(plan)


def disk(folder: Path) -> CheckResult:
    """Logs and evidence of a chatty server fit in a gibibyte."""
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(there).free / _GIB
    if free < _DISK_GIB:
        return failed(
            "disk", f"{free:.2f} GiB free under {folder}", f"free {_DISK_GIB:g} GiB for the logs"
        )
    return passed("disk", f"{free:.0f} GiB free for evidence and logs")


def shared_memory(folder: Path) -> CheckResult:
    """Workers exchange messages of megabytes through it; containers have 64 MiB by default, and
    a worker that writes beyond dies of SIGBUS."""
    if not folder.is_dir():
        return failed("shared memory", f"{folder} is not there", f"mount a tmpfs on {folder}")
    free = shutil.disk_usage(folder).free / _GIB
    if free < _SHARED_GIB:
        return failed(
            "shared memory",
            f"{free * 1024:.0f} MiB free in {folder}",
            "start the container with --shm-size=8g or --ipc=host, or remove what is left there",
        )
    return passed("shared memory", f"{free:.1f} GiB free in {folder}")


def memory(plan: CasePlan) -> CheckResult:
    """On a CPU what the profile asks for; beside devices, what their processes take by themselves:
    2 to 3 GiB each."""
    ranks = sum(role.dp * role.tp for role in plan.roles)
    needed = plan.min_memory_gib if plan.backend == "cpu" else _RANK_GIB * ranks
    [here] = host.take().devices
    free = here.memory.free / 1024
    if free < needed:
        return failed(
            "host memory",
            f"{free:.1f} GiB available of {here.memory.total / 1024:.1f}",
            f"{needed:g} GiB are needed: end other programs, or raise the container's limit",
        )
    return passed("host memory", f"{free:.1f} GiB available, {needed:g} needed")


def user(variables: Mapping[str, str]) -> CheckResult:
    """torch asks for the user's name when it is imported (getpass.getuser), and an arbitrary uid
    of a container has none."""
    named = next((name for name in _NAMES if variables.get(name)), None)
    if named:
        return passed("user", f"{variables[named]} ({named})")
    try:
        return passed("user", pwd.getpwuid(os.getuid()).pw_name)
    except KeyError:
        return failed(
            "user",
            f"uid {os.getuid()} is not in the password database, and neither USER nor LOGNAME "
            "is set",
            "set USER and LOGNAME, to any name",
        )


def ports(plan: CasePlan) -> CheckResult:
    """A port in TIME_WAIT is free; one that anybody is bound to on any address is not."""
    bound = {
        connection.laddr.port
        for connection in psutil.net_connections("tcp")
        if connection.laddr and connection.status != psutil.CONN_TIME_WAIT
    }
    taken = [f"{port} is used by {users_of(port)}" for port in plan.ports if port in bound]
    if taken:
        return failed("ports", "; ".join(taken), "end these, or choose others: AFD_E2E_PORT_BASE")
    warnings = "".join(f"; {warning}" for warning in leases.ephemeral_warnings(plan.ports))
    return passed("ports", f"{', '.join(map(str, plan.ports))} free{warnings}")

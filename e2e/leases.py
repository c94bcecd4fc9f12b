"""Leases of devices and ports, across the runs and users of a host.

A lease is a lock on a file in a folder that all runs share. It dies with whoever holds it; the
guardian of a case holds it too, so that it outlives a killed harness until the servers are gone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import getpass
import json
import os
import re
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.errors import SetupMissing
from e2e.process.guardian import runs
from e2e.process.ports import only_waiting, users_of

_POLL_SECONDS = 0.1
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_RESERVED = Path("/proc/sys/net/ipv4/ip_local_reserved_ports")


@dataclass(frozen=True)
class Held:
    """What is held, for the `Owner` of the case. `descriptors` are the locked files."""

    devices: tuple[str, ...]
    ports: tuple[int, ...]
    descriptors: tuple[int, ...]
    warnings: tuple[str, ...]


@contextmanager
def hold(
    devices: Sequence[str], ports: Sequence[int], holder: str, *, wait_seconds: float = 0.0
) -> Iterator[Held]:
    """Hold each device and port for this run, and find the ports free to be bound.

    A device is leased under the name it is given: callers must always use the same one for the
    same device (the UUID of a GPU). `holder` is what a refused run is told, beside process, user
    and time. All are taken together or none is, so that two runs cannot block each other.

    Raises SetupMissing, naming the holder, when one cannot be had within `wait_seconds`.
    """
    folder = _folder()
    names = [f"device {device}" for device in devices] + [f"port {port}" for port in ports]
    deadline = time.monotonic() + wait_seconds
    with ExitStack() as stack:
        while True:
            try:
                descriptors = _take(folder, sorted(set(names)), stack)
                _refuse_bound(ports)
                break
            except SetupMissing:
                stack.close()
                if time.monotonic() >= deadline:
                    raise
            time.sleep(_POLL_SECONDS)
        with _usable():
            for descriptor in descriptors:
                _sign(descriptor, holder)
        yield Held(
            tuple(devices), tuple(ports), tuple(descriptors), tuple(ephemeral_warnings(ports))
        )


def _folder() -> Path:
    with _usable():
        folder = Path(runs.host_folder(os.environ), "leases")
        runs.shared_folder(str(folder))
    return folder


@contextmanager
def _usable() -> Iterator[None]:
    """Raises SetupMissing where the folder that all runs share is full, or not for this user."""
    try:
        yield
    except OSError as error:
        raise SetupMissing(
            f"the folder that runs of this host share cannot be used: {error}",
            mend=f"free space there, or name one that all users can write to in "
            f"{runs.HOST_VARIABLE}",
        ) from error


def ephemeral_warnings(ports: Sequence[int]) -> list[str]:
    """Ports that the kernel may hand to any outgoing connection at any moment."""
    low, high = (int(word) for word in _RANGE.read_text().split())
    reserved = _reserved()
    return [
        f"port {port} lies in the host's ephemeral range {low}-{high}: an outgoing connection "
        f"can take it at any moment; choose one below {low}"
        for port in ports
        if low <= port <= high and port not in reserved
    ]


def _reserved() -> set[int]:
    found: set[int] = set()
    for part in _RESERVED.read_text().strip().split(","):
        if part:
            low, _, high = part.partition("-")
            found.update(range(int(low), int(high or low) + 1))
    return found


def _take(folder: Path, names: list[str], stack: ExitStack) -> list[int]:
    descriptors = []
    for name in names:
        with _usable():
            descriptor = _open(folder / re.sub(r"[^A-Za-z0-9._-]", "-", name))
        stack.callback(os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SetupMissing(
                f"{name} is leased to another run: {_signature(descriptor)}",
                mend="wait for that run to end, or choose another",
            ) from error
        descriptors.append(descriptor)
    return descriptors


def _open(path: Path) -> int:
    """Open a lease file, made by whichever user came first. No run ever removes one.

    Without O_CREAT where it exists: in a sticky folder the kernel may refuse that for a file of
    another user (fs.protected_regular).
    """
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
        os.fchmod(descriptor, 0o666)
        return descriptor
    return os.open(path, flags)


def _sign(descriptor: int, holder: str) -> None:
    text = json.dumps(
        {"run": holder, "pid": os.getpid(), "user": _user(), "since": time.strftime("%F %T %z")}
    ).encode()
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text, 0)


def _signature(descriptor: int) -> str:
    try:
        signed = json.loads(os.pread(descriptor, 4096, 0))
    except ValueError:
        return "its holder has not signed yet"
    return ", ".join(f"{name} {value}" for name, value in signed.items())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.geteuid())


def _refuse_bound(ports: Sequence[int]) -> None:
    for port in ports:
        number = _bind_error(port)
        if number is None:
            continue
        if number != errno.EADDRINUSE:
            raise SetupMissing(
                f"port {port} cannot be bound: {os.strerror(number)}", mend="choose another port"
            )
        if only_waiting(port):
            continue
        raise SetupMissing(
            f"port {port} is in use by {users_of(port)}",
            mend="end that process, or choose another port",
        )


def _bind_error(port: int) -> int | None:
    """Why a server could not bind the port now; None when it could."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            return error.errno
    return None

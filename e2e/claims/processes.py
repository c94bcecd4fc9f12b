"""The live processes of a role, as /proc shows them: title, environment, connections."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True)
class SeenProcess:
    """`environ` is None where it cannot be read; `remote_ports` are those of established TCP
    connections. `devices` are UUIDs of the devices that NVML lists the process on."""

    pid: int
    argv: tuple[str, ...]
    environ: Mapping[str, str] | None
    remote_ports: frozenset[int] = frozenset()
    devices: frozenset[str] = frozenset()

    @property
    def title(self) -> str:
        return " ".join(self.argv)


def observe(pids: Iterable[int], devices: Mapping[int, frozenset[str]]) -> list[SeenProcess]:
    """Processes that end meanwhile are left out."""
    seen = (_observe(pid, devices.get(pid, frozenset())) for pid in pids)
    return [process for process in seen if process is not None]


def interpreter_of(processes: Iterable[SeenProcess]) -> SeenProcess | None:
    """A process whose argv[0] is the servers' own `sys.executable`.

    vLLM's engine processes rename themselves; the helpers of `multiprocessing` keep the path that
    they were started with, and so does an API server without a title of its own.
    """
    candidates = [
        process
        for process in processes
        if process.argv
        and Path(process.argv[0]).name.startswith("python")
        and os.access(process.argv[0], os.X_OK)
        and Path(process.argv[0]).is_absolute()
    ]
    candidates.sort(key=lambda process: "multiprocessing" not in process.title)
    return candidates[0] if candidates else None


def _observe(pid: int, devices: frozenset[str]) -> SeenProcess | None:
    folder = Path("/proc") / str(pid)
    try:
        argv = (folder / "cmdline").read_bytes().rstrip(b"\0 ").split(b"\0")
        ports = _remote_ports(pid)
    except (OSError, psutil.Error):
        return None
    if argv == [b""]:
        return None
    return SeenProcess(
        pid=pid,
        argv=tuple(word.decode("utf-8", "replace") for word in argv),
        environ=_environ(folder / "environ"),
        remote_ports=ports,
        devices=devices,
    )


def _remote_ports(pid: int) -> frozenset[int]:
    connections = psutil.Process(pid).net_connections(kind="tcp")
    return frozenset(
        connection.raddr.port
        for connection in connections
        if connection.raddr and connection.status == psutil.CONN_ESTABLISHED
    )


def _environ(path: Path) -> Mapping[str, str] | None:
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    pairs = (entry.decode("utf-8", "replace").partition("=") for entry in raw.split(b"\0"))
    return {name: value for name, equals, value in pairs if equals}

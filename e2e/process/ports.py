"""Who uses a TCP port."""

from __future__ import annotations

from e2e.process.guardian import holdings, table


def listeners(port: int) -> list[holdings.Port]:
    """Sockets that listen on the port, in this network namespace."""
    return [use for use in holdings.ports() if use.number == port and use.listening]


def only_waiting(port: int) -> bool:
    """Whether all that is left of the port's last use is TIME_WAIT: nobody has it any more."""
    uses = [use for use in holdings.ports() if use.number == port]
    return bool(uses) and all(use.waiting for use in uses)


def users_of(port: int) -> list[str]:
    """A line for each process that has a socket bound to the port, for people."""
    inodes = {use.inode for use in holdings.ports() if use.number == port and not use.waiting}
    return [
        described(row)
        for pid, row in table.snapshot().items()
        if holdings.socket_inodes(pid) & inodes
    ]


def described(row: table.ProcessInfo) -> str:
    return f"pid {row.pid} ({table.named(row).command})"

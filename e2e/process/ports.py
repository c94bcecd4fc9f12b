"""Who uses a TCP port."""

from __future__ import annotations

import pwd

from e2e.process.guardian import ownership, sockets, table


def only_waiting(port: int) -> bool:
    """Whether all that is left of the port's last use is TIME_WAIT: nobody has it any more."""
    uses = [use for use in sockets.ports() if use.number == port]
    return bool(uses) and all(use.waiting for use in uses)


def users_of(port: int) -> str:
    """The processes that have a socket bound to the port; where they cannot be seen, the user."""
    uses = [use for use in sockets.ports() if use.number == port and not use.waiting]
    inodes = {use.inode for use in uses}
    holders = [
        table.named(row)
        for pid, row in table.snapshot().items()
        if sockets.socket_inodes(pid) & inodes
    ]
    if holders:
        return ", ".join(ownership.described(holders))
    names = {_user(use.uid) for use in uses}
    return f"a process of user {' or '.join(sorted(names))}" if names else "an unknown process"


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)

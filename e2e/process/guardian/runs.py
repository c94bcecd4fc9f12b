"""The host's list of runs: one file for each guardian, locked while it lives.

A file that nobody locks belongs to a run whose guardian is gone without a clean end: it tells
the next run what happened, and `afd-e2e reap` where to look.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

HOST_VARIABLE = "AFD_E2E_HOST_FOLDER"
_DEFAULT_HOST_FOLDER = "/tmp/afd-e2e-host"
_FOLDER = "runs"


def host_folder(variables: Mapping[str, str]) -> str:
    """The folder that all runs of a host share: leases, and the list of runs.

    The same for every user, hence neither under TMPDIR nor under XDG_RUNTIME_DIR;
    AFD_E2E_HOST_FOLDER names another.
    """
    folder = variables.get(HOST_VARIABLE) or _DEFAULT_HOST_FOLDER
    shared_folder(folder)
    return folder


def shared_folder(folder: str) -> None:
    """Make a folder in which every user can create files, and remove only their own."""
    with contextlib.suppress(FileExistsError):
        os.makedirs(folder)
        os.chmod(folder, 0o1777)


class RunFile:
    """The entry of one run, held locked until `remove` or the end of the process."""

    def __init__(self, host: str, owner: str) -> None:
        shared_folder(os.path.join(host, _FOLDER))
        self.path = _path(host, owner)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(self.path, flags, 0o644)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def write(self, entry: Mapping[str, Any]) -> None:
        """In place: a rename would leave the lock behind on the old file."""
        data = json.dumps(entry, indent=2).encode() + b"\n"
        with contextlib.suppress(OSError):
            os.pwrite(self._descriptor, data, 0)
            os.ftruncate(self._descriptor, len(data))

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        os.close(self._descriptor)


def forget(host: str, owner: str) -> None:
    """Remove the entry of an owner whose guardian is gone."""
    with contextlib.suppress(OSError):
        os.unlink(_path(host, owner))


def entries(host: str) -> Iterator[tuple[str, bool, dict[str, Any]]]:
    """(path, whether its guardian lives, content) of this user's entries."""
    folder = os.path.join(host, _FOLDER)
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    for name in names:
        if name.endswith(".json"):
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError), open(path, "rb") as file:
                if os.fstat(file.fileno()).st_uid == os.geteuid():
                    yield path, _locked(file.fileno()), _parsed(file.read())


def _path(host: str, owner: str) -> str:
    return os.path.join(host, _FOLDER, f"{owner}.json")


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        return json.loads(data)
    except ValueError:
        return {}

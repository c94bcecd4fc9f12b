"""The host's list of runs: one file for each guardian, locked while it lives.

A file that nobody locks belongs to a run whose guardian is gone without a clean end: it tells
the next run what happened, and `afd-e2e reap` where to look.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping
from typing import Any

HOST_VARIABLE = "AFD_E2E_HOST_FOLDER"
_DEFAULT_HOST_FOLDER = "/tmp/afd-e2e-host"


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

    def __init__(self, path: str) -> None:
        shared_folder(os.path.dirname(path))
        self._path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(path, flags, 0o644)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def write(self, entry: Mapping[str, Any]) -> None:
        """In place: a rename would leave the lock behind on the old file."""
        data = json.dumps(entry, indent=2).encode() + b"\n"
        with contextlib.suppress(OSError):
            os.pwrite(self._descriptor, data, 0)
            os.ftruncate(self._descriptor, len(data))

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        os.close(self._descriptor)


def run_file(host: str, owner: str) -> str:
    return os.path.join(host, "runs", f"{owner}.json")


def run_files(host: str) -> list[str]:
    folder = os.path.dirname(run_file(host, ""))
    try:
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    except (FileNotFoundError, NotADirectoryError):
        return []


def read(path: str) -> tuple[bool, dict[str, Any]]:
    """Whether the entry's guardian lives, and the entry; empty when it is not this user's, is
    gone or was being written when its guardian was killed."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return False, {}
            return _locked(file.fileno()), _parsed(file.read())
    except OSError:
        return False, {}


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

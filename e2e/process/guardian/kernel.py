"""What ownership asks of the kernel and Python has no call for: prctl(2) and inotify(7)."""

from __future__ import annotations

import ctypes
import os

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37

_IN_CREATE = 0x100
_IN_MOVED_TO = 0x80

_libc = ctypes.CDLL(None, use_errno=True)


def adopts_orphans() -> bool:
    """Whether orphans among this process's descendants become its children."""
    flag = ctypes.c_int(0)
    _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(flag))
    return bool(flag.value)


def adopt_orphans(wanted: bool) -> None:
    _prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(wanted))


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send this process a signal when its parent dies; survives exec."""
    _prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal_number))


def watch(folder: str) -> int | None:
    """A descriptor that becomes readable when something new is in `folder`; None where the
    kernel gives none (limits on inotify, no such folder)."""
    descriptor = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        return None
    if _libc.inotify_add_watch(descriptor, os.fsencode(folder), _IN_CREATE | _IN_MOVED_TO) < 0:
        os.close(descriptor)
        return None
    return descriptor


def _prctl(option: int, argument: object) -> None:
    zero = ctypes.c_ulong(0)
    if _libc.prctl(option, argument, zero, zero, zero) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")

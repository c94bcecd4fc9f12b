"""The two prctl(2) options that ownership rests on."""

from __future__ import annotations

import ctypes
import os

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37

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


def _prctl(option: int, argument: object) -> None:
    zero = ctypes.c_ulong(0)
    if _libc.prctl(option, argument, zero, zero, zero) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")

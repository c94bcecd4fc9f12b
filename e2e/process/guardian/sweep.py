"""Removing what a run left in files, where it is provably the run's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable

from . import holdings


def shared_memory(names: Iterable[str], before: set[str]) -> list[str]:
    """Unlink segments that owned processes held; returns what was removed.

    `names` were seen open or mapped in owned processes. That alone would not make them the
    run's: only those that were not there `before`, are this user's, and are in no living
    process's hands are removed.
    """
    removed = []
    fresh = {name for name in names if name not in before}
    for name in sorted(fresh - holdings.in_use(fresh)):
        path = f"{holdings.SHARED_MEMORY}/{name}"
        try:
            if os.lstat(path).st_uid == os.geteuid():
                os.unlink(path)
                removed.append(path)
        except OSError:
            continue
    return removed


def sockets(paths: Iterable[str]) -> list[str]:
    """Unlink the files of Unix sockets that owned processes had bound and nobody has now."""
    removed = []
    for path in sorted(set(paths) - set(holdings.named_sockets().values())):
        try:
            os.unlink(path)
        except OSError:
            continue
        removed.append(path)
    return removed


def folder(path: str) -> list[str]:
    """Remove a run's private folder; returns what was in it."""
    left = [os.path.join(place, file) for place, _, files in os.walk(path) for file in files]
    shutil.rmtree(path, ignore_errors=True)
    return left

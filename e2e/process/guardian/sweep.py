"""Removing the sockets and the folder that a run left."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable

from . import sockets


def remove_sockets(paths: Iterable[str]) -> list[str]:
    """Unlink the files of Unix sockets that owned processes had bound and nobody has now."""
    removed = []
    for path in sorted(set(paths) - set(sockets.named_sockets().values())):
        try:
            os.unlink(path)
        except OSError:
            continue
        removed.append(path)
    return removed


def remove_folder(path: str) -> list[str]:
    """Remove a run's private folder; returns what was in it."""
    left = [os.path.join(place, file) for place, _, files in os.walk(path) for file in files]
    shutil.rmtree(path, ignore_errors=True)
    return left

"""Shared memory: the files of /dev/shm, and who has them open or mapped.

A segment is told by its inode. Its name alone would not do: glibc makes a semaphore under another
name and maps it before it gets its own, and that is the name that /proc/<pid>/maps keeps.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import NamedTuple

FOLDER = "/dev/shm"


class Segment(NamedTuple):
    """`name` is the path below /dev/shm."""

    name: str
    inode: int

    @property
    def path(self) -> str:
        return os.path.join(FOLDER, self.name)


def segments() -> set[Segment]:
    """This user's segments; those of others can be nobody's residue here."""
    found: set[Segment] = set()
    for folder, _, files in os.walk(FOLDER):
        for file in files:
            path = os.path.join(folder, file)
            try:
                status = os.lstat(path)
            except FileNotFoundError:
                continue
            if status.st_uid == os.geteuid():
                found.add(Segment(os.path.relpath(path, FOLDER), status.st_ino))
    return found


def held_by(pid: int, wanted: Collection[Segment]) -> set[Segment]:
    """Those of `wanted` that `pid` has open or mapped, as far as this user may see."""
    if not wanted:
        return set()
    device = os.stat(FOLDER).st_dev
    inodes = _open_inodes(pid, device) | _mapped_inodes(pid, device)
    return {segment for segment in wanted if segment.inode in inodes}


def in_use(wanted: Collection[Segment]) -> set[Segment]:
    """Those of `wanted` that any process of the host has open or mapped."""
    used: set[Segment] = set()
    if wanted:
        for name in os.listdir("/proc"):
            if name.isdecimal():
                used |= held_by(int(name), wanted)
    return used


def remove(wanted: Collection[Segment]) -> list[str]:
    """Unlink those of `wanted` that are still there, and in nobody's hands; returns their paths."""
    removed = []
    present = segments() & set(wanted)
    for segment in sorted(present - in_use(present)):
        try:
            os.unlink(segment.path)
        except OSError:
            continue
        removed.append(segment.path)
    return removed


def _open_inodes(pid: int, device: int) -> set[int]:
    folder = f"/proc/{pid}/fd"
    inodes: set[int] = set()
    try:
        for name in os.listdir(folder):
            try:
                status = os.stat(f"{folder}/{name}")
            except FileNotFoundError:
                continue
            if status.st_dev == device:
                inodes.add(status.st_ino)
    except OSError:
        return inodes
    return inodes


def _mapped_inodes(pid: int, device: int) -> set[int]:
    """Lines of maps are: addresses, rights, offset, device, inode, path."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            data = file.read()
    except OSError:
        return set()
    mark = f" {os.major(device):02x}:{os.minor(device):02x} ".encode()
    if mark not in data:
        return set()
    return {int(line.split()[4]) for line in data.splitlines() if mark in line}

"""Reading the logs of roles: bounded in memory, whatever was written."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_TAIL_BYTES = 1 << 16
_HEAD_BYTES = 16 << 20
_AROUND = 2
_LONGEST_LINE = 400
_ERROR = re.compile(
    r"(?:^|[\s.)])(?:[A-Z]\w*(?:Error|Exception)|KeyboardInterrupt): ?(?!.*warning)"
)
_BEFORE_MESSAGE = re.compile(r"(?:\(\S+ pid=\d+\) )?(?:[A-Z]+ [\d-]+ [\d:]+ \[[^\]]+:\d+\])?\s*")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")


def last_lines(path: Path, count: int = 20) -> list[str]:
    """The last lines that are not blank: at most 64 KiB are read, long lines are cut.

    Undecodable bytes are replaced, terminal escapes removed. Empty when there is no log.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            data = file.read(_TAIL_BYTES)
    except OSError:
        return []
    lines = data.decode("utf-8", "replace").replace("\r", "\n").split("\n")
    if size > _TAIL_BYTES:
        lines[0] = f"…{lines[0][-_LONGEST_LINE + 1 :]}"
    readable = (_CONTROL.sub("", line).rstrip() for line in lines)
    return [_cut(line) for line in readable if line][-count:]


def message(line: str) -> str:
    """A line of vLLM's log without its process, level, time and place in the code."""
    return _BEFORE_MESSAGE.sub("", line, count=1)


def first_error(path: Path) -> list[str]:
    """The first line that names an exception, with up to two lines on either side: where a chain of
    failures began, which the last lines often only echo. Looks at the first 16 MiB, of each line at
    its first 64 KiB; empty where there is none."""
    around: deque[str] = deque(maxlen=2 * _AROUND + 1)
    after: int | None = None
    try:
        with path.open("rb") as file:
            for line in _head(file):
                around.append(line)
                if after is not None:
                    after += 1
                elif _ERROR.search(line[:_LONGEST_LINE]):
                    after = 0
                    while len(around) > _AROUND + 1:
                        around.popleft()
                if after == _AROUND:
                    break
    except OSError:
        return []
    if after is None:
        return []
    return [_cut(_CONTROL.sub("", shown).rstrip()) for shown in around if shown.strip()]


def _head(file: BinaryIO) -> Iterator[str]:
    continued = False
    while file.tell() < _HEAD_BYTES and (part := file.readline(_TAIL_BYTES)):
        if not continued:
            yield part.decode("utf-8", "replace").rstrip("\n")
        continued = not part.endswith(b"\n")


def _cut(line: str) -> str:
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{line[:_LONGEST_LINE]}… ({len(line) - _LONGEST_LINE} characters more)"

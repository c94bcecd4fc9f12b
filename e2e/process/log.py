"""Reading the logs of roles: bounded in memory, whatever was written."""

from __future__ import annotations

import re
from pathlib import Path

_TAIL_BYTES = 1 << 16
_LONGEST_LINE = 400
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


def _cut(line: str) -> str:
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{line[:_LONGEST_LINE]}… ({len(line) - _LONGEST_LINE} characters more)"

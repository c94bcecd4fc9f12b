"""Reading the logs of roles: bounded in memory, whatever was written."""

from __future__ import annotations

import re
from pathlib import Path

_TAIL_BYTES = 1 << 16
_HEAD_BYTES = 16 << 20
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
    failures began, which the last lines often only echo. Reads at most 16 MiB; empty where there
    is none."""
    try:
        with path.open("rb") as file:
            data = file.read(_HEAD_BYTES)
    except OSError:
        return []
    lines = data.decode("utf-8", "replace").split("\n")
    for place, line in enumerate(lines):
        if _ERROR.search(line[:_LONGEST_LINE]):
            around = lines[max(0, place - 2) : place + 3]
            return [_cut(_CONTROL.sub("", shown).rstrip()) for shown in around if shown.strip()]
    return []


def _cut(line: str) -> str:
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{line[:_LONGEST_LINE]}… ({len(line) - _LONGEST_LINE} characters more)"

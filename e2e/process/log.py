"""Reading the logs of roles: bounded in memory, whatever was written."""

from __future__ import annotations

import re
from pathlib import Path

_TAIL_BYTES = 1 << 16
_CHUNK_BYTES = 1 << 20
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
    if size > _TAIL_BYTES and len(lines) > 1:
        del lines[0]
    readable = (_CONTROL.sub("", line).rstrip() for line in lines)
    return [_cut(line) for line in readable if line][-count:]


def _cut(line: str) -> str:
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{line[:_LONGEST_LINE]}… ({len(line) - _LONGEST_LINE} characters more)"


class LogSearch:
    """Looks for a text in a growing log, reading each byte once."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._text = text.encode()
        self._offset = 0
        self._overlap = b""
        self._found = False

    def found(self) -> bool:
        """Whether the text has been written by now."""
        while not self._found and (chunk := self._read()):
            window = self._overlap + chunk
            self._found = self._text in window
            self._overlap = window[-(len(self._text) - 1) :] if len(self._text) > 1 else b""
        return self._found

    def _read(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                chunk = file.read(_CHUNK_BYTES)
        except FileNotFoundError:
            return b""
        self._offset += len(chunk)
        return chunk

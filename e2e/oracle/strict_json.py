"""JSON as the standard has it: no NaN, no key twice, only Unicode."""

from __future__ import annotations

import json
from typing import Any, NoReturn

_LONGEST_EXCERPT = 200


class Malformed(ValueError):
    """Why a text or a reply is not what it should be."""


def parse_object(data: bytes) -> dict[str, Any]:
    """Raises Malformed for anything but one JSON object in UTF-8."""
    if not data.strip():
        raise Malformed("empty body")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(f"not UTF-8: {error.reason} at byte {error.start}") from error
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not JSON ({error}): {excerpt(text)}") from error
    if not isinstance(value, dict):
        raise Malformed(f"not an object but {type(value).__name__}: {excerpt(text)}")
    return value


def is_unicode(text: str) -> bool:
    """False for half a surrogate pair, which JSON escapes can smuggle in."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def excerpt(value: object) -> str:
    """One bounded line of a text, of bytes, or of anything's repr."""
    if isinstance(value, bytes):
        value = value[: 4 * _LONGEST_EXCERPT].decode("utf-8", "replace")
    text = value if isinstance(value, str) else repr(value)
    line = " ".join(text[: 4 * _LONGEST_EXCERPT].split())
    line = line.encode("utf-8", "backslashreplace").decode("utf-8")
    return line if len(line) <= _LONGEST_EXCERPT else line[: _LONGEST_EXCERPT - 1] + "…"


def _no_constant(name: str) -> NoReturn:
    raise Malformed(f"{name} is no JSON value")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Malformed(f"key {excerpt(twice)!r} twice in an object")
    return found

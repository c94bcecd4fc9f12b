"""Reading flags back from a planned command line."""

from __future__ import annotations

from collections.abc import Sequence


def flag(argv: Sequence[str], name: str) -> str | None:
    """The value of `--name value` or `--name=value`, the last one given; None where absent."""
    value = None
    for position, word in enumerate(argv):
        if word == f"--{name}" and position + 1 < len(argv):
            value = argv[position + 1]
        elif word.startswith(f"--{name}="):
            value = word.partition("=")[2]
    return value

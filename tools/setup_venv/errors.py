"""What ends a set-up. Has to import on Python 3.7, before a fitting one is chosen."""

from __future__ import annotations

from collections.abc import Sequence


class SetupError(Exception):
    """What happened, the last lines of what failed, and what to do."""

    def __init__(self, what: str, mend: str, lines: Sequence[str] = ()) -> None:
        super().__init__(what)
        self.what = what
        self.mend = mend
        self.lines = tuple(lines)

    def __str__(self) -> str:
        return "\n".join(
            [self.what, *(f"    | {line}" for line in self.lines), f"  to do: {self.mend}"]
        )

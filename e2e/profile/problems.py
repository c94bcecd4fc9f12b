"""What is wrong with a profile, and where: `file:line:column: path.to.key: what is wrong`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e.errors import ProfileError

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, order=True)
class Position:
    """A place in a file; line and column count from 1, as editors do."""

    file: Path
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Problem:
    at: Position
    path: KeyPath
    what: str

    def __str__(self) -> str:
        where = f"{written(self.path)}: " if self.path else ""
        return f"{self.at}: {where}{self.what}"


class InvalidProfile(ProfileError):
    """All problems of one profile, in the order of the file."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        unique = {(problem.at, problem.path, problem.what): problem for problem in problems}
        self.problems = sorted(unique.values(), key=lambda problem: problem.at)
        super().__init__(
            "\n".join(map(str, self.problems)),
            mend="the format is explained by example in docs/profiles.md; "
            "`afd-e2e schema` prints all keys",
        )

    def __str__(self) -> str:
        """Each problem in a line of its own, as editors and terminals make links of."""
        count = len(self.problems)
        return f"{count} problem{'s' if count > 1 else ''}\n{super().__str__()}"


def written(path: KeyPath) -> str:
    """`("cases", "a", "native", "devices", 2)` as `cases.a.native.devices[2]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        shown = part if part and part.isprintable() else repr(part)
        text += f".{shown}" if text else shown
    return text


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that was probably meant."""
    by_form = {_form(candidate): candidate for candidate in candidates}
    close = difflib.get_close_matches(_form(word), by_form, n=1, cutoff=0.6)
    return by_form[close[0]] if close else None


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing."""
    found = nearest(word, candidates)
    return f"; did you mean {found!r}?" if found else ""


def _form(word: str) -> str:
    return word.lower().replace("-", "_")

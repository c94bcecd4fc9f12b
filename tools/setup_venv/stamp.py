"""What an environment says of its own set-up: begun or complete, and from what."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

_FILE = "afd-e2e-setup.json"


@dataclass(frozen=True)
class Stamp:
    """`base`: the Python and the place of the environment; another one cannot be updated in place.
    `key`: what was to be installed."""

    base: str
    key: str
    complete: bool

    @classmethod
    def read(cls, venv: Path) -> Self | None:
        """None: no such file, or not one of ours."""
        try:
            return cls(**json.loads((venv / _FILE).read_text(encoding="utf-8")))
        except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
            return None

    def write(self, venv: Path) -> None:
        """Replaces the former stamp in one step, and is on the disk before this returns."""
        partial = venv / f"{_FILE}.partial"
        with partial.open("w", encoding="utf-8") as file:
            json.dump(asdict(self), file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(venv / _FILE)

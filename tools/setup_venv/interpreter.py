"""Which Python the environment is made from. Has to import on Python 3.7."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from tools.setup_venv.errors import SetupError

OLDEST = (3, 11)
TOO_NEW = (3, 14)
NAMES = ("python3.11", "python3.12", "python3.13", "python3")

_PROBE = (
    "import ensurepip, json, sys, venv; print(json.dumps([sys.executable, sys.version_info[:3]]))"
)


@dataclass(frozen=True)
class Interpreter:
    """An executable that can make virtual environments, and its version."""

    executable: str
    version: tuple[int, int, int]

    @property
    def fits(self) -> bool:
        return OLDEST <= self.version[:2] < TOO_NEW


def probe(name: str) -> Interpreter | str:
    """Ask an executable what it is; a string says why it cannot be used at all."""
    try:
        answer = subprocess.run(
            [name, "-c", _PROBE], capture_output=True, text=True, timeout=30, check=False
        )
    except FileNotFoundError:
        return "not there"
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if answer.returncode != 0:
        lines = answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"]
        return lines[-1 if lines[0].startswith("Traceback") else 0]
    executable, (major, minor, micro) = json.loads(answer.stdout)
    return Interpreter(executable, (major, minor, micro))


def choose(wanted: str | None, ask: Callable[[str], Interpreter | str] = probe) -> Interpreter:
    """The wanted interpreter, or the first of `NAMES` that fits. Raises SetupError."""
    refused = []
    for name in (wanted,) if wanted else NAMES:
        found = ask(name)
        if isinstance(found, str):
            refused.append(f"{name}: {found}")
        elif found.fits:
            return found
        else:
            refused.append(f"{name}: is Python {'.'.join(map(str, found.version))}")
    raise SetupError(
        "no Python 3.11, 3.12 or 3.13 that can make virtual environments",
        "install one (on Debian and Ubuntu: python3 and python3-venv), or name one: "
        "make setup PYTHON=/path/to/python3.11",
        refused,
    )

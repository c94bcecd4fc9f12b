"""The server's executable, and the interpreter that it runs in."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from e2e.errors import SetupMissing


def resolve(name: str) -> Path:
    """The executable of that name: a path as it stands, a bare name beside this interpreter or on
    PATH. Raises SetupMissing."""
    if "/" in name:
        found = shutil.which(str(Path(name).expanduser()))
    else:
        found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        raise SetupMissing(
            f"the server executable {name!r} is not there or not executable",
            mend="run `make setup` for the CPU lane, or name yours in "
            "AFD_CPU_E2E_VLLM_BIN or AFD_GPU_E2E_VLLM_BIN",
        )
    return Path(found).absolute()


def interpreter(executable: Path) -> Path | None:
    """The Python that a console script runs in, by its first lines (pip writes `#!python`, or a
    `sh` trampoline where the path is long); None for anything else."""
    with executable.open("rb") as file:
        head = file.read(1024).decode("utf-8", "replace").splitlines()
    if not head or not head[0].startswith("#!"):
        return None
    words = head[0][2:].split()
    if words and Path(words[0]).name == "sh" and len(head) > 1:
        trampoline = re.match(r"""'''exec' ["']?([^"']+?)["']? "\$0" """, head[1])
        return Path(trampoline.group(1)) if trampoline else None
    if len(words) > 1 and Path(words[0]).name == "env":
        found = shutil.which(words[1])
        return Path(found) if found else None
    return Path(words[0]) if words and "python" in Path(words[0]).name else None

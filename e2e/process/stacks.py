"""What hung processes are doing: py-spy where it is installed, else what the kernel tells."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from e2e.process.guardian import table

_LONGEST_DUMP = 200
_LONGEST_LOOK_SECONDS = 3.0


def stacks_of(processes: Sequence[table.ProcessInfo], seconds: float) -> list[str]:
    """Lines for people, a block a process; takes `seconds` at most, naming what it left out."""
    deadline = time.monotonic() + seconds
    spy = shutil.which("py-spy") or shutil.which("py-spy", path=str(Path(sys.executable).parent))
    lines: list[str] = []
    for process in processes:
        left = deadline - time.monotonic()
        if left <= 0:
            lines.append(f"pid {process.pid} {process.command}: no time left to look")
            continue
        lines.append(f"pid {process.pid} ({process.state}) {process.command}")
        dump = _python_stack(spy, process.pid, min(left, _LONGEST_LOOK_SECONDS)) if spy else []
        lines += [f"  {line}" for line in (dump or _kernel_stacks(process.pid))[:_LONGEST_DUMP]]
    return lines


def _python_stack(spy: str, pid: int, seconds: float) -> list[str]:
    try:
        done = subprocess.run(
            [spy, "dump", "--pid", str(pid)],
            capture_output=True,
            timeout=seconds,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.decode("utf-8", "replace").splitlines() if done.returncode == 0 else []


def _kernel_stacks(pid: int) -> list[str]:
    """Each thread: name, state, and where in the kernel it waits (more for root than others)."""
    lines = []
    for task in sorted(Path(f"/proc/{pid}/task").glob("*"), key=lambda path: int(path.name)):
        name, state = _text(task / "comm"), _state(task)
        frames = [line.split("] ", 1)[-1] for line in _text(task / "stack").splitlines()]
        where = " < ".join(frames[:6]) or _text(task / "wchan") or "unknown"
        lines.append(f"thread {task.name} {name} ({state}): {where}")
    return lines


def _state(task: Path) -> str:
    found = [line for line in _text(task / "status").splitlines() if line.startswith("State:")]
    return found[0].split()[1] if found else "?"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""

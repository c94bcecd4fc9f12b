"""The set-up itself: what is there is kept, what is not complete is made again."""

from __future__ import annotations

import fcntl
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tools.setup_venv import stand_ins
from tools.setup_venv.errors import SetupError
from tools.setup_venv.interpreter import Interpreter
from tools.setup_venv.settings import Settings
from tools.setup_venv.stamp import Stamp
from tools.setup_venv.steps import StepFailed, Steps, say

_GIB = 1 << 30


def ensure(root: Path, venv: Path, settings: Settings, python: Interpreter) -> None:
    """Make `venv` what `settings` ask for, or find that it is. Raises SetupError.

    An environment of the same Python whose set-up was completed is updated in place; any other
    one that this set-up began is made again from nothing. One of other origin is never touched.
    """
    wanted = Stamp(
        base=f"Python {'.'.join(map(str, python.version))} in {venv}",
        key=settings.key,
        complete=True,
    )
    scratch = root / "build" / "setup"
    scratch.mkdir(parents=True, exist_ok=True)
    with _alone(scratch / "lock") as lock:
        found = Stamp.read(venv)
        if found == wanted and intact(venv, settings):
            say(f"set-up: {venv.name} is complete")
            return
        begin = time.monotonic()
        say(f"set-up: {venv.name} with {', '.join(settings.extras) or 'no extras'}")
        if found is None or not found.complete or found.base != wanted.base:
            _discard(venv, found)
            _require_disk(root, settings.disk_gib)
        venv.mkdir(exist_ok=True)
        replace(wanted, complete=False).write(venv)
        steps = Steps(cwd=root, log=scratch / "log", lock=lock)
        steps.log.write_bytes(b"")
        try:
            _install(steps, venv, settings, python)
        except StepFailed as failed:
            raise SetupError(
                f"the last step failed: {failed}",
                f"read {steps.log}; when it is mended, `make setup` starts over",
                failed.lines,
            ) from failed
        wanted.write(venv)
        say(f"set-up: complete after {time.monotonic() - begin:.0f} s")


def intact(venv: Path, settings: Settings) -> bool:
    """Whether the environment has a Python, and nothing was installed over a stand-in."""
    packages = next(venv.glob("lib/python3.*/site-packages"), None)
    return (
        packages is not None
        and (venv / "bin" / "python").exists()
        and all((packages / stand_in.dist_info).is_dir() for stand_in in settings.stand_ins)
    )


def _install(steps: Steps, venv: Path, settings: Settings, python: Interpreter) -> None:
    executable = str(venv / "bin" / "python")

    def pip(title: str, *arguments: str) -> None:
        options = ["--progress-bar", "off"]
        steps.run(title, [executable, "-m", "pip", "install", *options, *arguments])

    if not Path(executable).exists():
        steps.run("virtual environment", [python.executable, "-m", "venv", str(venv)])
    if settings.torch:
        _install_torch(pip, settings.torch, settings.cpu_index)
    if settings.stand_ins:
        wheels = [str(stand_ins.write(each, steps.log.parent)) for each in settings.stand_ins]
        pip("stand-ins", "--no-index", "--no-deps", "--force-reinstall", *wheels)
    extras = f"[{','.join(settings.extras)}]" if settings.extras else ""
    pip("the project and what it needs", "--editable", f".{extras}")
    if settings.torch:
        check = Path(__file__).with_name("check_vllm.py")
        steps.run("import vllm", [executable, str(check)])


def _install_torch(pip: Callable[..., None], torch: str, cpu_index: str) -> None:
    try:
        return pip(torch, torch)
    except StepFailed as failed:
        if not _lacks_build(failed):
            raise
    say(f"    none where pip looks, so from {cpu_index}")
    try:
        pip(torch, torch, "--extra-index-url", cpu_index)
    except StepFailed as failed:
        if not _lacks_build(failed):
            raise
        raise SetupError(
            f"no {torch} for this Python, neither where pip looks nor in {cpu_index}",
            "show pip where it is (PIP_FIND_LINKS or PIP_EXTRA_INDEX_URL), choose another Python "
            "(PYTHON=python3.11), or do without servers on this CPU (AFD_E2E_EXTRAS=report,dev)",
            failed.lines,
        ) from failed


def _lacks_build(failed: StepFailed) -> bool:
    return any("No matching distribution found" in line for line in failed.lines)


def _discard(venv: Path, found: Stamp | None) -> None:
    """Moved away before it is removed, so that an interrupted removal is never taken for it."""
    discarded = venv.with_name(f"{venv.name}.discarded")
    if discarded.exists():
        shutil.rmtree(discarded)
    if found is None and (venv / "pyvenv.cfg").exists():
        raise SetupError(
            f"{venv} was not made by this set-up",
            f"move it away (mv {venv.name} {venv.name}.mine), then `make setup`",
        )
    if found is not None:
        say("  starting over: " + ("another Python" if found.complete else "it was interrupted"))
        venv.rename(discarded)
        shutil.rmtree(discarded)


def _require_disk(root: Path, gib: float) -> None:
    free = shutil.disk_usage(root).free / _GIB
    if free < gib:
        raise SetupError(
            f"{free:.1f} GiB free in {root}, and the set-up takes {gib:.1f}",
            "free some space; without servers on this CPU, AFD_E2E_EXTRAS=report,dev takes less",
        )


@contextmanager
def _alone(lock: Path) -> Iterator[int]:
    """One set-up at a time; a second one waits, and then finds the work done. Yields the lock."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("set-up: another one is running; waiting for it", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()

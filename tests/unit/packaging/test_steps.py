from __future__ import annotations

import errno
import fcntl
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.setup_venv import steps
from tools.setup_venv.steps import StepFailed, Steps


@pytest.fixture
def steps_here(tmp_path: Path) -> Iterator[Steps]:
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Steps(cwd=tmp_path, log=tmp_path / "log", lock=lock.fileno())


def python(code: str) -> list[str]:
    return [sys.executable, "-u", "-c", code]


def test_failure_carries_its_own_last_lines(steps_here: Steps) -> None:
    steps_here.log.write_text("of an earlier step\n")
    code = "import sys; print('x' * 200); print('to stderr', file=sys.stderr); sys.exit(3)"
    with pytest.raises(StepFailed) as caught:
        steps_here.run("a step", python(code))
    assert caught.value.code == 3
    assert caught.value.lines == ("x" * 100, "to stderr")


def test_sign_of_life(
    steps_here: Steps, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_SIGN_OF_LIFE_SECONDS", 0.3)
    code = "import time; print('Collecting torch'); print('WARNING: x'); time.sleep(0.7)"
    steps_here.run("a step", python(code))
    assert "s  Collecting torch\n" in capsys.readouterr().out


def test_interrupted_step_is_killed_with_its_children(
    steps_here: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(text: str) -> None:
        if "sleeping" in text:
            raise KeyboardInterrupt

    monkeypatch.setattr(steps, "_SIGN_OF_LIFE_SECONDS", 0.1)
    monkeypatch.setattr(steps, "say", interrupt)
    pipe = steps_here.cwd / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(KeyboardInterrupt):
        steps_here.run(
            "a step", ["bash", "-c", f"exec 9<>{pipe}; sleep 60 & echo Building, sleeping; wait"]
        )
    deadline = time.monotonic() + 5
    while has_reader(pipe):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def has_reader(pipe: Path) -> bool:
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        assert error.errno == errno.ENXIO
        return False
    return True


def test_command_inherits_the_lock(steps_here: Steps) -> None:
    steps_here.run("a step", python(f"import os; os.fstat({steps_here.lock})"))


def test_activity_of_nothing_known() -> None:
    assert steps.activity(["WARNING: x"]) == ""


def test_environment_keeps_pip_s_configuration_and_drops_what_misleads() -> None:
    kept = steps.environment({"PIP_FIND_LINKS": "w", "PIP_TARGET": "t", "PYTHONPATH": "p"})
    assert kept["PIP_FIND_LINKS"] == "w"
    assert kept.keys().isdisjoint({"PIP_TARGET", "PYTHONPATH"})

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.setup_venv import steps


def test_failure_carries_its_own_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("of an earlier step\n")
    code = "import sys; print('x' * 200); print('to stderr', file=sys.stderr); sys.exit(3)"
    with pytest.raises(steps.StepFailed) as caught:
        steps.run("a step", [sys.executable, "-u", "-c", code], log, tmp_path)
    assert caught.value.code == 3
    assert caught.value.lines == ("x" * 100, "to stderr")


def test_sign_of_life(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_SIGN_OF_LIFE_SECONDS", 0.3)
    code = "import time; print('Collecting torch'); print('WARNING: x'); time.sleep(0.7)"
    steps.run("a step", [sys.executable, "-u", "-c", code], tmp_path / "log", tmp_path)
    assert "s  Collecting torch\n" in capsys.readouterr().out


def test_activity_of_nothing_known() -> None:
    assert steps.activity(["WARNING: x"]) == ""


def test_environment_keeps_pip_s_configuration_and_drops_what_misleads() -> None:
    kept = steps.environment({"PIP_FIND_LINKS": "w", "PIP_TARGET": "t", "PYTHONPATH": "p"})
    assert kept["PIP_FIND_LINKS"] == "w"
    assert kept.keys().isdisjoint({"PIP_TARGET", "PYTHONPATH"})

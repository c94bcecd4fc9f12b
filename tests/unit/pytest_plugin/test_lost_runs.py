"""The next pytest run tells what became of a lost one, once, and only where a case runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from e2e.process.guardian import runs

pytest_plugins = ["pytester"]

_TEST = """
import pytest

@pytest.mark.afd_case("canary-cpu/baseline-eager")
def test_case(evidence): ...
"""


def run(pytester: pytest.Pytester) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "--profile", "canary-cpu")


def test_it_is_told_once(
    pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(runs.HOST_VARIABLE, str(tmp_path / "host"))
    path = Path(runs.run_file(str(tmp_path / "host"), "run-1"))
    path.parent.mkdir(parents=True)
    ended = {"what": "its guardian stopped what it had launched"}
    path.write_text(json.dumps({"run": "run-1", "folder": "/e", "ended": ended}))
    pytester.makepyfile(_TEST)
    monkeypatch.delenv("AFD_E2E_BACKEND", raising=False)
    run(pytester).stdout.no_fnmatch_line("*lost before*")
    monkeypatch.setenv("AFD_E2E_BACKEND", "cpu")
    told = "afd-e2e: lost before: run run-1, evidence /e: its guardian stopped*"
    run(pytester).stdout.fnmatch_lines([told])
    run(pytester).stdout.no_fnmatch_line("*lost before*")

"""The server's executable and interpreter, without starting either vLLM or a GPU."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from e2e.doctor import server
from e2e.plan import CasePlan
from tests.stubs.plans import case_plan, role_plan

GOOD = {"python": "3.11.7", "vllm": "0.32.0+cpu", "torch": "2.13.0+cpu", "transformers": "5.19.0"}


def executable(folder: Path, versions: dict[str, str], plugins: object = (), modules=()) -> str:
    """A `vllm` script whose interpreter answers like that of a real server."""
    answer = json.dumps([versions, dict(plugins), list(modules)])  # pyright: ignore
    python = folder / "python3"
    python.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\n")
    script = folder / "vllm"
    script.write_text(f"#!{python}\n")
    for file in (python, script):
        file.chmod(0o755)
    return str(script)


def plan(argv0: str, plugins: str = "") -> CasePlan:
    return case_plan(role_plan(argv=(argv0, "serve"), env_set={"VLLM_PLUGINS": plugins}))


def results(plan: CasePlan, **variables: str) -> dict[str, tuple[bool, str]]:
    return {r.name: (r.held, r.seen) for r in server.checks(plan, {**os.environ, **variables})}


def test_an_executable_whose_interpreter_has_vllm(tmp_path):
    held, seen = results(plan(executable(tmp_path, GOOD)))["native server"]
    assert held
    assert "vllm 0.32.0+cpu" in seen


def test_no_executable():
    held, seen = results(plan("/nowhere/vllm"))["native server"]
    assert not held
    assert "/nowhere/vllm" in seen


def test_an_interpreter_without_vllm(tmp_path):
    held, seen = results(plan(executable(tmp_path, {"python": "3.11"})))["native server"]
    assert not held
    assert seen.endswith("python3 has no vllm")


def test_an_interpreter_that_does_not_run(tmp_path):
    script = executable(tmp_path, GOOD)
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 3\n")
    held, seen = results(plan(script))["native server"]
    assert not held
    assert "did not answer" in seen


def test_a_launcher_shows_its_interpreter_only_once_it_runs(tmp_path):
    script = tmp_path / "vllm"
    script.write_text("#!/bin/sh\nexec python3 -m vllm\n")
    script.chmod(0o755)
    held, seen = results(plan(str(script)))["native server"]
    assert held
    assert "launcher" in seen


def test_a_cpu_build_for_a_profile_of_gpus(tmp_path):
    on_gpus = replace(plan(executable(tmp_path, GOOD)), backend="gpu")
    held, seen = results(on_gpus)["native server"]
    assert not held
    assert seen.startswith("a CPU build")
    executable(tmp_path, {**GOOD, "torch": "2.13.0+cu130"})
    held, _ = results(on_gpus)["native server"]
    assert held


def test_torchvision_from_pypi_beside_a_cpu_build_of_torch(tmp_path):
    found = results(plan(executable(tmp_path, {**GOOD, "torchvision": "0.28.0"})))
    held, seen = found["native torchvision"]
    assert not held
    assert "importing it fails" in seen
    fine = results(plan(executable(tmp_path, {**GOOD, "torchvision": "0.28.0+cpu"})))
    assert "native torchvision" not in fine


class TestPlugin:
    def check(self, folder: Path, plugins: object, modules: object = ()) -> tuple[bool, str]:
        script = executable(folder, GOOD, plugins, modules)
        return results(plan(script, "afd"))["native plugin afd"]

    def test_an_entry_point_that_is_installed(self, tmp_path):
        points = {"afd": ["afd_plugin:register_afd", "vllm-afd-plugin 0.1"]}
        held, seen = self.check(tmp_path, points, ["afd_plugin"])
        assert held
        assert seen == "afd = afd_plugin:register_afd (vllm-afd-plugin 0.1)"

    def test_a_plugin_on_the_path_alone(self, tmp_path):
        points = {"lora": ["vllm.lora:register", "vllm 0.26"]}
        held, seen = self.check(tmp_path, points, ["vllm"])
        assert not held
        assert "no entry point 'afd'" in seen
        assert "(there: lora)" in seen

    def test_an_entry_point_without_its_module(self, tmp_path):
        held, seen = self.check(tmp_path, {"afd": ["afd_plugin:register_afd", "p 0"]})
        assert not held
        assert "cannot be imported" in seen

    def test_every_plugin_asked_for(self, tmp_path):
        script = executable(tmp_path, GOOD)
        missing = {name for name, (held, _) in results(plan(script, "a,b")).items() if not held}
        assert missing == {"native plugin a", "native plugin b"}

    def test_a_case_without_plugins(self, tmp_path):
        assert results(plan(executable(tmp_path, GOOD))).keys() == {"native server"}


def test_the_real_interpreter_of_these_tests_is_asked_in_under_a_second(tmp_path):
    script = tmp_path / "vllm"
    script.write_text(f"#!{sys.executable}\n")
    script.chmod(0o755)
    held, seen = results(plan(str(script)))["native server"]
    assert held == ("has no vllm" not in seen)
    assert sys.executable in seen


@pytest.mark.parametrize(("path", "found"), [("/srv/plugin", True), ("", False)])
def test_the_search_path_of_the_role_counts(tmp_path, path, found):
    script = executable(tmp_path, GOOD)
    answer = json.dumps([GOOD, {}, []])
    (tmp_path / "python3").write_text(
        f"#!/bin/sh\ntest \"$PYTHONPATH\" = /srv/plugin && echo '{answer}'\n"
    )
    assert results(plan(script), PYTHONPATH=path)["native server"][0] is found

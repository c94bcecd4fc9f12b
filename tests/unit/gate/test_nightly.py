"""The lab's nightly job is in step with the profiles."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e import gate, profile

_FILE = Path(__file__).parents[3] / ".buildkite" / "nightly.yml"
_STEPS: list[dict[str, Any]] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))["steps"]
_BY_KEY = {step["key"]: step for step in _STEPS}
_GPU = [n for n in profile.names() if profile.load(profile.find(n)).hardware.backend == "gpu"]


def _variables(step: dict[str, Any]) -> dict[str, str]:
    exported = re.findall(r"^export (\w+)=\"(.+)\"$", "\n".join(step["commands"]), re.MULTILINE)
    return {**step["env"], **dict(exported)}


def test_there_is_a_step_for_every_gpu_profile_and_no_other() -> None:
    assert len(_BY_KEY) == len(_STEPS)
    assert set(_BY_KEY) == {*_GPU, *(f"doctor-{name}" for name in _GPU)}


@pytest.mark.parametrize("name", _GPU)
def test_step_runs_exactly_the_cases_of_its_profile(name: str) -> None:
    chosen, command = profile.load(profile.find(name)), _BY_KEY[name]["commands"][-1]
    ids = re.findall(r'"tests/e2e/test_cases\.py::test_case\[([^]"]+)\]"', command)
    assert ids == [f"{name}/{case}" for case in chosen.cases]
    assert command.count("::") == len(ids)
    assert f"--junitxml=runs/{name}.xml" in command
    assert _BY_KEY[name]["artifact_paths"] == "runs/**/*"


@pytest.mark.parametrize("name", _GPU)
def test_step_opts_into_its_profile_alone(name: str) -> None:
    variables = _variables(_BY_KEY[name])
    opted_in = [
        n for n in _GPU if not gate.missing_opt_in(profile.load(profile.find(n)), variables)
    ]
    chosen = profile.load(profile.find(name))
    # The suites of small models share their variables; node ids choose among them.
    same = [n for n in _GPU if profile.load(profile.find(n)).gate == chosen.gate]
    assert opted_in == same
    gate.require(chosen, variables)


@pytest.mark.parametrize("name", _GPU)
def test_step_is_on_its_hardware_and_alone_on_the_host(name: str) -> None:
    count = profile.load(profile.find(name)).hardware.devices
    for step in (_BY_KEY[name], _BY_KEY[f"doctor-{name}"]):
        assert step["agents"] == {"queue": f"gpu-{count}"}
        assert step["concurrency_group"] == f"afd-e2e/host-gpu-{count}"
        assert step["concurrency"] == 1
        assert step["timeout_in_minutes"] > 0


@pytest.mark.parametrize("name", _GPU)
def test_doctor_comes_first_with_the_same_variables(name: str) -> None:
    doctor = _BY_KEY[f"doctor-{name}"]
    assert f"doctor-{name}" in _BY_KEY[name]["depends_on"]
    assert doctor["commands"][-1] == f".venv/bin/afd-e2e doctor {name}"
    assert _variables(doctor) == _variables(_BY_KEY[name])


@pytest.mark.parametrize("name", [name for name in _GPU if not name.startswith("canary-")])
def test_a_canary_of_the_same_hardware_comes_before_a_real_checkpoint(name: str) -> None:
    count = profile.load(profile.find(name)).hardware.devices
    assert f"canary-{count}gpu" in _BY_KEY[name]["depends_on"]


def test_steps_say_nothing_that_buildkite_would_not_know() -> None:
    both = {
        "agents",
        "commands",
        "concurrency",
        "concurrency_group",
        "env",
        "key",
        "label",
        "retry",
    }
    for step in _STEPS:
        assert both | {"timeout_in_minutes"} <= set(step)
        assert set(step) <= both | {"timeout_in_minutes", "depends_on", "artifact_paths"}
        assert set(step.get("depends_on", [])) <= set(_BY_KEY) - {step["key"]}


def test_node_ids_are_those_that_pytest_collects() -> None:
    ids = [id_ for step in _STEPS for id_ in re.findall(r'"(tests/[^"]+)"', str(step["commands"]))]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *ids],
        cwd=_FILE.parents[1],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert [line for line in done.stdout.splitlines() if "::" in line] == ids


def test_only_a_lost_agent_is_retried() -> None:
    for step in _STEPS:
        assert step["retry"]["automatic"] == [{"exit_status": -1, "limit": 1}]
        assert step["retry"]["manual"]["allowed"] is False


@pytest.mark.parametrize("models", [None, "/models"])
def test_where_the_checkpoints_are_is_asked_for_by_name(models: str | None) -> None:
    """As an agent runs them: `$$` is what an upload leaves as `$`, and the first failure ends."""
    exports = {line for step in _STEPS for line in step["commands"] if line.startswith("export ")}
    assert len(exports) == len([name for name in _GPU if not name.startswith("canary-")])
    for line in exports:
        command = line.replace("$$", "$") + "; env"
        variables = {} if models is None else {"AFD_LAB_MODELS": models}
        done = subprocess.run(
            ["/bin/bash", "-e", "-c", command], env=variables, capture_output=True
        )
        if models is None:
            assert done.returncode != 0
            assert b"AFD_LAB_MODELS: is not set" in done.stderr
        else:
            assert b"_MODEL=/models/" in done.stdout

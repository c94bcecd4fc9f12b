"""The profiles that come with the project."""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from e2e import plan_text, profile
from e2e.errors import ProfileError
from e2e.plan import plan_case
from e2e.profile.shipped import shipped_folder

_NAMES = profile.names()
_LOADED = 1.0
"""What a machine that does other work at once may need more, in seconds."""


def test_all_are_there() -> None:
    assert _NAMES == [
        "canary-1gpu",
        "canary-2gpu",
        "canary-2gpu-qwen3_5",
        "canary-4gpu",
        "canary-8gpu",
        "canary-cpu",
        "canary-cpu-8way",
        "deepseek-v2-lite-4gpu",
        "qwen3-30b-4gpu",
        "qwen3_5-122b-8gpu",
        "qwen3_5-122b-fp8-4gpu",
        "qwen3_6-35b-4gpu",
    ]


@pytest.mark.parametrize("name", _NAMES)
def test_is_right_and_named_after_its_file(name: str) -> None:
    assert profile.load(profile.find(name)).profile == name


@pytest.mark.parametrize("name", _NAMES)
def test_names_the_schema_for_editors(name: str) -> None:
    first, _, _ = profile.find(name).read_text(encoding="utf-8").partition("\n")
    assert first == "# yaml-language-server: $schema=schema.json"


def test_schema_file_is_in_step() -> None:
    """`afd-e2e schema > profiles/schema.json` brings it there."""
    kept = (shipped_folder() / "schema.json").read_text(encoding="utf-8")
    assert kept == json.dumps(profile.schema(), indent=2) + "\n"


@pytest.mark.parametrize("name", _NAMES)
def test_schema_accepts_it(name: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    from e2e.profile.tree import read_file

    tree, _ = read_file(profile.find(name))
    jsonschema.Draft202012Validator(profile.schema()).validate(tree.plain())


def test_schema_refuses_what_is_wrong() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(profile.schema())
    whole = {"profile": "mine", "description": "Mine.", "gate": {"opt_in": {"A": "b"}}}
    assert not validator.is_valid(whole)
    assert validator.is_valid({**whole, "extends": "canary-cpu", "afd": None})
    assert not validator.is_valid({**whole, "extends": "canary-cpu", "afdd": None})
    assert not validator.is_valid({**whole, "extends": "canary-cpu", "hardware": {"devices": "x"}})
    assert not validator.is_valid({**whole, "extends": "canary-cpu", "cases": {"A_b": None}})


def test_canary_8gpu_has_the_layouts_of_the_big_checkpoint() -> None:
    canary = profile.load(profile.find("canary-8gpu"))
    large = profile.load(profile.find("qwen3_5-122b-8gpu"))
    for case_id, case in large.cases.items():
        for role in ("native", "attention", "ffn"):
            assert getattr(canary.cases[case_id], role) == getattr(case, role)
    assert large.performance is not None
    assert canary.cases["baseline-dp8"].native == large.performance.native


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("canary-cpuu", "there is no profile 'canary-cpuu'; did you mean 'canary-cpu'?"),
        ("qwen3_5-122b", "did you mean 'qwen3_5-122b-8gpu'?"),
        ("", "there is no profile ''"),
    ],
)
def test_unknown_name(name: str, what: str) -> None:
    with pytest.raises(ProfileError) as caught:
        profile.find(name)
    assert what in caught.value.what
    assert "canary-cpu" in caught.value.mend


def test_all_are_loaded_and_planned_in_no_time() -> None:
    begin = time.process_time()
    for name in _NAMES:
        chosen = profile.load(profile.find(name))
        for case in chosen.cases:
            plan_text.as_json(plan_case(chosen, case, {}, None))
    assert time.process_time() - begin < 0.5


_HEAVY = ["aiohttp", "anyio", "datasets", "hypothesis", "jinja2", "matplotlib", "numpy", "pynvml"]
_HEAVY += ["rich", "torch", "vllm"]
_TELL_HEAVY = f"print(sorted(set({_HEAVY}) & set(sys.modules)))"
_PLAN = "import sys; from e2e import gate, plan_text, profile; "
_COLLECT = "import sys, pytest; pytest.main(['--collect-only', '-q', 'tests/e2e']); "


@pytest.mark.parametrize("program", [_PLAN, _COLLECT], ids=["plan", "collect"])
def test_nothing_heavy_is_imported(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program + _TELL_HEAVY],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "program",
    [
        "import pytest; pytest.main(['--collect-only', '-q', 'tests/e2e/test_cases.py'])",
        "from e2e import cli; cli.main(['plan'])",
    ],
    ids=["collect", "plan"],
)
def test_all_profiles_take_less_than_a_second(program: str, tmp_path: Path) -> None:
    """Of processor time, with bytecode in its place: the first of three fills it in."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=Path(__file__).parents[3],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    for name in _NAMES:
        assert f"{name}/" in done.stdout
    assert min(seconds) < 1 + _LOADED

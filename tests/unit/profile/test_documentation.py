"""docs/profiles.md shows what is true."""

import re
from pathlib import Path

import pytest

from e2e import profile
from e2e.plan import plan_case
from e2e.profile.problems import InvalidProfile

_TEXT = (Path(__file__).parents[3] / "docs" / "profiles.md").read_text(encoding="utf-8")
_PROFILES = re.findall(r"```yaml\n(.*?)```", _TEXT, re.DOTALL)


def test_the_examples_are_right(write) -> None:
    whole, performance, extending, another_vllm = _PROFILES
    assert profile.load(write(whole, "my-4gpu")).profile == "my-4gpu"
    small = profile.load(write(extending, "my-4gpu-small"))
    assert list(small.cases) == ["baseline-eager"]
    assert small.model.weights_gib is None
    measured = profile.load(write(whole + performance, "my-4gpu")).performance
    assert measured is not None
    assert measured.load.runs == 5
    assert profile.load(write(another_vllm, "another")).extends == "qwen3-30b-4gpu"


def test_the_flags_for_another_vllm_are_the_suites(write) -> None:
    chosen = profile.load(write(_PROFILES[-1], "another"))
    case = plan_case(chosen, "afd-graph-dbo-2a1f", {}, None)
    for role in case.roles:
        words = "--dbo-decode-token-threshold 2 --dbo-prefill-token-threshold 8"
        assert words in " ".join(role.argv)


def test_the_shown_problems_are_the_real_ones(write) -> None:
    text = _PROFILES[0]
    for right, wrong in (
        ("memory_gib: 70", "memory_gb: 70"),
        ("max-model-len: 4096", "port: 4096"),
        ("devices: [0, 1, 2, 3]", "devices: [0, 1, 2, 4]"),
    ):
        text = text.replace(right, wrong)
    file = write(text, "my-4gpu")
    with pytest.raises(InvalidProfile) as caught:
        profile.load(file)
    assert caught.value.what.replace(f"{file.parent}/", "") in _TEXT
    assert str(caught.value).startswith("3 problems\n")


def test_every_variable_is_explained() -> None:
    from e2e.plan import settings

    for name in (settings.DEVICES, settings.PORT_BASE, settings.LIMIT, settings.THRESHOLD):
        assert f"`{name}`" in _TEXT

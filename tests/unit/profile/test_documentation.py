"""docs/profiles.md shows what is true."""

import re
from pathlib import Path

import pytest

from e2e import profile
from e2e.profile.problems import InvalidProfile

_TEXT = (Path(__file__).parents[3] / "docs" / "profiles.md").read_text(encoding="utf-8")
_PROFILES = re.findall(r"```yaml\n(.*?)```", _TEXT, re.DOTALL)


def test_the_examples_are_right(write) -> None:
    whole, extending = _PROFILES
    assert profile.load(write(whole, "my-4gpu")).profile == "my-4gpu"
    small = profile.load(write(extending, "my-4gpu-small"))
    assert list(small.cases) == ["baseline-eager"]
    assert small.model.weights_gib is None


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

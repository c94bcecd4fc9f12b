from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from tools.setup_venv.errors import SetupError
from tools.setup_venv.interpreter import NAMES, OLDEST, TOO_NEW, Interpreter, choose, probe

ROOT = Path(__file__).parents[3]


def machine(**found: Interpreter | str):
    """A machine with these interpreters and no other; dots in names are written as _."""
    return lambda name: found.get(name.replace(".", "_"), "not there")


def test_first_that_fits_is_chosen() -> None:
    old, fits = Interpreter("/a", (3, 9, 2)), Interpreter("/b", (3, 12, 1))
    assert choose(None, machine(python3=old, python3_12=fits)) == fits


def test_unusable_ones_are_passed_over() -> None:
    fits = Interpreter("/b", (3, 13, 0))
    ask = machine(python3_11="No module named ensurepip", python3=fits)
    assert choose(None, ask) == fits


def test_wanted_one_is_not_replaced_by_another() -> None:
    ask = machine(python3_8=Interpreter("/a", (3, 8, 1)), python3_11=Interpreter("/b", (3, 11, 7)))
    with pytest.raises(SetupError) as caught:
        choose("python3.8", ask)
    assert caught.value.lines == ("python3.8: is Python 3.8.1",)


@pytest.mark.parametrize("version", [(3, 10, 14), (3, 14, 0)])
def test_outside_the_range_does_not_fit(version: tuple[int, int, int]) -> None:
    assert not Interpreter("/a", version).fits


def test_none_says_what_each_was_and_what_to_do() -> None:
    with pytest.raises(SetupError) as caught:
        choose(None, machine(python3=Interpreter("/a", (3, 9, 2)), python3_11="broken"))
    assert caught.value.lines == (
        "python3.11: broken",
        "python3.12: not there",
        "python3.13: not there",
        "python3: is Python 3.9.2",
    )
    assert "PYTHON=" in str(caught.value)


def test_probe_of_a_real_interpreter() -> None:
    found = probe(sys.executable)
    assert isinstance(found, Interpreter)
    assert found.version == sys.version_info[:3]


def test_probe_of_what_is_no_python(tmp_path: Path) -> None:
    broken = tmp_path / "python3"
    broken.write_text("#!/bin/sh\necho no such version >&2\nexit 3\n")
    broken.chmod(0o755)
    assert probe(str(broken)) == "no such version"
    assert probe(str(tmp_path / "none")) == "not there"


def test_range_is_the_one_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    low, high = (".".join(map(str, version)) for version in (OLDEST, TOO_NEW))
    assert project["requires-python"] == f">={low},<{high}"
    offered = [f"python3.{minor}" for minor in range(OLDEST[1], TOO_NEW[1])]
    assert (*offered, "python3") == NAMES

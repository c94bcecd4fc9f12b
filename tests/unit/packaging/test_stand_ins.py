from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PathDistribution
from importlib.util import find_spec
from pathlib import Path

import pytest

from tools.setup_venv import stand_ins
from tools.setup_venv.settings import StandIn


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip installed one stand-in."""
    folder = tmp_path_factory.mktemp("stand-in")
    wheel = stand_ins.write(StandIn("torch-codec", "0.14+left.out"), folder)
    target = folder / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", str(target), str(wheel)], check=True)
    return target


def test_pip_installs_metadata_alone(installed: Path) -> None:
    assert [entry.name for entry in installed.iterdir()] == ["torch_codec-0.14+left.out.dist-info"]


def test_what_pip_records(installed: Path) -> None:
    found = PathDistribution(installed / StandIn("torch-codec", "0.14+left.out").dist_info)
    assert found.metadata["Name"] == "torch-codec"
    assert found.version == "0.14+left.out"
    assert not found.requires
    assert not found.read_text("top_level.txt")


def test_nothing_to_import(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(installed))
    assert find_spec("torch_codec") is None

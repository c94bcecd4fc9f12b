"""Which interpreter a server executable runs in is read from the executable itself."""

import sys
from pathlib import Path

import pytest

from e2e.errors import SetupMissing
from e2e.systems.executable import interpreter, resolve


def script(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "vllm"
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    "text",
    [
        f"#!{sys.executable}\nimport sys\n",
        f"#!/bin/sh\n'''exec' {sys.executable} \"$0\" \"$@\"\n' '''\n",
        f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" \"$@\"\n' '''\n",
    ],
)
def test_console_scripts_name_their_interpreter(tmp_path: Path, text: str) -> None:
    assert interpreter(script(tmp_path, text)) == Path(sys.executable)


def test_env_is_looked_up_on_path(tmp_path: Path) -> None:
    found = interpreter(script(tmp_path, "#!/usr/bin/env python3\n"))
    assert found is not None
    assert found.name == "python3"


@pytest.mark.parametrize("text", ["#!/bin/bash\nexec vllm\n", "\x7fELF", "", "#!\n"])
def test_other_programs_have_none(tmp_path: Path, text: str) -> None:
    assert interpreter(script(tmp_path, text)) is None


def test_a_path_is_taken_as_it_stands(tmp_path: Path) -> None:
    path = script(tmp_path, "#!/bin/sh\n")
    assert resolve(str(path)) == path


def test_a_missing_executable_names_the_variable(tmp_path: Path) -> None:
    with pytest.raises(SetupMissing, match="no-such-vllm") as caught:
        resolve(str(tmp_path / "no-such-vllm"))
    assert "AFD_GPU_E2E_VLLM_BIN" in caught.value.mend


def test_an_executable_without_permission_is_missing(tmp_path: Path) -> None:
    path = script(tmp_path, "#!/bin/sh\n")
    path.chmod(0o644)
    with pytest.raises(SetupMissing):
        resolve(str(path))

"""The README's first real run: its variables opt in, and its commands are commands."""

import re
import shlex
from pathlib import Path

import pytest

from e2e import cli, gate, profile

_README = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
_CONSOLES = re.findall(r"```console\n(.*?)```", _README, re.DOTALL)
_COMMANDS = [
    shlex.split(line.removeprefix("$ "), comments=True)
    for block in _CONSOLES
    for line in block.splitlines()
]
_REFERENCE = "qwen3_5-122b-8gpu"


def _exported() -> dict[str, str]:
    words = [word for command in _COMMANDS if command[0] == "export" for word in command[1:]]
    return dict(word.split("=", 1) for word in words)


def test_what_is_exported_opts_into_the_reference_case_alone() -> None:
    loaded = [profile.load(profile.find(name)) for name in profile.names()]
    opted = [one.profile for one in loaded if not gate.missing_opt_in(one, _exported())]
    assert opted == [_REFERENCE]
    gate.require(profile.load(profile.find(_REFERENCE)), _exported())
    gate.require(
        profile.load(profile.find("canary-8gpu")), {**_exported(), "AFD_E2E_CANARY": "8gpu"}
    )


@pytest.mark.parametrize(
    "arguments", [command[1:] for command in _COMMANDS if command[0].endswith("/afd-e2e")]
)
def test_commands_are_those_of_the_command_line(arguments: list[str]) -> None:
    parsed = cli._parser().parse_args(arguments)
    assert parsed.profile in profile.names()


def test_node_ids_are_those_of_a_case() -> None:
    ids = re.findall(r"test_cases\.py::test_case\[(.+)/(.+)\]", _README)
    assert [name for name, _ in ids] == ["canary-cpu", _REFERENCE]
    for name, case in ids:
        assert case in profile.load(profile.find(name)).cases

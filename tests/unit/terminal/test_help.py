"""`--help` of every command: it says what it does, what each argument is, and shows it."""

from __future__ import annotations

import shlex

import pytest

from e2e import cli

_COMMANDS = [
    *("plan", "doctor", "run", "schema", "prompts", "score", "compare", "reap"),
    *("canary build", "canary audit"),
]


@pytest.mark.parametrize("command", _COMMANDS)
def test_examples_are_commands(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main([*command.split(), "--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    examples = [line for line in text.partition("examples:\n")[2].splitlines() if line]
    assert examples
    for example in examples:
        words = shlex.split(example.partition(">")[0])
        assert words[: 1 + len(command.split())] == ["afd-e2e", *command.split()]
        assert cli._parser().parse_args(words[1:]).command


def test_every_command_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    text = capsys.readouterr().out
    for command in _COMMANDS:
        assert f"\n    {command.split()[0]} " in text

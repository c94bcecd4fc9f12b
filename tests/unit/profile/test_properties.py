"""Whatever is wrong with a profile, it is refused in words, at a place in the file."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from e2e import profile
from e2e.profile.problems import InvalidProfile, KeyPath, Problem
from e2e.profile.tree import Node, read_file

_FEW = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
# Mappings whose keys are the user's own.
_FREE = {"args", "set", "opt_in", "config", "cases", "exit_codes", "connector_extra"}


def _problems(text: str | bytes) -> list[Problem]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "my-profile.yaml"
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        try:
            profile.load(file)
        except InvalidProfile as error:
            assert error.problems
            return error.problems
    return []


def _is_in(problem: Problem, text: str) -> bool:
    lines = text.splitlines() or [""]
    return 1 <= problem.at.line <= len(lines) + 1 and problem.at.column >= 1


@_FEW
@given(st.binary(max_size=200))
def test_bytes(data: bytes) -> None:
    assert _problems(data)


@_FEW
@given(st.text(st.sampled_from("ab:-[]{}#&*!|>'\"%@\n \t,?0"), max_size=60))
def test_what_looks_like_yaml(text: str) -> None:
    assert all(_is_in(problem, text) for problem in _problems(text))


@_FEW
@given(data=st.data())
def test_lines_dropped_doubled_moved_and_cut(right: str, data: st.DataObject) -> None:
    lines = right.splitlines()
    for _ in range(data.draw(st.integers(1, 4))):
        number = data.draw(st.integers(0, len(lines) - 1))
        match data.draw(st.sampled_from(["drop", "double", "indent", "outdent", "cut"])):
            case "drop":
                del lines[number]
            case "double":
                lines.insert(number, lines[number])
            case "indent":
                lines[number] = " " + lines[number]
            case "outdent":
                lines[number] = lines[number].removeprefix(" ")
            case "cut":
                lines[number] = lines[number][: data.draw(st.integers(0, len(lines[number])))]
    text = "\n".join(lines) + "\n"
    assert all(_is_in(problem, text) for problem in _problems(text))


def _nodes(node: Node, path: KeyPath = ()) -> list[tuple[KeyPath, Node]]:
    children: list[tuple[str | int, Node]] = []
    if isinstance(node.value, dict):
        children = list(node.value.items())
    elif isinstance(node.value, list):
        children = list(enumerate(node.value))
    found = [((*path, part), child) for part, child in children]
    return found + [pair for at, child in found for pair in _nodes(child, at)]


class Nodes(list[tuple[KeyPath, Node]]):
    def __repr__(self) -> str:
        return f"{len(self)} nodes of the right profile"


@pytest.fixture
def nodes(write, right: str) -> Nodes:
    tree, _ = read_file(write(right))
    return Nodes(_nodes(tree))


@_FEW
@given(data=st.data())
def test_a_letter_dropped_from_any_key(nodes, right: str, data: st.DataObject) -> None:
    keys = [
        (path, node)
        for path, node in nodes
        if isinstance(path[-1], str)
        and len(path[-1]) > 4
        and path[-2:-1] not in {(f,) for f in _FREE}
    ]
    path, node = data.draw(st.sampled_from(keys))
    key = str(path[-1])
    letter = data.draw(st.integers(1, len(key) - 1))
    lines = right.splitlines()
    line, column = node.key_at.line - 1, node.key_at.column - 1
    lines[line] = (
        lines[line][:column] + key[:letter] + key[letter + 1 :] + lines[line][column + len(key) :]
    )
    problems = _problems("\n".join(lines))
    here = [p for p in problems if (p.at.line, p.at.column) == (line + 1, column + 1)]
    assert [p for p in here if f"did you mean {key!r}?" in p.what], list(map(str, problems))


@_FEW
@given(data=st.data())
def test_a_mapping_where_a_value_is_wanted(nodes, right: str, data: st.DataObject) -> None:
    values = [
        node
        for path, node in nodes
        if not isinstance(node.value, (dict, list))
        and not {"args", "config", "description"} & set(path)
    ]
    node = data.draw(st.sampled_from(values))
    lines = right.splitlines()
    line, column = node.at.line - 1, node.at.column - 1
    rest = lines[line][column:]
    end = min((rest.index(mark) for mark in ",}]" if mark in rest), default=len(rest))
    lines[line] = lines[line][:column] + "{what: 1}" + rest[end:]
    problems = _problems("\n".join(lines))
    assert (line + 1, column + 1) in {(p.at.line, p.at.column) for p in problems}

"""Profiles that extend another."""

from pathlib import Path

import pytest

from e2e import profile
from e2e.profile.problems import InvalidProfile

_CHILD = """\
profile: my-child
extends: my-profile
description: The same, with another model.
gate:
  opt_in: {AFD_E2E_BACKEND: gpu, AFD_E2E_CANARY: child}
"""


@pytest.fixture
def load_child(write, right: str):
    def load_child(more: str = "", parent: str = right) -> profile.Profile:
        write(parent)
        return profile.load(write(_CHILD + more, "my-child"))

    return load_child


@pytest.fixture
def refused_child(load_child):
    """The problems of a child, each as `file:line:column: ...` without the folder."""

    def refused_child(more: str, **parent: str) -> list[str]:
        with pytest.raises(InvalidProfile) as caught:
            load_child(more, **parent)
        problems = caught.value.problems
        return [str(p).replace(f"{p.at.file.parent}/", "") for p in problems]

    return refused_child


def test_what_is_not_said_is_taken_over(load_child, write, right: str) -> None:
    child, parent = load_child(), profile.load(write(right))
    own = {"profile", "extends", "description", "gate"}
    assert child.model_dump(exclude=own) == parent.model_dump(exclude=own)


def test_mappings_are_merged_and_anything_else_replaced(load_child) -> None:
    child = load_child(
        "server: {port: 9000, args: {max-model-len: 4096, seed: 0}}\n"
        "cases:\n  baseline-eager: {native: {tp: 1, ep: 2, devices: [2, 3]}}\n"
    )
    assert child.server.name == "my-model"
    assert child.server.port == 9000
    assert child.server.args == {"max-model-len": 4096, "language-model-only": True, "seed": 0}
    native = child.cases["baseline-eager"].native
    assert native is not None
    assert (native.dp, native.tp, native.ep, native.devices) == (2, 1, 2, [2, 3])
    assert list(child.cases) == ["baseline-eager", "afd-eager-2a2f", "afd-graph-dbo-2a2f"]


def test_null_removes_what_is_inherited(load_child) -> None:
    child = load_child("cases: {afd-eager-2a2f: null}\nperformance: null\n")
    assert list(child.cases) == ["baseline-eager", "afd-graph-dbo-2a2f"]
    assert child.performance is None


def test_null_leaves_a_flag_out(load_child) -> None:
    child = load_child("server: {args: {language-model-only: null}}\n")
    assert child.server.args["language-model-only"] is None


def test_gate_and_name_are_not_inherited(write, right: str) -> None:
    write(right)
    with pytest.raises(InvalidProfile) as caught:
        profile.load(write("extends: my-profile\nserver: {port: 9000}\n", "child"))
    assert [p.path for p in caught.value.problems] == [("profile",), ("description",), ("gate",)]


def test_what_is_inherited_is_known(load_child) -> None:
    child = load_child("server: {port: 9000}\ncases: {afd-eager-2a2f: {args: {seed: 1}}}\n")
    inherited = child.inherited
    assert inherited["hardware"] == "my-profile"
    assert inherited["server.args"] == "my-profile"
    assert inherited["cases.baseline-eager"] == "my-profile"
    assert inherited["cases.afd-eager-2a2f.ffn"] == "my-profile"
    assert not {"server.port", "cases.afd-eager-2a2f.args", "gate", "profile"} & set(inherited)


def test_grandparents(write, load_child, right: str) -> None:
    load_child("server: {name: child}\n")
    text = _CHILD.replace("my-child", "my-grandchild").replace("my-profile", "my-child")
    grandchild = profile.load(write(text + "hardware: {memory_gib: 8}\n", "my-grandchild"))
    assert grandchild.inherited["server.name"] == "my-child"
    assert grandchild.inherited["server.port"] == "my-profile"
    assert grandchild.hardware.memory_gib == 8


def test_problems_point_into_the_file_that_says_the_value(refused_child, right: str) -> None:
    wrong_parent = right.replace("devices: 4", "devices: four")
    assert refused_child("server: {port: 80}\n", parent=wrong_parent) == [
        "my-child.yaml:6:16: server.port: must be at least 1024, got 80",
        "my-profile.yaml:5:12: hardware.devices: expected a whole number, got the text 'four'",
    ]


def test_a_rule_broken_between_two_files(refused_child) -> None:
    first, *_ = refused_child("hardware: {devices: 3}\nperformance: null\n")
    assert first == (
        "my-profile.yaml:43:54: cases.baseline-eager.native.devices: "
        "slot 3 is not there: hardware.devices is 3, the last is 2 (as my-child.yaml extends it)"
    )


def test_a_case_that_is_not_there_cannot_be_removed(refused_child) -> None:
    assert refused_child("cases: {afd-eager-2f2a: null}\n") == [
        "my-child.yaml:6:9: cases.afd-eager-2f2a: no such case is inherited, to be removed; "
        "did you mean 'afd-eager-2a2f'?"
    ]


def test_yaml_problems_of_both(refused_child, right: str) -> None:
    found = refused_child("server: {port: 0x50}\n", parent=right + "hardware: {}\n")
    assert [line.split(":")[0] for line in found] == ["my-child.yaml", "my-profile.yaml"]
    assert "written twice" in found[1]


@pytest.mark.parametrize(
    ("extends", "what"),
    [
        ("my-profil", "there is no profile 'my-profil'; did you mean 'my-profile'?"),
        ("canary-cpuu", "there is no profile 'canary-cpuu'; did you mean 'canary-cpu'?"),
        ("[my-profile]", "expected the name of a profile"),
        ("7", "expected the name of a profile"),
        ("my-child", "a circle: my-child -> my-child"),
    ],
)
def test_extends_nothing_that_is_there(write, right: str, extends: str, what: str) -> None:
    write(right)
    file = write(_CHILD.replace("extends: my-profile", f"extends: {extends}"), "my-child")
    with pytest.raises(InvalidProfile) as caught:
        profile.load(file)
    assert [str(p) for p in caught.value.problems] == [f"{file}:2:10: extends: {what}"]


def test_a_longer_circle(write) -> None:
    for name, parent in (("a", "b"), ("b", "c"), ("c", "a")):
        write(f"profile: {name}\nextends: {parent}\n", name)
    with pytest.raises(InvalidProfile) as caught:
        profile.load(write("profile: a\nextends: b\n", "a"))
    (problem,) = caught.value.problems
    assert problem.at.file.name == "c.yaml"
    assert problem.what == "a circle: a -> b -> c -> a"


def test_shipped_profiles_can_be_extended_from_anywhere(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "profile: mine\nextends: canary-cpu\ndescription: Mine.\n"
        "gate: {opt_in: {AFD_E2E_BACKEND: cpu, MINE: 'yes'}}\nserver: {port: 9000}\n"
    )
    assert profile.load(file).server.args["max-model-len"] == 2048

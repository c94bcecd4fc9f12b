"""What a profile's file may not be, as a file and as YAML."""

import os
from pathlib import Path

import pytest

from e2e import profile
from e2e.errors import Outcome, ProfileError
from e2e.profile.scalars import Ambiguous, read

_TEXTS = [
    pytest.param("", 1, 1, "the file is empty", id="empty"),
    pytest.param("# nothing\n", 1, 1, "the file is empty", id="comment-only"),
    pytest.param("---\n", 1, 1, "the file is empty", id="empty-document"),
    pytest.param("- a\n", 1, 1, "a mapping of keys", id="list"),
    pytest.param("just text\n", 1, 1, "a mapping of keys", id="text"),
    pytest.param("a: 1\n\tb: 2\n", 2, 1, "a tab; indent with spaces", id="tab"),
    pytest.param("a:\n  b: x: y\n", 2, 7, "put the text in quotes", id="second-colon"),
    pytest.param('a: "x\n', 2, 1, "not YAML", id="open-quote"),
    pytest.param("a: [1, 2\nb: 3\n", 2, 2, "not YAML", id="open-list"),
    pytest.param("a: @x\n", 1, 4, "not YAML", id="reserved-character"),
    pytest.param("a: 1\n---\nb: 2\n", 3, 1, "a second document", id="two-documents"),
    pytest.param(b"a: 1\nb: \xff\n", 2, 4, "byte 0xff is not UTF-8", id="latin-1"),
    pytest.param("a: 1\n".encode("utf-16"), 1, 1, "is not UTF-8", id="utf-16"),
    pytest.param("a: 1\nb: \x00\n", 2, 4, "U+0000 is not allowed", id="nul"),
    pytest.param("a: &x [1]\n", 1, 4, "the anchor &x", id="anchor"),
    pytest.param("b: 1\na: *x\n", 2, 4, "the alias *x", id="alias"),
    pytest.param("<<: {a: 1}\n", 1, 1, "a merge key", id="merge-key"),
    pytest.param("a: !!python/object:os.system x\n", 1, 4, "the tag", id="python-tag"),
    pytest.param("a: !!str 1\n", 1, 4, "the tag !!str", id="string-tag"),
    pytest.param("a: 1\na: 2\n", 2, 1, "written twice; the first is in line 1", id="duplicate"),
    pytest.param("a: {b: 1, b: 2}\n", 1, 11, "written twice", id="duplicate-in-flow"),
    pytest.param("? [a, b]\n: 1\n", 1, 3, "a key is one word", id="list-as-key"),
    pytest.param("1: x\n", 1, 1, "the key '1' is not text", id="number-as-key"),
    pytest.param("off: x\n", 1, 1, "YAML 1.1 reads off as false", id="switch-as-key"),
    pytest.param("a: " + "[" * 500, 1, 20, "more than 16 levels deep", id="deep"),
    pytest.param("a: " + "{b: " * 500, 1, 68, "more than 16 levels deep", id="deep-mappings"),
]


@pytest.mark.parametrize(("text", "line", "column", "what"), _TEXTS)
def test_not_a_profile(refused, text: str | bytes, line: int, column: int, what: str) -> None:
    found = [(at.line, at.column) for at in (p.at for p in refused(text)) if at]
    assert (line, column) in found
    assert any(what in p.what for p in refused(text) if (p.at.line, p.at.column) == (line, column))


_AMBIGUOUS = ["off", "No", "YES", "on", "y", "n", "010", "1_000", "0x1F", "0b1", "0o7", "1:30"]
_AMBIGUOUS += [".inf", "-.Inf", ".nan", "True", "NULL", "9" * 40]


@pytest.mark.parametrize("text", _AMBIGUOUS)
def test_scalars_that_readers_of_yaml_disagree_about(text: str) -> None:
    with pytest.raises(Ambiguous):
        read(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("null", None),
        ("~", None),
        ("", None),
        ("-7", -7),
        ("0", 0),
        ("0.27", 0.27),
        ("1e3", 1000.0),
        ("0,2,4,6", "0,2,4,6"),
        ("2026-01-31", "2026-01-31"),
        ("1.2.3", "1.2.3"),
        ("nobind", "nobind"),
    ],
)
def test_scalars_that_they_agree_about(text: str, value: object) -> None:
    assert read(text) == value
    assert type(read(text)) is type(value)


def test_a_value_that_was_refused_is_not_reported_twice(refused, right: str) -> None:
    (problem,) = refused(right.replace("language-model-only: true", "language-model-only: on"))
    assert "write true, or 'on' in quotes" in problem.what


def test_alias_bomb_is_not_expanded(refused) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert len(refused("\n".join(lines))) > 100


def test_byte_order_mark_is_no_matter(write, right: str) -> None:
    assert profile.load(write(b"\xef\xbb\xbf" + right.encode())).profile == "my-profile"


def _message(file: Path) -> str:
    with pytest.raises(ProfileError) as caught:
        profile.load(file)
    assert caught.value.outcome is Outcome.PROFILE_INVALID
    return caught.value.what


def test_missing_file_names_the_nearest(write, right: str) -> None:
    file = write(right)
    near = file.with_name("my-profil.yaml")
    assert _message(near) == (f"{near}:1:1: there is no such file; did you mean 'my-profile.yaml'?")


def test_folder(tmp_path: Path) -> None:
    assert "is a folder" in _message(tmp_path)


def test_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    assert "is not a regular file" in _message(tmp_path / "pipe.yaml")


def test_huge_file_is_not_read(write) -> None:
    assert "is larger than 256 KiB" in _message(write("a: 1\n" * 100_000))


def test_link_to_nowhere(tmp_path: Path) -> None:
    (tmp_path / "link.yaml").symlink_to("/nowhere.yaml")
    assert "is a link to /nowhere.yaml, which is not there" in _message(tmp_path / "link.yaml")

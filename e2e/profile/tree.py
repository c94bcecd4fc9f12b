"""A profile's YAML as a tree that knows where everything was written.

Built from PyYAML's events, so that nothing is expanded or constructed on the way: anchors,
aliases and tags are refused, duplicate keys are seen, nesting is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from e2e.profile.problems import InvalidProfile, KeyPath, Position, Problem, did_you_mean
from e2e.profile.scalars import Ambiguous, Scalar, read

_MOST_BYTES = 256 * 1024
_MOST_LEVELS = 16
# NUL ends an argument, and half a surrogate pair has no bytes.
_UNSPEAKABLE = re.compile("[\0\ud800-\udfff]")
_FAST_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass
class Node:
    """A value, where it was written, and where its key was (for what hangs under a key).

    `broken` marks a value that a problem was already reported for.
    """

    value: dict[str, Node] | list[Node] | Scalar
    at: Position
    key_at: Position
    broken: bool = False

    def plain(self) -> object:
        """The value as Python data."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def find(self, path: KeyPath) -> Node | None:
        node: Node | None = self
        for part in path:
            if node is None:
                return None
            if isinstance(node.value, dict) and isinstance(part, str):
                node = node.value.get(part)
            elif isinstance(node.value, list) and isinstance(part, int):
                node = node.value[part] if part < len(node.value) else None
            else:
                return None
        return node


def read_file(file: Path) -> tuple[Node, list[Problem]]:
    """The tree of a file and what is wrong with it as YAML. Raises InvalidProfile where there is
    no tree: the file cannot be read, is not YAML, or is not a mapping."""
    text = _text(file)
    # libyaml is twenty times as fast; what it refuses, PyYAML's own parser says better.
    with suppress(yaml.YAMLError):
        return _Builder(file).build(yaml.parse(text, Loader=_FAST_LOADER))
    return _Builder(file).build_or_explain(text)


def _text(file: Path) -> str:
    start = Position(file)
    try:
        if file.is_dir():
            raise _refused(start, "is a folder; name a profile in it")
        if file.is_symlink() and not file.exists():
            raise _refused(start, f"is a link to {file.readlink()}, which is not there")
        if not file.exists():
            names = [other.name for other in sorted(file.parent.glob("*.y*ml"))]
            raise _refused(start, "there is no such file" + did_you_mean(file.name, names))
        if not file.is_file():
            raise _refused(start, "is not a regular file")
        if file.stat().st_size > _MOST_BYTES:
            raise _refused(start, f"is larger than {_MOST_BYTES // 1024} KiB: not a profile")
        data = file.read_bytes()
    except OSError as error:
        raise _refused(start, f"cannot be read: {error.strerror}") from error
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        raise _refused(
            Position(file, line, column),
            f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8",
        ) from error


def _refused(at: Position, what: str, path: KeyPath = ()) -> InvalidProfile:
    return InvalidProfile([Problem(at, path, what)])


class _Builder:
    """Reads one document of events, collecting problems as it goes."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._problems: list[Problem] = []

    def build(self, events: Iterator[Event]) -> tuple[Node, list[Problem]]:
        return self._document(events), self._problems

    def build_or_explain(self, text: str) -> tuple[Node, list[Problem]]:
        try:
            return self.build(yaml.parse(text, Loader=yaml.SafeLoader))
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            at = Position(self._file, mark.line + 1, mark.column + 1) if mark else self._start
            raise InvalidProfile([*self._problems, Problem(at, (), _syntax(error))]) from error
        except yaml.reader.ReaderError as error:
            before = text[: error.position]
            line, column = before.count("\n") + 1, error.position - before.rfind("\n")
            what = f"the character U+{ord(text[error.position]):04X} is not allowed in YAML"
            raise _refused(Position(self._file, line, column), what) from error

    @property
    def _start(self) -> Position:
        return Position(self._file)

    def _document(self, events: Iterator[Event]) -> Node:
        event = _next_node(events)
        if isinstance(event, StreamEndEvent):
            raise _refused(self._start, "the file is empty")
        root = self._node(event, events, (), self._at(event))
        if isinstance(root.value, (list, str, int, float, bool)):
            raise _refused(root.at, "a profile is a mapping of keys, such as `profile: my-profile`")
        if root.value is None:
            raise _refused(self._start, "the file is empty")
        more = _next_node(events)
        if not isinstance(more, StreamEndEvent):
            self._report(more, (), "a second document; a file holds one profile")
        return root

    def _node(self, event: Event, events: Iterator[Event], path: KeyPath, key_at: Position) -> Node:
        at = self._at(event)
        if len(path) > _MOST_LEVELS:
            raise InvalidProfile(
                [*self._problems, Problem(at, path[:3], f"more than {_MOST_LEVELS} levels deep")]
            )
        broken = self._refuse_sharing(event, path)
        if isinstance(event, MappingStartEvent):
            return Node(self._mapping(events, path), at, key_at, broken)
        if isinstance(event, SequenceStartEvent):
            return Node(self._sequence(events, path), at, key_at, broken)
        if isinstance(event, ScalarEvent):
            value, ambiguous = self._scalar(event, path)
            return Node(value, at, key_at, broken or ambiguous)
        return Node(None, at, key_at, broken=True)

    def _refuse_sharing(self, event: Event, path: KeyPath) -> bool:
        """Anchors, aliases and tags: what stands here would no longer be what is read."""
        if isinstance(event, AliasEvent):
            self._report(event, path, f"the alias *{event.anchor}; share settings with `extends`")
            return True
        if isinstance(event, NodeEvent) and event.anchor:
            self._report(event, path, f"the anchor &{event.anchor}; share settings with `extends`")
        tag = getattr(event, "tag", None)
        if tag is not None:
            short = tag.replace("tag:yaml.org,2002:", "!!")
            self._report(event, path, f"the tag {short}; write the plain value, text in quotes")
        return tag is not None

    def _mapping(self, events: Iterator[Event], path: KeyPath) -> dict[str, Node]:
        found: dict[str, Node] = {}
        while not isinstance(event := next(events), CollectionEndEvent):
            key = self._key(event, events, path)
            node = self._node(next(events), events, (*path, key or "?"), self._at(event))
            if key is None:
                continue
            if key in found:
                first = found[key].key_at
                what = f"written twice; the first is in line {first.line}"
                self._report(event, (*path, key), what)
            else:
                found[key] = node
        return found

    def _key(self, event: Event, events: Iterator[Event], path: KeyPath) -> str | None:
        if not isinstance(event, ScalarEvent):
            self._node(event, events, (*path, "?"), self._at(event))
            self._report(event, path, "a key is one word of text")
            return None
        if event.value == "<<" and not event.style:
            self._report(event, path, "a merge key (<<); share settings with `extends`")
            return None
        self._refuse_sharing(event, path)
        value, ambiguous = self._scalar(event, path)
        if not ambiguous and not isinstance(value, str):
            self._report(event, path, f"the key {event.value!r} is not text; put it in quotes")
        return value if isinstance(value, str) else None

    def _sequence(self, events: Iterator[Event], path: KeyPath) -> list[Node]:
        found: list[Node] = []
        while not isinstance(event := next(events), CollectionEndEvent):
            found.append(self._node(event, events, (*path, len(found)), self._at(event)))
        return found

    def _scalar(self, event: ScalarEvent, path: KeyPath) -> tuple[Scalar, bool]:
        """The value, and whether it was refused."""
        if unspeakable := _UNSPEAKABLE.search(event.value):
            code = ord(unspeakable.group())
            self._report(event, path, f"the character U+{code:04X}: no command can carry it")
            return None, True
        if event.style:
            return event.value, False
        try:
            return read(event.value), False
        except Ambiguous as error:
            self._report(event, path, str(error))
            return None, True

    def _at(self, event: Event) -> Position:
        mark = event.start_mark
        return Position(self._file, mark.line + 1, mark.column + 1)

    def _report(self, event: Event, path: KeyPath, what: str) -> None:
        self._problems.append(Problem(self._at(event), path, what))


def _next_node(events: Iterator[Event]) -> Event:
    """The next event that opens a node, or the end of the stream."""
    for event in events:
        if isinstance(event, (NodeEvent, StreamEndEvent)):
            return event
        if not isinstance(event, (DocumentStartEvent, DocumentEndEvent, yaml.StreamStartEvent)):
            break
    raise AssertionError("PyYAML ended a stream without saying so")


def _syntax(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or error.context or "not YAML"
    if "\\t" in problem:
        return "a tab; indent with spaces"
    if "mapping values are not allowed" in problem:
        return "not YAML: a second `: ` in one line; put the text in quotes, or begin a new line"
    context = f" ({error.context})" if error.context and error.problem else ""
    return f"not YAML: {problem}{context}"

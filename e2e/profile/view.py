"""Reading a tree that may be wrong: rules look at what is of the right type and skip the rest, so
that one mistake does not hide another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from e2e.profile.problems import KeyPath, Position, Problem
from e2e.profile.tree import Node

T = TypeVar("T", int, str, bool)


@dataclass(frozen=True)
class View:
    """A mapping of the tree and its path."""

    node: Node
    path: KeyPath

    @property
    def children(self) -> dict[str, Node]:
        return self.node.value if isinstance(self.node.value, dict) else {}

    def says(self, key: str) -> bool:
        """The key is there and is not null."""
        node = self.children.get(key)
        return node is not None and (node.value is not None or node.broken)

    def sub(self, key: str) -> View:
        """The mapping under a key; an empty one where there is none."""
        node = self.children.get(key) or Node({}, self.node.at, self.node.key_at)
        return View(node, (*self.path, key))

    def subs(self, key: str) -> Iterator[View]:
        """The mappings under a key that holds several by name."""
        view = self.sub(key)
        return (view.sub(name) for name in view.children)

    def get(self, key: str, kind: type[T], default: T | None = None) -> T | None:
        """The value of a key if it is of that type, the default if the key is not there."""
        if not self.says(key):
            return default
        return _as(self.children[key].value, kind)

    def count(self, key: str, default: int | None = None) -> int | None:
        """A number of things, at least 1; None where the value is no such number, which is a
        problem of its own."""
        number = self.get(key, int, default)
        return number if number is not None and number > 0 else None

    def number(self, key: str, default: float | None = None) -> float | None:
        """The value of a key if it is a number, whole or not; the default if it is not there."""
        if not self.says(key):
            return default
        value = self.children[key].value
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def items(self, key: str, kind: type[T]) -> list[tuple[T, Position]]:
        """The elements of that type in a list, and where they stand."""
        node = self.children.get(key)
        elements = node.value if node is not None and isinstance(node.value, list) else []
        typed = ((_as(item.value, kind), item.at) for item in elements)
        return [(value, at) for value, at in typed if value is not None]

    def length(self, key: str) -> int | None:
        node = self.children.get(key)
        return len(node.value) if node is not None and isinstance(node.value, list) else None

    def at_value(self, key: str, what: str) -> Problem:
        """A problem with the value of a key."""
        node = self.children.get(key, self.node)
        return Problem(node.at, (*self.path, key), what)

    def at_key(self, key: str, what: str) -> Problem:
        """A problem with a key being there."""
        node = self.children.get(key, self.node)
        return Problem(node.key_at, (*self.path, key), what)

    def here(self, what: str) -> Problem:
        """A problem with the mapping as a whole, at the key that holds it."""
        return Problem(self.node.key_at, self.path, what)


def _as(value: object, kind: type[T]) -> T | None:
    """The value if it is of that type; a bool is not a number here."""
    if isinstance(value, bool) and kind is not bool:
        return None
    return value if isinstance(value, kind) else None

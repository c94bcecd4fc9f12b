"""Profiles that extend another: what is taken over, and from where.

Mappings are merged key by key, at every level; anything else replaces what is inherited; `null`
removes it (below `args` it is a value: the flag is left out). What a profile says of itself is
never inherited: its name, its description, and its gate, so that no profile is opted in by
another's variables without saying so.
"""

from __future__ import annotations

from pathlib import Path

from e2e.profile.problems import InvalidProfile, KeyPath, Problem, did_you_mean
from e2e.profile.problems import written as written_path
from e2e.profile.shipped import shipped_folder
from e2e.profile.tree import Node, read_file

OWN_KEYS = ("profile", "extends", "description", "gate")


def read_extended(file: Path) -> tuple[Node, list[Problem]]:
    """The tree of a profile over what it extends, and the problems found in all their files.

    Raises InvalidProfile where there is no tree.
    """
    return _read(file, ())


def inherited(root: Node, file: Path) -> dict[str, str]:
    """The keys of a merged tree that other files say, whole subtrees as one, and whose they are."""
    found: dict[str, str] = {}
    _collect(root, (), file, found)
    return found


def _read(file: Path, children: tuple[Path, ...]) -> tuple[Node, list[Problem]]:
    root, problems = read_file(file)
    extends = root.find(("extends",))
    if extends is None or extends.broken or extends.value is None:
        return root, problems
    chain = (*children, file.resolve())
    try:
        base_file = _base_file(extends, file)
        if base_file.resolve() in chain:
            names = " -> ".join(path.stem for path in (*chain, base_file))
            raise InvalidProfile([Problem(extends.at, ("extends",), f"a circle: {names}")])
        base, base_problems = _read(base_file, chain)
    except InvalidProfile as error:
        raise InvalidProfile([*problems, *error.problems]) from error
    problems += [*base_problems, *_removed_but_not_there(base, root)]
    return _merge(_without_own_keys(base), root, ()), problems


def _removed_but_not_there(base: Node, own: Node) -> list[Problem]:
    inherited, said = base.find(("cases",)), own.find(("cases",))
    if not (inherited and isinstance(inherited.value, dict) and said):
        return []
    cases = said.value if isinstance(said.value, dict) else {}
    missing = {
        name: node
        for name, node in cases.items()
        if node.value is None and not node.broken and name not in inherited.value
    }
    for node in missing.values():
        node.broken = True
    return [
        Problem(
            node.key_at,
            ("cases", name),
            f"no such case is inherited, to be removed{did_you_mean(name, inherited.value)}",
        )
        for name, node in missing.items()
    ]


def _base_file(extends: Node, file: Path) -> Path:
    if not isinstance(extends.value, str):
        what = "expected the name of a profile"
        raise InvalidProfile([Problem(extends.at, ("extends",), what)])
    folders = [file.parent, shipped_folder()]
    for folder in folders:
        if (found := folder / f"{extends.value}.yaml").is_file():
            return found
    names = {other.stem for folder in folders for other in folder.glob("*.yaml")}
    what = f"there is no profile {extends.value!r}" + did_you_mean(extends.value, sorted(names))
    raise InvalidProfile([Problem(extends.at, ("extends",), what)])


def _without_own_keys(base: Node) -> Node:
    assert isinstance(base.value, dict)
    kept = {key: node for key, node in base.value.items() if key not in OWN_KEYS}
    return Node(kept, base.at, base.key_at)


def _merge(base: Node, own: Node, path: KeyPath) -> Node:
    if not (isinstance(base.value, dict) and isinstance(own.value, dict)):
        return own
    merged = dict(base.value)
    for key, node in own.value.items():
        if key in merged and node.value is None and not node.broken and path[-1:] != ("args",):
            del merged[key]
        else:
            merged[key] = _merge(merged[key], node, (*path, key)) if key in merged else node
    return Node(merged, own.at, own.key_at, own.broken)


def _collect(node: Node, path: KeyPath, file: Path, found: dict[str, str]) -> None:
    sources = _sources(node)
    if path and len(sources) == 1 and file not in sources:
        found[written_path(path)] = sources.pop().stem
    elif isinstance(node.value, dict):
        for key, child in node.value.items():
            _collect(child, (*path, key), file, found)


def _sources(node: Node) -> set[Path]:
    """The files that say the scalars and lists of a tree."""
    if isinstance(node.value, dict) and node.value:
        return set().union(*map(_sources, node.value.values()))
    return {node.at.file}

"""pydantic's errors as problems of a profile, each at its place, with the nearest right key."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from e2e.profile import model as form
from e2e.profile.model import Profile
from e2e.profile.problems import KeyPath, Problem, did_you_mean, nearest, written
from e2e.profile.tree import Node

_EXPECTED = {
    "string_type": "text (put it in quotes)",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list, such as [a, b]",
    "dict_type": "a mapping of keys",
    "model_type": "a mapping of keys",
}
_PATTERNS = {
    form.KEBAB: "is not lower-kebab-case",
    form.KEBAB_WITH_VERSIONS: "is not lower-kebab-case",
    form.SERVED_NAME: "is not a served model name: letters, digits and . _ / -",
    form.ENTRY_POINT: "is not the name of an entry point",
    form.VARIABLE: "is not the name of an environment variable",
    form.VARIABLE_PATTERN: "is not the name of an environment variable, nor a pattern of one (*)",
}


def check(root: Node) -> tuple[Profile | None, list[Problem]]:
    """The typed profile, or what is wrong with the tree's keys and types.

    Where a key is misspelt, the right one is put into the tree with a broken value, so that
    nobody misses it.
    """
    try:
        return Profile.model_validate(root.plain()), []
    except ValidationError as error:
        by_path: dict[KeyPath, list[Mapping[str, Any]]] = {}
        for one in error.errors(include_url=False):
            by_path.setdefault(_path(root, one), []).append(one)
        problems = list(_problems(root, by_path))
        _supply_misspelt(root, by_path)
        return None, [problem for problem in problems if not _is_supplied(root, problem.path)]


def _supply_misspelt(root: Node, by_path: Mapping[KeyPath, list[Mapping[str, Any]]]) -> None:
    for path, found in by_path.items():
        holder, node = root.find(path[:-1]), root.find(path)
        if found[0]["type"] != "extra_forbidden" or holder is None or node is None:
            continue
        meant = nearest(str(path[-1]), keys_at(path[:-1]))
        if meant and isinstance(holder.value, dict):
            holder.value.setdefault(meant, Node(None, node.at, node.key_at, broken=True))


def _is_supplied(root: Node, path: KeyPath) -> bool:
    node = root.find(path)
    return node is not None and node.broken


def _problems(root: Node, by_path: Mapping[KeyPath, list[Mapping[str, Any]]]) -> Iterator[Problem]:
    for path, found in by_path.items():
        if found[0]["type"] == "missing":
            yield _missing(root, path)
            continue
        node = root.find(path)
        if node is None or node.broken:
            continue
        if found[0]["type"] == "extra_forbidden":
            yield Problem(node.key_at, path, _unknown_key(path))
        elif "[key]" in found[0]["loc"]:
            yield Problem(node.key_at, path, _not_in_form(str(path[-1]), found[0]))
        else:
            at = node.key_at if node.value is None else node.at
            yield Problem(at, path, _wrong_value(node, found))


def _path(root: Node, error: Mapping[str, Any]) -> KeyPath:
    """The part of pydantic's location that is a path in the file: without tags of unions, and
    with the key that is missing."""
    path: KeyPath = ()
    for part in error["loc"]:
        if root.find((*path, part)) is None:
            break
        path = (*path, part)
    return (*path, error["loc"][-1]) if error["type"] == "missing" else path


def _missing(root: Node, path: KeyPath) -> Problem:
    holder = root.find(path[:-1]) or root
    field = _fields_at(path[:-1]).get(str(path[-1]))
    meaning = f" ({field.description})" if field is not None and field.description else ""
    return Problem(holder.key_at, path, f"missing{meaning}")


def _unknown_key(path: KeyPath) -> str:
    key, allowed = str(path[-1]), keys_at(path[:-1])
    if found := did_you_mean(key, allowed):
        return f"unknown key{found}"
    places = [written((*place, key)) for place in _places(Profile, key)]
    if places:
        return f"unknown key here; did you mean {places[0]!r}?"
    return f"unknown key; known here: {', '.join(allowed)}"


def _wrong_value(node: Node, errors: list[Mapping[str, Any]]) -> str:
    got = _described(node)
    expected = [_EXPECTED[error["type"]] for error in errors if error["type"] in _EXPECTED]
    for error in errors:
        context = error.get("ctx", {})
        match error["type"]:
            case "literal_error" if context["expected"] == "False":
                expected.append("false")
            case "literal_error":
                choices = _choices(error)
                meant = did_you_mean(str(node.value), choices)
                return f"expected one of {', '.join(choices)}, got {got}{meant}"
            case "greater_than":
                return f"must be greater than {context['gt']:g}, got {got}"
            case "greater_than_equal":
                return f"must be at least {context['ge']:g}, got {got}"
            case "less_than_equal":
                return f"must be at most {context['le']:g}, got {got}"
            case "too_short" | "string_too_short":
                return "must not be empty"
            case "string_pattern_mismatch" | "string_too_long":
                return _not_in_form(str(node.value), error)
    if expected:
        return f"expected {' or '.join(dict.fromkeys(expected))}, got {got}"
    return f"{errors[0]['msg']}, got {got}"


def _choices(error: Mapping[str, Any]) -> list[str]:
    return error["ctx"]["expected"].replace(" or ", ", ").replace("'", "").split(", ")


def _not_in_form(word: str, error: Mapping[str, Any]) -> str:
    if error["type"] == "literal_error":
        choices = _choices(error)
        return f"unknown key; known here: {', '.join(choices)}{did_you_mean(word, choices)}"
    if error["type"] == "string_too_long":
        return f"{word[:20]}... is longer than {error['ctx']['max_length']} letters"
    pattern = error.get("ctx", {}).get("pattern", "")
    meaning = _PATTERNS.get(pattern, error["msg"])
    right = _kebab(word) if pattern in (form.KEBAB, form.KEBAB_WITH_VERSIONS) else ""
    return f"{word!r} {meaning}" + (f"; did you mean {right!r}?" if right else "")


def _kebab(word: str) -> str:
    kept = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in word)
    return "-".join(part for part in kept.lower().split("-") if part)


def _described(node: Node) -> str:
    match node.value:
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case None:
            return "nothing"
        case bool(value):
            return str(value).lower()
        case str(text):
            return f"the text {text if len(text) <= 40 else text[:37] + '...'!r}"
        case number:
            return f"{number}"


def keys_at(path: KeyPath) -> list[str]:
    """The keys that a profile may have at a path; none where it may have any."""
    return list(_fields_at(path))


def _fields_at(path: KeyPath) -> dict[str, Any]:
    model: type[BaseModel] | None = Profile
    annotation: Any = Profile
    for part in path:
        if model is not None and isinstance(part, str):
            field = model.model_fields.get(part)
            annotation = field.annotation if field is not None else None
        else:
            annotation = _element(annotation)
        model = _model(annotation)
    return dict(model.model_fields) if model is not None else {}


def _model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType, Annotated):
        return next(filter(None, map(_model, get_args(annotation))), None)
    return None


def _element(annotation: Any) -> Any:
    """What a mapping or list holds."""
    if get_origin(annotation) in (Union, types.UnionType, Annotated):
        return next(filter(None, map(_element, get_args(annotation))), None)
    return get_args(annotation)[-1] if get_origin(annotation) in (dict, list) else None


def _places(model: type[BaseModel], key: str, path: KeyPath = ()) -> Iterator[KeyPath]:
    """The sections of a profile that have such a key."""
    for name, field in model.model_fields.items():
        inner = _model(field.annotation)
        if inner is not None:
            if key in inner.model_fields:
                yield (*path, name)
            yield from _places(inner, key, (*path, name))

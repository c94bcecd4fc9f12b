"""Values that must never reach evidence, messages or reports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|_PASS$|_PWD$|CREDENTIAL|BEARER|KEY$|ACCESS_KEY|API_?KEY", re.I
)
_COUNTS = re.compile("TOKENS", re.I)
_IN_URL = re.compile(
    r"://[^/@\s]*:([^/@\s]+)@|[?&;][^=&\s]*(?:key|token|secret|passw|signature)[^=&\s]*=([^&\s]+)",
    re.I,
)
_SHORTEST = 6
REDACTED = "[redacted]"

Model = TypeVar("Model", bound=BaseModel)


def secret_values(variables: Mapping[str, str]) -> list[str]:
    """The values of variables whose names say that they are secret, and what URLs in any variable
    hold of passwords and keys; longest first. A number in a variable that counts tokens is none."""
    found = {value for pair in variables.items() for value in _of_variable(*pair)}
    return sorted((value for value in found if len(value) >= _SHORTEST), key=len, reverse=True)


def _of_variable(name: str, value: str) -> Iterator[str]:
    if _SECRET_NAME.search(name) and not (value.isdigit() and _COUNTS.search(name)):
        yield value
    for found in _IN_URL.finditer(value):
        yield found[1] or found[2]


def redact(text: str, values: Iterable[str]) -> str:
    """`text` without any of `values`, and without what is no Unicode and no file could hold."""
    for value in values:
        text = text.replace(value, REDACTED)
    return unicode(text)


def unicode(text: str) -> str:
    """A path or variable that Python read in a locale without UTF-8, as it was written; question
    marks for what is no text in UTF-8 either."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")


def without(model: Model, values: Iterable[str]) -> Model:
    """The model with every text in it redacted, keys and numbers as they are."""
    return type(model).model_validate(_redacted(model.model_dump(), list(values)))


def _redacted(value: Any, values: list[str]) -> Any:
    if type(value) is str:
        return redact(value, values)
    if isinstance(value, dict):
        return {key: _redacted(inner, values) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_redacted(inner, values) for inner in value)
    return value

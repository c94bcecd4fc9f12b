"""Plain YAML scalars, read in the one way in which nobody can misread them.

`true`, `false`, `null`, decimal numbers and text. What the versions of YAML read differently
(`off`, `010`, `1_000`, `1:30`) is refused, with both ways to write what was meant.
"""

from __future__ import annotations

import math
import re

Scalar = bool | int | float | str | None

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?")
_UNDERSCORES = re.compile(r"[-+]?[0-9][0-9_]*_[0-9_]*(\.[0-9_]*)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")
_OTHER_BASE = re.compile(r"[-+]?0[xXoObB][0-9a-fA-F_]+")
_BASE_60 = re.compile(r"[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_MOST_DIGITS = 18

_CONSTANTS: dict[str, Scalar] = {"true": True, "false": False, "null": None, "~": None, "": None}
_SWITCHES = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


class Ambiguous(ValueError):
    """A scalar that means one thing to some readers of YAML and another to others."""


def read(text: str) -> Scalar:
    """The value of a scalar that was written without quotes. Raises Ambiguous."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text.lower() in _CONSTANTS:
        raise Ambiguous(f"write {text.lower()}, or {text!r} in quotes if it is text")
    if text.lower() in _SWITCHES:
        meant = _SWITCHES[text.lower()]
        raise Ambiguous(
            f"YAML 1.1 reads {text} as {meant}: write {meant}, or {text!r} in quotes if it is text"
        )
    return _number(text)


def _number(text: str) -> Scalar:
    if _INTEGER.fullmatch(text):
        if len(text) > _MOST_DIGITS:
            raise Ambiguous(f"a number of {len(text)} digits; put it in quotes if it is text")
        return int(text)
    if _DECIMAL.fullmatch(text):
        if math.isinf(number := float(text)):
            raise Ambiguous(f"{text} is larger than any number that a profile can hold")
        return number
    if _UNDERSCORES.fullmatch(text):
        plain = text.replace("_", "")
        raise Ambiguous(f"write {plain}, or {text!r} in quotes if it is text")
    if _LEADING_ZERO.fullmatch(text):
        raise Ambiguous(
            f"YAML 1.1 reads {text} as an octal number: write it without the leading zero, "
            f"or {text!r} in quotes if it is text"
        )
    if _OTHER_BASE.fullmatch(text):
        raise Ambiguous(f"write {text} as a decimal number, or {text!r} in quotes if it is text")
    if _BASE_60.fullmatch(text):
        raise Ambiguous(f"YAML 1.1 reads {text} as a number to the base 60: put {text!r} in quotes")
    if _NOT_FINITE.fullmatch(text):
        raise Ambiguous(f"{text} is not a number that a profile can hold")
    return text

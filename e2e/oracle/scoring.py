"""Verdicts on GSM8K answers, equal to those of lm-evaluation-harness (task `gsm8k`, version 3).

No number is parsed: texts are extracted, cleaned and compared, with all the quirks this has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

INVALID = "[invalid]"
_STRICT = re.compile(r"#### (\-?[0-9\.\,]+)")
_FLEXIBLE = re.compile(r"(-?[$0-9.,]{2,})|(-?[0-9]+)")
_LAST_DOT = re.compile(r"\.$")


@dataclass(frozen=True)
class Verdict:
    """Strict and flexible verdicts, and what each has read from the answer."""

    strict: bool
    flexible: bool
    extracted_strict: str
    extracted_flexible: str


def score(text: str, gold_answer: str) -> Verdict:
    """Judge an answer against the data set's raw answer text."""
    gold = normalise(gold_answer)
    strict, flexible = extract_strict(text), extract_flexible(text)
    return Verdict(
        strict=normalise(strict) == gold,
        flexible=normalise(flexible) == gold,
        extracted_strict=strict,
        extracted_flexible=flexible,
    )


def extract_strict(text: str) -> str:
    """The number after the first `#### `."""
    found = _STRICT.search(text)
    return found[1].strip() if found else INVALID


def extract_flexible(text: str) -> str:
    """The last thing that looks like a number or a price."""
    last = None
    for last in _FLEXIBLE.finditer(text):  # noqa: B007
        pass
    return (last[1] or last[2]).strip() if last else INVALID


def normalise(text: str) -> str:
    """Without commas, dollars, all up to the last `#### ` and a final full stop; lower case."""
    bare = text.replace(",", "").replace("$", "").rpartition("#### ")[2]
    return _LAST_DOT.sub("", bare).lower()

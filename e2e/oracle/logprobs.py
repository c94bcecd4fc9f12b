"""Tokens of an answer with their log-probabilities, out of a choice of a reply.

Tokens are named `token_id:N` (vLLM's `return_tokens_as_token_ids`), in both APIs.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from e2e.oracle.strict_json import Malformed, excerpt

_TOKEN = re.compile("token_id:([0-9]{1,9})")


@dataclass(frozen=True)
class AnswerTokens:
    """One entry a token, in order; natural logarithms."""

    token_ids: list[int]
    logprobs: list[float]
    top_logprobs: list[dict[int, float]]


def completion_tokens(choice: dict[str, Any], asked: int) -> AnswerTokens:
    """`asked`: how many log-probabilities each token has to come with, at least. Raises Malformed
    where anything is missing, not finite, or of unequal length."""
    lists = _dict(choice.get("logprobs"), "logprobs")
    names = _list(lists.get("tokens"), "logprobs.tokens")
    return _checked(
        choice,
        asked,
        [_token_id(name) for name in names],
        [_finite(value) for value in _list(lists.get("token_logprobs"), "token_logprobs")],
        [
            {_token_id(name): _finite(value) for name, value in top.items()}
            for top in _dicts(lists.get("top_logprobs"), "top_logprobs")
        ],
    )


def chat_tokens(choice: dict[str, Any], asked: int) -> AnswerTokens:
    """As `completion_tokens`."""
    content = _dict(choice.get("logprobs"), "logprobs").get("content")
    entries = _dicts(content, "logprobs.content")
    return _checked(
        choice,
        asked,
        [_token_id(entry.get("token")) for entry in entries],
        [_finite(entry.get("logprob")) for entry in entries],
        [
            {
                _token_id(top.get("token")): _finite(top.get("logprob"))
                for top in _dicts(entry.get("top_logprobs"), "top_logprobs")
            }
            for entry in entries
        ],
    )


def _checked(
    choice: dict[str, Any],
    asked: int,
    token_ids: list[int],
    logprobs: list[float],
    top_logprobs: list[dict[int, float]],
) -> AnswerTokens:
    if not token_ids:
        raise Malformed("no log-probabilities in the reply")
    if not len(token_ids) == len(logprobs) == len(top_logprobs):
        raise Malformed("lists of log-probabilities of unequal length")
    for place, top in enumerate(top_logprobs):
        if len(top) < asked:
            raise Malformed(f"{len(top)} of {asked} log-probabilities at token {place}")
    if choice.get("token_ids", token_ids) not in (None, token_ids):
        raise Malformed("token_ids and log-probabilities are of different tokens")
    return AnswerTokens(token_ids, logprobs, top_logprobs)


def _dict(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Malformed(f"no log-probabilities in the reply: {name} is {excerpt(value)}")
    return value


def _list(value: object, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise Malformed(f"no log-probabilities in the reply: {name} is {excerpt(value)}")
    return value


def _dicts(value: object, name: str) -> list[dict[str, Any]]:
    return [_dict(item, name) for item in _list(value, name)]


def _token_id(name: object) -> int:
    found = _TOKEN.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        raise Malformed(f"a token is named {excerpt(name)} instead of token_id:N")
    return int(found[1])


def _finite(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Malformed(f"a log-probability is {excerpt(value)}")
    return float(value)

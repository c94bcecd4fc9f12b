"""What a stand-in sends for a completion, as it should be and as it should not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Completion = dict[str, Any]


def completion(request: Completion, text: str) -> Completion:
    """One whole answer."""
    count = len(text.split())
    choice: Completion = {"index": 0, "text": text, "finish_reason": "stop"}
    if request.get("logprobs"):
        names = [f"token_id:{number}" for number in range(count)]
        choice["logprobs"] = {
            "tokens": names,
            "token_logprobs": [-0.1] * count,
            "top_logprobs": [{name: -0.1} for name in names],
        }
    return {
        "id": "cmpl-1",
        "object": "text_completion",
        "model": request["model"],
        "choices": [choice],
        "usage": {"prompt_tokens": 9, "completion_tokens": count},
    }


def whole(body: bytes, status: int = 200, length: int | None = None) -> bytes:
    """A response over HTTP; `length` claims another than the body has."""
    size = len(body) if length is None else length
    return (
        f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n"
        "Connection: close\r\n\r\n"
    ).encode() + body


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()


def broken(name: str, good: Completion) -> bytes:
    """The response of that name, made from a good answer."""
    return _BROKEN[name](good)


def _with(**changes: Any) -> Callable[[Completion], bytes]:
    def change(good: Completion) -> bytes:
        return whole(as_json({**good, "choices": [{**good["choices"][0], **changes}]}))

    return change


def _half(good: Completion) -> bytes:
    body = as_json(good)
    return whole(body[: len(body) // 2], length=len(body))


def _not_a_number(good: Completion) -> bytes:
    logprobs = {"tokens": ["token_id:1"], "token_logprobs": [float("nan")], "top_logprobs": [{}]}
    return _with(logprobs=logprobs)(good)


def _no_text(good: Completion) -> bytes:
    return whole(as_json(_marked(good)).replace(b"MARK", b"\xff\xfe"))


def _marked(good: Completion) -> Completion:
    return {**good, "choices": [{**good["choices"][0], "text": "MARK"}]}


_BROKEN: dict[str, Callable[[Completion], bytes]] = {
    "error in 200": lambda good: whole(as_json({"error": {"message": "engine is dead"}})),
    "invalid JSON": lambda good: whole(b'{"choices": ['),
    "empty body": lambda good: whole(b""),
    "half body": _half,
    "no HTTP": lambda good: b"what?\r\n\r\n",
    "endless body": lambda good: whole(b" " * (17 << 20)),
    "truncated": _with(finish_reason="length"),
    "empty": _with(text=""),
    "aborted": _with(finish_reason="abort"),
    "missing": lambda good: whole(as_json({**good, "choices": []})),
    "doubled": lambda good: whole(as_json({**good, "choices": good["choices"] * 2})),
    "of another": _with(index=1),
    "wrong model": lambda good: whole(as_json({**good, "model": "another"})),
    "NaN": _not_a_number,
    "invalid UTF-8": _no_text,
    "wrong number": _with(text=" I think so.\n#### 424242"),
}

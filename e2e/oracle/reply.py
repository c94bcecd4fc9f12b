"""A server's reply -> an answer, or the reason why it is none. Nothing malformed raises."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from e2e.oracle.logprobs import chat_tokens, completion_tokens
from e2e.oracle.request import Endpoint, RequestSettings
from e2e.oracle.strict_json import Malformed, excerpt, is_unicode, parse_object


@dataclass(frozen=True)
class Answer:
    """What came back for one question. `invalid` says why it cannot be judged; the rest is then
    what is known of it. Log-probabilities are natural logarithms, one entry an answer token.

    `seconds` is from the first attempt to the end; `retries` are the reasons of new attempts.
    """

    doc_id: int
    text: str | None = None
    finish_reason: str | None = None
    token_ids: list[int] | None = None
    logprobs: list[float] | None = None
    top_logprobs: list[dict[int, float]] | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float = 0.0
    retries: tuple[str, ...] = ()
    invalid: str | None = None

    @property
    def attempts(self) -> int:
        return 1 + len(self.retries)


def read_answer(
    doc_id: int, status: int, body: bytes, endpoint: Endpoint, settings: RequestSettings
) -> Answer:
    """Accepts exactly one whole answer of the model that was asked; all else is invalid."""
    seen: dict[str, Any] = {}
    try:
        choice = _choice(status, body, endpoint, seen)
        seen["text"] = _text(choice, endpoint)
        seen["finish_reason"] = _finish_reason(choice)
        _require_whole(seen["text"], seen["finish_reason"], settings)
        if settings.logprobs is not None:
            read = chat_tokens if endpoint.kind == "chat" else completion_tokens
            seen |= asdict(read(choice, settings.logprobs))
    except Malformed as malformed:
        return Answer(doc_id, invalid=str(malformed), **seen)
    return Answer(doc_id, **seen)


def _choice(status: int, body: bytes, endpoint: Endpoint, seen: dict[str, Any]) -> dict[str, Any]:
    if status != 200:
        raise Malformed(f"HTTP {status}: {excerpt(body)}")
    reply = parse_object(body)
    if reply.get("error") is not None or reply.get("object") == "error":
        raise Malformed(f"an error in a reply of HTTP 200: {excerpt(body)}")
    if reply.get("model") != endpoint.served_name:
        raise Malformed(
            f"from model {excerpt(reply.get('model'))}, asked was {endpoint.served_name!r}"
        )
    usage = reply.get("usage")
    if isinstance(usage, dict):
        seen["prompt_tokens"] = _count(usage.get("prompt_tokens"))
        seen["completion_tokens"] = _count(usage.get("completion_tokens"))
    choices = reply.get("choices")
    if not isinstance(choices, list) or len(choices) != 1:
        count = len(choices) if isinstance(choices, list) else "no"
        raise Malformed(f"{count} answers to one question")
    choice = choices[0]
    if not isinstance(choice, dict) or choice.get("index", 0) != 0:
        raise Malformed(f"not the answer to the question: {excerpt(choice)}")
    return choice


def _text(choice: dict[str, Any], endpoint: Endpoint) -> str:
    holder = choice.get("message") if endpoint.kind == "chat" else choice
    name = "content" if endpoint.kind == "chat" else "text"
    text = holder.get(name) if isinstance(holder, dict) else None
    if not isinstance(text, str):
        raise Malformed(f"no text in the reply: {excerpt(text)}")
    if not is_unicode(text):
        raise Malformed(f"half a surrogate pair in the text: {excerpt(text)}")
    return text


def _finish_reason(choice: dict[str, Any]) -> str:
    reason = choice.get("finish_reason")
    if not isinstance(reason, str):
        raise Malformed(f"no finish_reason: {excerpt(reason)}")
    return excerpt(reason)


def _require_whole(text: str, finish_reason: str, settings: RequestSettings) -> None:
    if finish_reason == "length":
        raise Malformed(f"truncated at {settings.max_tokens} tokens")
    if finish_reason != "stop":
        raise Malformed(f"not finished: finish_reason {finish_reason!r}")
    if not text.strip():
        raise Malformed("empty answer")


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None

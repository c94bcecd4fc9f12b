"""What is asked of a server: where, how, and the JSON of a request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from e2e.oracle.prompts import Prompt, asked

STOP = ("Question:", "</s>", "<|im_end|>")
SEED = 1234


@dataclass(frozen=True)
class Endpoint:
    """An OpenAI API. `base_url` is without `/v1`.

    A `chat` endpoint gets the worked examples as alternating user and assistant turns, or all
    in one user message. `extra` is added to each request (`chat_template_kwargs`, ...).
    """

    base_url: str
    served_name: str
    api_key: str | None = field(default=None, repr=False)
    kind: Literal["completions", "chat"] = "completions"
    shots_as: Literal["turns", "message"] = "turns"
    extra: Mapping[str, object] = field(default_factory=dict)

    @property
    def url(self) -> str:
        path = "completions" if self.kind == "completions" else "chat/completions"
        return f"{self.base_url.rstrip('/')}/v1/{path}"


@dataclass(frozen=True)
class RequestSettings:
    """Times in seconds: of one answer, without any answer completed, of all answers.

    `logprobs`: how many log-probabilities each answer token comes with; None asks for none.
    """

    max_tokens: int = 512
    concurrency: int = 1
    request_seconds: float = 300
    stall_seconds: float = 180
    total_seconds: float = 3600
    logprobs: int | None = None


def request_body(prompt: Prompt, endpoint: Endpoint, settings: RequestSettings) -> bytes:
    """The parameters of lm-evaluation-harness: greedy, its seed, its stop strings."""
    body: dict[str, object] = {
        "model": endpoint.served_name,
        **_question(prompt, endpoint),
        "max_tokens": settings.max_tokens,
        "temperature": 0.0,
        "seed": SEED,
        "stop": STOP,
        **_log_probabilities(endpoint, settings.logprobs),
        **endpoint.extra,
    }
    return json.dumps(body).encode()


def _question(prompt: Prompt, endpoint: Endpoint) -> dict[str, object]:
    if endpoint.kind == "completions":
        return {"prompt": prompt.text}
    if endpoint.shots_as == "message":
        return {"messages": [{"role": "user", "content": prompt.text}]}
    turns = []
    for shot in prompt.shots:
        turns.append({"role": "user", "content": asked(shot.question)})
        turns.append({"role": "assistant", "content": shot.answer})
    return {"messages": [*turns, {"role": "user", "content": asked(prompt.question)}]}


def _log_probabilities(endpoint: Endpoint, top: int | None) -> dict[str, object]:
    """vLLM names tokens by id only when asked to: texts of tokens are not unique."""
    if top is None:
        return {}
    wanted = (
        {"logprobs": True, "top_logprobs": top} if endpoint.kind == "chat" else {"logprobs": top}
    )
    return {**wanted, "return_tokens_as_token_ids": True, "return_token_ids": True}

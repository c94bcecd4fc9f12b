"""What the tests of the client ask, and a stub that knows the answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from e2e.oracle import client, dataset, prompts
from e2e.oracle.prompts import Prompt
from e2e.oracle.reply import Answer
from e2e.oracle.request import Endpoint, RequestSettings
from tests.stubs.openai_server import MODEL, Part, completion, http, stub_server

QUESTIONS = prompts.build(dataset.load("bundled"), 8, 12)


def nobody_died() -> None: ...


def ask(
    base_url: str,
    questions: list[Prompt] = QUESTIONS,
    *,
    alive: Callable[[], None] = nobody_died,
    progress: Callable[[int, int], None] = lambda answered, asked: None,
    stalled: Callable[[str], None] = lambda reason: None,
    **settings: Any,
) -> list[Answer]:
    endpoint = Endpoint(base_url, MODEL, api_key="key-of-the-run")
    return client.ask(endpoint, questions, RequestSettings(**settings), alive, progress, stalled)


def golds(request: dict[str, Any]) -> list[Part]:
    """Answers each question with its own worked answer."""
    question = next(q for q in QUESTIONS if q.text == request["prompt"])
    return [http(completion(f" {question.gold_answer}"))]


def only(reply: list[Part]) -> Answer:
    with stub_server(lambda request: reply) as stub:
        (answer,) = ask(stub.base_url, QUESTIONS[:1])
    return answer


GOOD = completion(" 1 #### 1")
ERROR = {"error": {"message": "no", "type": "server_error"}}

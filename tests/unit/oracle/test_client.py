"""The client against servers that answer, refuse, hang and lie."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from e2e.errors import ServerFailed
from e2e.oracle import client, dataset, exchange, prompts
from e2e.oracle.prompts import Prompt
from e2e.oracle.reply import Answer
from e2e.oracle.request import Endpoint, RequestSettings
from tests.stubs.openai_server import MODEL, Act, Part, Stub, completion, http, stub_server

QUESTIONS = prompts.build(dataset.load("bundled"), 8, 12)


def nobody_died() -> None: ...


def ask(
    base_url: str,
    questions: list[Prompt] = QUESTIONS,
    *,
    alive: Callable[[], None] = nobody_died,
    progress: Callable[[int, int], None] = lambda answered, asked: None,
    **settings: Any,
) -> list[Answer]:
    endpoint = Endpoint(base_url, MODEL, api_key="key-of-the-run")
    return client.ask(endpoint, questions, RequestSettings(**settings), alive, progress)


def golds(request: dict[str, Any]) -> list[Part]:
    """Answers each question with its own worked answer."""
    question = next(q for q in QUESTIONS if q.text == request["prompt"])
    return [http(completion(f" {question.gold_answer}"))]


def only(reply: list[Part]) -> Answer:
    with stub_server(lambda request: reply) as stub:
        (answer,) = ask(stub.base_url, QUESTIONS[:1])
    return answer


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_FIRST_PAUSE", 0.001)
    monkeypatch.setattr(client, "_DYING_SECONDS", 0.0)


def test_request_is_that_of_lm_eval() -> None:
    with stub_server(golds) as stub:
        (answer,) = ask(stub.base_url, QUESTIONS[:1], max_tokens=77)
    assert stub.requests == [
        {
            "model": MODEL,
            "prompt": QUESTIONS[0].text,
            "max_tokens": 77,
            "temperature": 0.0,
            "seed": 1234,
            "stop": ["Question:", "</s>", "<|im_end|>"],
        }
    ]
    assert stub.headers[0].startswith("POST /v1/completions HTTP/1.1\r\n")
    assert "Authorization: Bearer key-of-the-run" in stub.headers[0]
    assert answer.text == f" {QUESTIONS[0].gold_answer}"
    assert (answer.prompt_tokens, answer.completion_tokens) == (9, 3)
    assert (answer.invalid, answer.attempts) == (None, 1)


def without_times(answers: list[Answer]) -> list[tuple[object, ...]]:
    return [(a.doc_id, a.text, a.finish_reason, a.attempts, a.invalid) for a in answers]


def test_concurrency_changes_no_answer_and_no_order() -> None:
    with stub_server(golds) as stub:
        one = ask(stub.base_url, concurrency=1)
        assert stub.most_at_once == 1
        many = ask(stub.base_url, concurrency=64)
    assert without_times(one) == without_times(many)
    assert [answer.doc_id for answer in many] == [question.doc_id for question in QUESTIONS]


def test_answers_in_the_wrong_order_reach_their_questions() -> None:
    """The first question is answered only when the last one has been asked."""
    last_asked = asyncio.Event()

    def respond(request: dict[str, Any]) -> list[Part]:
        if request["prompt"] == QUESTIONS[-1].text:
            last_asked.set()
        first = request["prompt"] == QUESTIONS[0].text
        return [last_asked, *golds(request)] if first else golds(request)

    told: list[tuple[int, int]] = []
    with stub_server(respond) as stub:
        answers = ask(stub.base_url, concurrency=5, progress=lambda *count: told.append(count))
    assert [a.doc_id for a in answers] == [q.doc_id for q in QUESTIONS]
    assert all(a.text == f" {q.gold_answer}" for a, q in zip(answers, QUESTIONS, strict=True))
    assert told == [(n, len(QUESTIONS)) for n in range(1, len(QUESTIONS) + 1)]


def test_concurrency_is_bounded() -> None:
    with stub_server(golds) as stub:
        ask(stub.base_url, QUESTIONS * 10, concurrency=4)
        assert 1 < stub.most_at_once <= 4


def test_never_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setitem(os.environ, name, "http://127.0.0.1:9")
    with stub_server(golds) as stub:
        assert ask(stub.base_url, QUESTIONS[:1])[0].invalid is None


GOOD = completion(" 1 #### 1")
ERROR = {"error": {"message": "no", "type": "server_error"}}
MALFORMED: dict[str, tuple[list[Part], str]] = {
    "500": ([http(ERROR, "500 Internal Server Error")], 'HTTP 500: {"error"'),
    "429": ([http(ERROR, "429 Too Many Requests")], "HTTP 429"),
    "redirect": ([b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"], "HTTP 302"),
    "error in 200": ([http(ERROR)], "an error in a reply of HTTP 200"),
    "not JSON": ([http(b"<html>hello")], "not JSON"),
    "NaN": ([http(GOOD | {"score": float("nan")})], "NaN is no JSON value"),
    "Infinity": ([http(GOOD | {"score": float("-inf")})], "-Infinity is no JSON value"),
    "no body": ([http(b"")], "empty body"),
    "deep": ([http(b"[" * 100_000)], "not JSON"),
    "a list": ([http(b"[1]")], "not an object but list"),
    "half a body": ([http(b'{"id": "c', length=500)], "closed within the reply"),
    "reset in the body": ([http(b'{"id"', length=500), Act.RESET], "closed within the reply"),
    "not HTTP": ([b"SSH-2.0-OpenSSH_9.6\r\n\r\n"], "not HTTP"),
    "invalid UTF-8": ([http(b'{"model": "stub", "\xff": 1}')], "not UTF-8"),
    "half a surrogate": ([http(completion("\ud83d #### 1"))], "half a surrogate pair"),
    "null text": ([http(completion(None))], "no text in the reply: None"),
    "text no string": ([http(completion(["a"]))], "no text in the reply"),
    "no choices": ([http(GOOD | {"choices": []})], "0 answers to one question"),
    "choices null": ([http(GOOD | {"choices": None})], "no answers to one question"),
    "two choices": ([http(GOOD | {"choices": GOOD["choices"] * 2})], "2 answers to one question"),
    "another's answer": ([http(completion("1", index=3))], "not the answer to the question"),
    "body twice": ([http(b'{"model": "stub"}' * 2)], "Extra data"),
    "text twice": ([http(b'{"text": "1", "text": "2"}')], "key 'text' twice"),
    "another model": ([http(GOOD | {"model": "gpt-4"})], "from model gpt-4, asked was 'stub'"),
    "no model": ([http({"choices": GOOD["choices"]})], "from model None"),
    "no finish_reason": ([http(completion("1", finish_reason=None))], "no finish_reason: None"),
    "truncated": ([http(completion("1", finish_reason="length"))], "truncated at 512 tokens"),
    "aborted": ([http(completion("1", finish_reason="abort"))], "finish_reason 'abort'"),
    "empty answer": ([http(completion(" \n"))], "empty answer"),
    "huge": ([http(b" " * (17 << 20))], "a reply of more than 16 MiB"),
}


@pytest.mark.parametrize("kind", MALFORMED)
@pytest.mark.usefixtures("impatient")
def test_a_malformed_reply_is_invalid_and_costs_no_other(kind: str) -> None:
    reply, reason = MALFORMED[kind]

    def respond(request: dict[str, Any]) -> list[Part]:
        return reply if request["prompt"] == QUESTIONS[3].text else golds(request)

    with stub_server(respond) as stub:
        answers = ask(stub.base_url, QUESTIONS[:7], concurrency=3)
    assert reason in (answers[3].invalid or "no reason")
    assert answers[3].attempts == 1
    assert [a.doc_id for a in answers if a.invalid] == [3]


def test_what_is_known_of_a_truncated_answer_is_kept() -> None:
    answer = only([http(completion("so far", finish_reason="length"))])
    assert (answer.text, answer.finish_reason, answer.completion_tokens) == ("so far", "length", 3)


@pytest.mark.usefixtures("impatient")
def test_a_second_response_is_nobodys_answer() -> None:
    """Two responses to one request: the second is not taken for the next question's."""

    def respond(request: dict[str, Any]) -> list[Part]:
        return [*golds(request), http(completion("#### 0"))]

    with stub_server(respond) as stub:
        answers = ask(stub.base_url, concurrency=1)
    assert [a.text for a in answers] == [f" {q.gold_answer}" for q in QUESTIONS]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("seed", range(20))
def test_random_bytes_never_raise(seed: int) -> None:
    chance = random.Random(seed)
    whole = http(GOOD)
    cut = whole[: chance.randrange(1, len(whole))]
    spoilt = bytearray(whole)
    for _ in range(3):
        spoilt[chance.randrange(len(spoilt))] = chance.randrange(256)
    for reply in (cut, bytes(spoilt), chance.randbytes(200)):
        assert only([reply]).doc_id == 0


class TestRetries:
    """Only what cannot have been generated is asked for again, and every time is kept."""

    @pytest.mark.usefixtures("impatient")
    @pytest.mark.parametrize(
        ("first", "reason"),
        [
            ([http(ERROR, "503 Service Unavailable")], "HTTP 503"),
            ([Act.RESET], "reset before a response"),
            ([], "reset before a response"),
        ],
    )
    def test_asked_again(self, first: list[Part], reason: str) -> None:
        replies = [first, first, [http(GOOD)]]
        with stub_server(lambda request: replies.pop(0)) as stub:
            (answer,) = ask(stub.base_url, QUESTIONS[:1])
        assert answer.invalid is None
        assert answer.attempts == 3
        assert all(reason in retry for retry in answer.retries)

    @pytest.mark.usefixtures("impatient")
    def test_not_for_ever(self) -> None:
        answer = only([http(ERROR, "503 Service Unavailable")])
        assert answer.attempts == exchange.MOST_ATTEMPTS
        assert "HTTP 503" in (answer.invalid or "")

    @pytest.mark.usefixtures("impatient")
    def test_refused(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (answer,) = ask(f"http://127.0.0.1:{port}", QUESTIONS[:1])
        assert answer.attempts == exchange.MOST_ATTEMPTS
        assert "no connection" in (answer.invalid or "")


class TestDeadlines:
    def hang_on_third(self, request: dict[str, Any]) -> list[Part]:
        return [Act.HANG] if request["prompt"] == QUESTIONS[2].text else golds(request)

    def test_one_answer(self) -> None:
        with stub_server(self.hang_on_third) as stub:
            answers = ask(stub.base_url, request_seconds=0.3)
        assert [a.doc_id for a in answers if a.invalid] == [2]
        assert answers[2].invalid == "no answer within 0.3 s"

    def test_stall(self) -> None:
        with stub_server(self.hang_on_third) as stub:
            answers = ask(stub.base_url, stall_seconds=0.3)
        assert [a.doc_id for a in answers if a.invalid] == list(range(2, 12))
        assert answers[2].invalid == "stalled: no answer completed for 0.3 s"

    def test_all_answers(self) -> None:
        with stub_server(self.hang_on_third) as stub:
            answers = ask(stub.base_url, total_seconds=0.3, concurrency=2)
        assert [a.doc_id for a in answers if a.invalid] == [2]
        assert answers[2].invalid == "not answered within the 0.3 s for all answers"

    def test_a_slow_body_is_no_progress(self) -> None:
        with stub_server(lambda request: [http(b"{", length=99), Act.HANG]) as stub:
            answers = ask(stub.base_url, stall_seconds=0.3)
        assert all("stalled" in (a.invalid or "") for a in answers)


class TestDeathOfTheServer:
    def test_ends_everything_at_once(self) -> None:
        calls: list[float] = []

        def alive() -> None:
            calls.append(time.monotonic())
            if len(calls) == 3:
                raise ServerFailed("native exited with 1", role="native")

        with (
            stub_server(lambda request: [Act.HANG]) as stub,
            pytest.raises(ServerFailed, match="native exited with 1"),
        ):
            ask(stub.base_url, concurrency=64, alive=alive)
        assert calls[2] - calls[0] < 1

    def test_is_seen_though_all_answers_were_lost_before(self) -> None:
        calls: list[float] = []

        def alive() -> None:
            calls.append(time.monotonic())
            if len(calls) == 4:
                raise ServerFailed("native was killed by signal 9", role="native")

        with (
            stub_server(lambda request: [http(b"{", length=99), Act.RESET]) as stub,
            pytest.raises(ServerFailed, match="signal 9"),
        ):
            ask(stub.base_url, QUESTIONS[:1], alive=alive)


class TestProbe:
    def probe(self, *parts: Part) -> tuple[str | None, Stub]:
        with stub_server(lambda request: list(parts)) as stub:
            return client.probe(Endpoint(stub.base_url, MODEL), 5, nobody_died), stub

    def test_one_token_is_enough(self) -> None:
        seen, stub = self.probe(http(completion("T", finish_reason="length")))
        assert seen is None
        assert stub.requests[0]["max_tokens"] == 1

    def test_no_token_is_told(self) -> None:
        assert "HTTP 500" in (self.probe(http(ERROR, "500 Oops"))[0] or "")
        empty = completion("") | {"usage": None}
        assert self.probe(http(empty))[0] == "empty answer"

"""The client against servers that answer, refuse, hang and lie."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from typing import Any

import pytest

from e2e.errors import ServerFailed
from e2e.oracle import client, exchange
from e2e.oracle.reply import Answer
from e2e.oracle.request import Endpoint
from e2e.process.signals import SignalReceived, interruptible
from tests.stubs.openai_server import MODEL, Act, Part, Stub, completion, http, stub_server
from tests.unit.oracle.asking import ERROR, GOOD, QUESTIONS, ask, golds, nobody_died, only


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
        told: list[str] = []
        with stub_server(self.hang_on_third) as stub:
            answers = ask(stub.base_url, stall_seconds=0.3, stalled=told.append)
        assert [a.doc_id for a in answers if a.invalid] == list(range(2, 12))
        assert [answers[2].invalid] == told == ["stalled: no answer completed for 0.3 s"]

    def test_a_question_that_timed_out_is_no_progress(self) -> None:
        told: list[str] = []
        with stub_server(lambda request: [Act.HANG]) as stub:
            answers = ask(
                stub.base_url, request_seconds=0.2, stall_seconds=0.5, stalled=told.append
            )
        assert told == ["stalled: no answer completed for 0.5 s"]
        assert answers[0].invalid == "no answer within 0.2 s"
        assert answers[-1].invalid == told[0]

    def test_no_answer_to_anything_is_a_stall_however_few_were_asked(self) -> None:
        told: list[str] = []
        with stub_server(lambda request: [Act.HANG]) as stub:
            ask(stub.base_url, QUESTIONS[:1], request_seconds=0.2, stalled=told.append)
        assert told == ["stalled: no answer completed for 0.2 s"]

    def test_a_stall_is_told_while_the_questions_are_out(self) -> None:
        open_then: list[int] = []
        with stub_server(lambda request: [Act.HANG]) as stub:
            ask(
                stub.base_url,
                concurrency=3,
                stall_seconds=0.3,
                stalled=lambda reason: open_then.append(stub.at_once),
            )
        assert open_then == [3]

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


def test_a_signal_ends_everything_at_once() -> None:
    begin = time.monotonic()
    with (
        stub_server(lambda request: [Act.HANG]) as stub,
        interruptible(),
        pytest.raises(SignalReceived),
    ):
        ask(stub.base_url, concurrency=64, alive=lambda: signal.raise_signal(signal.SIGTERM))
    assert time.monotonic() - begin < 2


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

"""Servers whose replies are none: each is an invalid answer with a reason, and costs no other."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.stubs.openai_server import Act, Part, completion, http, stub_server
from tests.unit.oracle.asking import ERROR, GOOD, QUESTIONS, ask, golds, only

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

"""Requests and replies of both APIs, with log-probabilities, whole and spoilt."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e.oracle import dataset, prompts
from e2e.oracle.reply import Answer, read_answer
from e2e.oracle.request import Endpoint, RequestSettings, request_body

PROMPT = prompts.build(dataset.load("bundled"), 2, 1)[0]
COMPLETIONS = Endpoint("http://127.0.0.1:8000/", "m")
CHAT = Endpoint("http://127.0.0.1:8000", "m", kind="chat")
FIVE = RequestSettings(logprobs=5)
TWO = RequestSettings(logprobs=2)


def body(endpoint: Endpoint, settings: RequestSettings = FIVE) -> dict[str, Any]:
    return json.loads(request_body(PROMPT, endpoint, settings))


def read(reply: object, endpoint: Endpoint = COMPLETIONS) -> Answer:
    return read_answer(4, 200, json.dumps(reply).encode(), endpoint, TWO)


def test_where_requests_go() -> None:
    assert COMPLETIONS.url == "http://127.0.0.1:8000/v1/completions"
    assert CHAT.url == "http://127.0.0.1:8000/v1/chat/completions"


def test_the_key_is_in_no_representation() -> None:
    assert "secret" not in repr(Endpoint("http://127.0.0.1", "m", api_key="secret"))


def test_chat_has_the_shots_as_turns() -> None:
    one, two = PROMPT.shots
    assert body(CHAT)["messages"] == [
        {"role": "user", "content": f"Question: {one.question}\nAnswer:"},
        {"role": "assistant", "content": one.answer},
        {"role": "user", "content": f"Question: {two.question}\nAnswer:"},
        {"role": "assistant", "content": two.answer},
        {"role": "user", "content": f"Question: {PROMPT.question}\nAnswer:"},
    ]
    assert "prompt" not in body(CHAT)


def test_chat_has_the_shots_in_one_message() -> None:
    endpoint = Endpoint("http://127.0.0.1", "m", kind="chat", shots_as="message")
    assert body(endpoint)["messages"] == [{"role": "user", "content": PROMPT.text}]


def test_more_is_asked_only_where_it_is_wanted() -> None:
    plain = RequestSettings()
    assert body(COMPLETIONS, plain).keys() | {"messages"} == body(CHAT, plain).keys() | {"prompt"}
    extra = body(COMPLETIONS).keys() - body(COMPLETIONS, plain).keys()
    assert extra == {"logprobs", "return_tokens_as_token_ids", "return_token_ids"}
    assert (body(CHAT)["logprobs"], body(CHAT)["top_logprobs"]) == (True, 5)
    thinking = {"chat_template_kwargs": {"enable_thinking": False}}
    endpoint = Endpoint("http://127.0.0.1", "m", kind="chat", extra=thinking)
    assert body(endpoint, plain)["chat_template_kwargs"] == {"enable_thinking": False}


def completion() -> dict[str, Any]:
    logprobs = {
        "text_offset": [0, 11],
        "tokens": ["token_id:39", "token_id:2"],
        "token_logprobs": [-0.5, -0.25],
        "top_logprobs": [
            {"token_id:39": -0.5, "token_id:7": -3.0},
            {"token_id:2": -0.25, "token_id:9": -9999.0},
        ],
    }
    choice = {
        "index": 0,
        "text": "18",
        "finish_reason": "stop",
        "token_ids": [39, 2],
        "logprobs": logprobs,
    }
    return {"model": "m", "choices": [choice], "usage": None}


def chat() -> dict[str, Any]:
    def token(name: str, logprob: float) -> dict[str, Any]:
        return {"token": name, "logprob": logprob, "bytes": None}

    content = [
        token("token_id:39", -0.5)
        | {"top_logprobs": [token("token_id:39", -0.5), token("token_id:7", -3.0)]},
        token("token_id:2", -0.25)
        | {"top_logprobs": [token("token_id:2", -0.25), token("token_id:9", -9999.0)]},
    ]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "18"},
        "finish_reason": "stop",
        "logprobs": {"content": content},
    }
    return {"model": "m", "choices": [choice]}


@pytest.mark.parametrize(("reply", "endpoint"), [(completion(), COMPLETIONS), (chat(), CHAT)])
def test_log_probabilities(reply: dict[str, Any], endpoint: Endpoint) -> None:
    assert read(reply, endpoint) == Answer(
        4,
        text="18",
        finish_reason="stop",
        token_ids=[39, 2],
        logprobs=[-0.5, -0.25],
        top_logprobs=[{39: -0.5, 7: -3.0}, {2: -0.25, 9: -9999.0}],
    )


Path = tuple[str | int, ...]


def spoilt(kind: Literal["completions", "chat"], path: Path, value: object) -> dict[str, Any]:
    reply = deepcopy(completion() if kind == "completions" else chat())
    holder: Any = reply["choices"][0]
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return reply


MISSING = "no log-probabilities in the reply"
UNEQUAL = "lists of log-probabilities of unequal length"
NAMED = "instead of token_id:N"
TOP = ("logprobs", "top_logprobs")


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("logprobs",), None, MISSING),
        (("logprobs", "tokens"), [], MISSING),
        (("logprobs", "tokens"), None, MISSING),
        (TOP, [{"token_id:39": -0.5}], UNEQUAL),
        (("logprobs", "token_logprobs"), [-0.5], UNEQUAL),
        ((*TOP, 1), {}, "0 of 2 log-probabilities at token 1"),
        ((*TOP, 1), {"token_id:2": -0.25}, "1 of 2 log-probabilities at token 1"),
        ((*TOP, 1), None, MISSING),
        (("logprobs", "tokens", 0), "18", NAMED),
        (("logprobs", "tokens", 0), "token_id:-1", NAMED),
        (("logprobs", "tokens", 0), "token_id:\u0663", NAMED),
        ((*TOP, 0), {"18": -0.5}, NAMED),
        (("logprobs", "token_logprobs", 0), None, "a log-probability is None"),
        (("logprobs", "token_logprobs", 0), "-1", "a log-probability is -1"),
        (("logprobs", "token_logprobs", 0), True, "a log-probability is True"),
        (("token_ids",), [39, 3], "are of different tokens"),
    ],
)
def test_spoilt_log_probabilities(path: Path, value: object, reason: str) -> None:
    answer = read(spoilt("completions", path, value))
    assert reason in (answer.invalid or "")
    assert (answer.text, answer.token_ids) == ("18", None)


def test_a_number_too_large_for_a_float_is_not_finite() -> None:
    text = json.dumps(completion()).replace("-0.25", "-1e999")
    answer = read_answer(4, 200, text.encode(), COMPLETIONS, TWO)
    assert "a log-probability is -inf" in (answer.invalid or "")


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("logprobs", "content"), None, MISSING),
        (("logprobs", "content", 0, "top_logprobs"), None, MISSING),
        (("logprobs", "content", 0, "top_logprobs"), [], "0 of 2 log-probabilities at token 0"),
        (("logprobs", "content", 0, "top_logprobs"), [3], MISSING),
        (("logprobs", "content", 0, "token"), "18", NAMED),
        (("message",), None, "no text in the reply"),
        (("message", "content"), None, "no text in the reply: None"),
        (("finish_reason",), "tool_calls", "finish_reason 'tool_calls'"),
    ],
)
def test_spoilt_chat(path: Path, value: object, reason: str) -> None:
    assert reason in (read(spoilt("chat", path, value), CHAT).invalid or "")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
paths = st.sampled_from(
    [
        ("index",),
        ("text",),
        ("finish_reason",),
        ("token_ids",),
        ("logprobs",),
        ("logprobs", "tokens"),
        ("logprobs", "token_logprobs"),
        TOP,
        (*TOP, 0),
        (*TOP, 0, "token_id:39"),
    ]
)


@given(paths, json_values)
def test_no_value_anywhere_raises(path: Path, value: object) -> None:
    answer = read(spoilt("completions", path, value))
    assert answer.invalid is not None or answer.text is not None


@given(json_values)
def test_no_reply_raises(value: object) -> None:
    assert read(value).invalid is not None
    assert read({"model": "m", "choices": value}).invalid is not None
    assert read({"model": "m", "choices": [value]}).invalid is not None

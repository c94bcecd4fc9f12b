"""While questions are answered."""

from __future__ import annotations

import signal

from e2e.errors import Outcome
from tests.faults.cells.cell import ROLES, Cell
from tests.faults.one_case import Strike
from tests.faults.standin.faults import Fault

PHASE = "evaluation"
STALL = {"stall": 2.0, "stop": 2.0}
REPLIES = {
    "error in 200": "an error in a reply of HTTP 200",
    "invalid JSON": "JSON",
    "empty body": "empty body",
    "half body": "closed within the reply",
    "no HTTP": "not HTTP",
    "endless body": "a reply of more than 16 MiB",
    "truncated": "truncated at 512 tokens",
    "empty": "empty answer",
    "aborted": "finish_reason 'abort'",
    "missing": "0 answers to one question",
    "doubled": "2 answers to one question",
    "of another": "not the answer to the question",
    "wrong model": "from model another",
    "NaN": "NaN",
    "invalid UTF-8": "UTF-8",
}


def _deaths():
    for role in ROLES:
        exits = Fault("exit", PHASE, nth=3, code=1, text="EngineDeadError: see above")
        yield Cell(
            "exits",
            PHASE,
            role,
            Outcome.SERVER_FAILED,
            (f"{role} exited with 1", "EngineDeadError"),
            faults=(exits,),
        )
        for number in (signal.SIGKILL, signal.SIGABRT):
            yield Cell(
                f"dies of {number.name}",
                PHASE,
                role,
                Outcome.SERVER_FAILED,
                (f"{role} was killed by signal {int(number)}", "VLLM::EngineCore"),
                strikes=(Strike(PHASE, role, number),),
            )
        yield Cell(
            "engine dies",
            PHASE,
            role,
            Outcome.SERVER_FAILED,
            (f"{role} has lost its process", "VLLM::EngineCore"),
            faults=(Fault("kill_engine", PHASE),),
        )


def _hangs():
    for role in ROLES:
        for fault, what in (("hangs while /health answers", "hang"), ("frozen", "freeze")):
            yield Cell(
                fault if role != "ffn" or what == "freeze" else "hangs",
                PHASE,
                role,
                Outcome.SERVER_FAILED,
                ("stalled: no answer completed for 2 s", f"[{role}] "),
                faults=(Fault(what, PHASE, nth=4),),
                limits=STALL,
            )


def _answers():
    for name, words in REPLIES.items():
        yield Cell(
            f"answer: {name}",
            PHASE,
            "native",
            Outcome.INVALID_EVALUATION,
            ("answers cannot be judged", words),
            faults=(Fault("reply", PHASE, name=name, nth=3),),
        )
    for code, text in ((500, "Internal Server Error"), (429, "Too Many Requests")):
        for role in ("native", "attention"):
            yield Cell(
                f"answer: HTTP {code}",
                PHASE,
                role,
                Outcome.INVALID_EVALUATION,
                (f"HTTP {code}", text),
                faults=(Fault("status", PHASE, code=code, text=text, nth=3),),
            )
    yield Cell(
        "answer: HTTP 503",
        PHASE,
        "native",
        Outcome.INVALID_EVALUATION,
        ("HTTP 503",),
        faults=(Fault("status", PHASE, code=503, nth=3),),
    )
    for role in ("native", "attention"):
        yield Cell(
            "closed connections",
            PHASE,
            role,
            Outcome.INVALID_EVALUATION,
            ("no connection, or reset before a response",),
            faults=(Fault("reset", PHASE, nth=3),),
        )
        yield Cell(
            "wrong answers",
            PHASE,
            role,
            Outcome.WRONG_ANSWERS,
            ("2 of 7, required 7 of 7 strict", "noticed by number"),
            faults=(Fault("reply", PHASE, name="wrong number", nth=3),),
        )
    yield Cell(
        "answers in another order than asked",
        PHASE,
        "native",
        Outcome.PASSED,
        faults=(Fault("late", PHASE),),
    )


def _logs():
    for fault, acts in (
        ("100 MB of log", Fault("flood", size=100_000_000)),
        ("a line of 100 MB", Fault("flood", size=100_000_000, newlines=False)),
        ("log that is no UTF-8", Fault("garbage")),
    ):
        for when in ("start", PHASE):
            yield Cell(
                fault,
                when,
                "native",
                Outcome.PASSED,
                faults=(Fault(**{**vars(acts), "when": when}),),
            )
    yield Cell(
        "log that is no UTF-8",
        "ready",
        "native",
        Outcome.SERVER_FAILED,
        ("exited with 5", "\ufffd\ufffd half \ufffd", "red bell"),
        faults=(Fault("garbage", "ready"), Fault("exit", "ready", code=5)),
    )
    yield Cell(
        "a line of 100 MB",
        "ready",
        "native",
        Outcome.SERVER_FAILED,
        ("exited with 4",),
        faults=(
            Fault("flood", "ready", size=100_000_000, newlines=False),
            Fault("exit", "ready", code=4),
        ),
    )


CELLS = (*_deaths(), *_hangs(), *_answers(), *_logs())

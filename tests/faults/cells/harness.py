"""The harness itself is told to end, or is killed."""

from __future__ import annotations

from signal import SIGHUP, SIGINT, SIGKILL, SIGTERM, Signals

from e2e.errors import Outcome
from tests.faults.cells.cell import Cell
from tests.faults.one_case import HARNESS, Strike
from tests.faults.standin.faults import Fault

PHASES = ("prepare", "launch", "ready", "claims", "evaluation", "liveness", "stop")
NUMBERS = {
    SIGINT: PHASES,
    SIGKILL: PHASES,
    SIGTERM: ("launch", "evaluation", "stop"),
    SIGHUP: ("ready", "evaluation"),
}
STUBBORN = Fault("hang", "stop")
SECRET = "hf_notForAnybodysEyes"


def _signals():
    for number, phases in NUMBERS.items():
        for phase in phases:
            yield _signal(number, phase)
    for number in (SIGINT, SIGKILL):
        for phase in ("launch", "claims", "evaluation"):
            yield _signal(number, phase, pair=True)


def _signal(number: Signals, phase: str, *, pair: bool = False) -> Cell:
    killed = number is SIGKILL
    return Cell(
        f"{number.name} to the harness of {'a pair' if pair else 'a server'}",
        phase,
        HARNESS,
        None if killed else Outcome.INTERRUPTED,
        _told_of_the_kill(phase) if killed else (f"{number.name} ended the run",),
        strikes=(Strike(phase, HARNESS, number),),
        pair=pair,
    )


def _told_of_the_kill(phase: str) -> tuple[str, ...]:
    return () if phase == "prepare" else ("ended without a word",)


def _twice():
    for number in (SIGINT, SIGTERM):
        yield Cell(
            f"{number.name} twice",
            "stop",
            HARNESS,
            Outcome.INTERRUPTED,
            (f"{number.name} ended the run", "had to be killed"),
            within=25,
            faults=(STUBBORN,),
            strikes=(Strike("evaluation", HARNESS, number), Strike("stop", HARNESS, number)),
        )


def _secrets():
    for phase in ("start", "ready"):
        yield Cell(
            "a server prints its secrets",
            phase,
            "native",
            Outcome.SERVER_FAILED,
            ("native exited with 1", "[redacted]"),
            faults=(Fault("tell_secrets", phase),),
            variables={"HF_TOKEN": SECRET},
        )


CELLS = (*_signals(), *_twice(), *_secrets())

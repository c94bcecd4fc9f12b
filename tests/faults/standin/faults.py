"""What a stand-in can be told to do wrong, and when.

A fault is data: it travels to the stand-in as JSON in AFD_STANDIN. Used by tests to say it, and by
the stand-in to do it.

    when        it strikes
    start       before the port is open, and before FFN says that it is ready
    ready       the port is open, /health does not say 200 yet
    probe       a token is asked for the first time
    claims      a token is asked for again: is it generated through FFN?
    evaluation  at the `nth` question (from 1), and at all later ones
    stop        SIGTERM has come
    stopped     all is ended but the leader itself

FFN meets probe, claims and evaluation when Attention sends it what it was asked.

    what            the stand-in
    exit            prints `text` and exits with `code`
    kill            its leader dies of `signal`; whatever else it has started lives on
    kill_engine     its engine process dies; the API server stays
    hang            does nothing more: never opens its port, is never ready, never answers;
                    `stubborn`, or when it strikes at the stop: it ignores SIGTERM
    freeze          stops itself with SIGSTOP
    daemon          starts a process `name` in a session of its own, with no environment, whose
                    parent is gone; `stubborn`: it ignores SIGTERM
    child           starts a process that lives on when the leader is gone; `stubborn` as above
    zombie          leaves a child unreaped
    shared_memory   leaves `name` in /dev/shm; `held`: keeps it open until it ends
    socket          binds a Unix socket at `path` and leaves it
    keep_port       hands its port to a process that lives on
    flood           writes `size` bytes of log; `newlines`: in lines, else in one
    garbage         writes log that is no UTF-8, with control characters
    tell_secrets    prints its API key and HF_TOKEN, and exits
    other_mode      runs with graphs where it was told eager, and the other way round
    no_link         runs as plain vLLM: joins no other role
    bypass          generates without waiting for FFN
    status          answers completions with HTTP `code` and `text`
    late            answers every second question later than the next
    reset           closes the connection of a completion without an answer
    reply           answers as `name` says (see `replies`)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

VARIABLE = "AFD_STANDIN"


@dataclass(frozen=True)
class Fault:
    """`role` limits it to one role: native, attention or ffn."""

    what: str
    when: str = "start"
    role: str | None = None
    nth: int = 1
    code: int = 1
    signal: int = 9
    text: str = ""
    name: str = ""
    path: str = ""
    size: int = 0
    stubborn: bool = False
    held: bool = False
    newlines: bool = True


@dataclass(frozen=True)
class Orders:
    """All that a stand-in is told. `answers`: a file of GSM8K rows that it can answer."""

    faults: Sequence[Fault] = ()
    answers: str = ""
    start_seconds: float = 0.0
    answer_seconds: float = 0.0

    def due(self, when: str, role: str, nth: int = 1) -> list[Fault]:
        return [
            fault
            for fault in self.faults
            if fault.when == when and fault.role in (None, role) and fault.nth <= nth
        ]

    def told(self, what: str, role: str) -> bool:
        return any(fault.what == what and fault.role in (None, role) for fault in self.faults)

    def variables(self) -> dict[str, str]:
        """What to set in the stand-in's environment."""
        return {VARIABLE: json.dumps(asdict(self))}

    @classmethod
    def read(cls, variables: Mapping[str, str]) -> Orders:
        told = json.loads(variables.get(VARIABLE, "{}"))
        faults = [Fault(**fault) for fault in told.pop("faults", ())]
        return cls(faults=faults, **told)

"""How a server ends, and what it leaves."""

from __future__ import annotations

import signal
from collections.abc import Mapping

from e2e.errors import Outcome
from tests.faults.cells.cell import ROLES, TOKEN, Cell
from tests.faults.one_case import Strike
from tests.faults.standin.faults import Fault

STOP: Mapping[str, float] = {"stop": 2.0}
CLEAN = {"native": "0", "attention": "0", "ffn": "0 or 1"}


def _residue(fault: str, phase: str, role: str, *words: str, **more: object) -> Cell:
    return Cell(fault, phase, role, Outcome.RESIDUE_LEFT, words, **more)  # pyright: ignore


def _ends():
    for role in ROLES:
        killed = f"{role} had to be killed, 2 s after SIGTERM"
        for fault, what in (("ignores SIGTERM", "hang"), ("frozen", "freeze")):
            acts = (Fault(what, "stop"),)
            yield _residue(fault, "stop", role, killed, faults=acts, limits=STOP)
        exits = Fault("exit", "stop", code=3, text="leaked")
        yield Cell(
            "another exit code",
            "stop",
            role,
            Outcome.SERVER_FAILED,
            (f"{role} exited with 3 when stopped, expected {CLEAN[role]}",),
            faults=(exits,),
        )
        yield Cell(
            "dies of SIGKILL",
            "stop",
            role,
            Outcome.SERVER_FAILED,
            (f"{role} was killed by signal 9 when stopped", "VLLM::EngineCore"),
            strikes=(Strike("stop", role, signal.SIGKILL),),
        )
    yield Cell("an exit code that is expected", "stop", "ffn", Outcome.PASSED)
    swallows = "trap '' TERM\n$VLLM \"$@\" &\nwhile :; do wait; done"
    yield _residue(
        "a wrapper that swallows signals",
        "stop",
        "native",
        "native had to be killed, 2 s after SIGTERM",
        wrapper=swallows,
        limits=STOP,
    )


def _stay():
    for role in ROLES:
        for phase in ("ready", "evaluation", "stop", "stopped")[0 if role == "native" else 2 :]:
            child = Fault("child", phase)
            yield _residue(
                "a child outlives its leader",
                phase,
                role,
                "VLLM::Straggler",
                "ran on after its leader was gone",
                faults=(child,),
            )
        for phase in ("evaluation", "stopped"):
            daemon = Fault("daemon", phase, name=f"kworker/{TOKEN}")
            yield _residue(
                "a daemon with another name, no environment, a session of its own",
                phase,
                role,
                f"kworker/{TOKEN}",
                "and had to be ended",
                faults=(daemon,),
            )
        stubborn = Fault("child", "evaluation", stubborn=True)
        yield _residue(
            "a child that ignores SIGTERM",
            "evaluation",
            role,
            "VLLM::Straggler",
            faults=(stubborn,),
            limits=STOP,
        )
        for phase in ("start", "evaluation", "stop")[0 if role == "native" else 2 :]:
            yield Cell("a zombie", phase, role, Outcome.PASSED, faults=(Fault("zombie", phase),))


def _left():
    for role in ROLES:
        for phase in ("start", "evaluation"):
            segment = Fault("shared_memory", phase, name=f"psm_{TOKEN}", held=True)
            yield _residue(
                "shared memory is left",
                phase,
                role,
                f"/dev/shm/psm_{TOKEN}, 4096 bytes, left by a role",
                faults=(segment,),
                answer_seconds=0.5,
            )
        bound = Fault("socket", "start", path=f"/tmp/{TOKEN}.sock")
        yield _residue(
            "a socket is left",
            "start",
            role,
            f"/tmp/{TOKEN}.sock, left by a role",
            faults=(bound,),
        )
        port = Fault("keep_port", "ready")
        yield _residue(
            "the port is kept by a child",
            "ready",
            role,
            "VLLM::PortKeeper",
            faults=(port,),
        )


CELLS = (*_ends(), *_stay(), *_left())

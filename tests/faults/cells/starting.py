"""From the launch to proven claims."""

from __future__ import annotations

import signal

from e2e.errors import Outcome
from tests.faults.cells.cell import ROLES, TOKEN, Cell
from tests.faults.one_case import Strike
from tests.faults.standin.faults import Fault

DEAD_PROXY = "http://127.0.0.1:9"
ENDS = (
    ("bad argument", 2, "vllm: error: unrecognized arguments: --no-such-flag"),
    ("out of memory", 1, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"),
    ("import error", 1, "ImportError: libcudart.so.12: cannot open shared object file"),
)
READY = {"ready": 3.0}
PROBE = {"probe": 2.0}


def _failed(fault: str, phase: str, role: str, *words: str, **more: object) -> Cell:
    return Cell(fault, phase, role, Outcome.SERVER_FAILED, words, **more)  # pyright: ignore


def _ends():
    for role in ROLES:
        for fault, code, text in ENDS if role == "native" else ENDS[:1]:
            exits = Fault("exit", "start", code=code, text=text)
            words = f"{role} exited with {code}", text
            yield _failed(fault, "start", role, *words, faults=(exits,))
        exits = Fault("exit", "ready", code=1, text="EngineDeadError")
        yield _failed("exits", "ready", role, f"{role} exited with 1", faults=(exits,))
        for when, number in (("start", signal.SIGKILL), ("ready", signal.SIGSEGV)):
            dies = Fault("kill", when, signal=number)
            yield _failed(
                f"dies of {number.name}",
                when,
                role,
                f"{role} was killed by signal {int(number)}",
                "VLLM::EngineCore",
                faults=(dies,),
            )


def _never_ready():
    for role in ROLES:
        for what, when in (("hang", "start"), ("hang", "ready"), ("freeze", "start")):
            yield _failed(
                "never ready" if what == "hang" else "frozen",
                when,
                role,
                f"{role} was not ready within 3 s",
                f"[{role}]",
                faults=(Fault(what, when),),
                limits=READY,
            )
    stubborn = Fault("hang", "start", stubborn=True)
    for role in ROLES:
        yield _failed(
            "never ready, and ignores SIGTERM",
            "start",
            role,
            f"{role} was not ready within 3 s",
            f"{role} had to be killed, 1 s after SIGTERM",
            faults=(stubborn,),
            limits={**READY, "stop": 1.0},
        )


def _no_token():
    for role in ("native", "attention"):
        for fault, acts, seen in (
            ("200 without a token", Fault("hang", "probe"), "no answer within 2 s"),
            ("500", Fault("status", "probe", code=500, text="oom"), "HTTP 500"),
            ("error in 200", Fault("reply", "probe", name="error in 200"), "an error in a reply"),
            ("empty body", Fault("reply", "probe", name="empty body"), ""),
            ("wrong model", Fault("reply", "probe", name="wrong model"), "from model another"),
        ):
            words = f"{role} generates no token", seen
            yield _failed(fault, "probe", role, *words, faults=(acts,), limits=PROBE)
        exits = Fault("exit", "probe", code=1, text="EngineDeadError")
        yield _failed("exits", "probe", role, f"{role} exited with 1", faults=(exits,))
        dead = Fault("kill_engine", "probe")
        words = f"{role} generates no token", "no answer within 2 s"
        yield _failed("engine dies", "probe", role, *words, faults=(dead,), limits=PROBE)
    words = "native generates no token", "no answer within 2 s"
    resets = Fault("reset", "probe")
    yield _failed("closed connections", "probe", "native", *words, faults=(resets,), limits=PROBE)
    yield Cell("one closed connection", "probe", "attention", Outcome.PASSED, faults=(resets,))
    words = "attention generates no token", "[ffn]"
    for what in ("hang", "freeze"):
        acts = Fault(what, "probe")
        fault = "hangs" if what == "hang" else "frozen"
        yield _failed(fault, "probe", "ffn", *words, faults=(acts,), limits=PROBE)
    exits = Fault("exit", "probe", code=1, text="ncclRemoteError")
    yield _failed("exits", "probe", "ffn", "ffn exited with 1", "ncclRemoteError", faults=(exits,))


def _launch():
    for role in ROLES:
        yield Cell(
            "an exception between spawn and guard",
            "launch",
            role,
            Outcome.HARNESS_ERROR,
            ("the harness itself failed: RuntimeError: boom", "please report this"),
            broken="e2e.systems.deployment.LiveRole",
        )
    yield Cell(
        "ambient proxies",
        "ready",
        "native",
        Outcome.PASSED,
        variables={
            f"{scheme}_{word}": DEAD_PROXY
            for scheme, word in (("HTTP", "PROXY"), ("HTTPS", "PROXY"), ("ALL", "PROXY"))
        }
        | {"http_proxy": DEAD_PROXY},
    )


def _unproven(fault: str, role: str, *words: str, **more: object) -> Cell:
    return Cell(fault, "claims", role, Outcome.CLAIM_NOT_PROVEN, words, **more)  # pyright: ignore


def _claims():
    for role in ROLES:
        other = Fault("other_mode")
        yield _unproven(
            "another mode than the profile's", role, f"{role} execution mode", faults=(other,)
        )
        smuggles = "export VLLM_MOE_ROUTING_SIMULATION_STRATEGY=uniform"
        yield _unproven(
            "a wrapper sets a variable for benchmarks",
            role,
            "VLLM_MOE_ROUTING_SIMULATION_STRATEGY",
            wrapper=f'{smuggles}\nexec $VLLM "$@"',
        )
        yield Cell(
            "dies of SIGKILL",
            "claims",
            role,
            Outcome.SERVER_FAILED,
            (f"{role} was killed by signal 9",),
            strikes=(Strike("claims", role, signal.SIGKILL),),
        )
    yield _unproven(
        "a child with another name and a clean environment",
        "native",
        "native plugins asked for",
        f"kworker/{TOKEN}",
        faults=(Fault("daemon", "start", name=f"kworker/{TOKEN}"),),
    )
    yield _unproven(
        "plain vLLM under another label",
        "attention",
        "attention ranks joined",
        faults=(Fault("no_link"),),
    )
    yield _unproven(
        "tokens that bypass FFN",
        "attention",
        "tokens come through ffn",
        "stopped: a token",
        faults=(Fault("bypass"),),
    )
    never = Fault("no_link")
    words = ("ffn was not ready within 3 s",)
    yield _failed(
        "plain vLLM under another label", "ready", "ffn", *words, faults=(never,), limits=READY
    )
    yield _unproven(
        "hangs",
        "ffn",
        "tokens come through ffn",
        "running on: no answer within 2 s",
        faults=(Fault("hang", "claims"),),
        limits=PROBE,
    )
    exits = Fault("exit", "claims", code=1, text="ncclRemoteError")
    yield _failed("exits", "claims", "ffn", "ffn exited with 1", faults=(exits,))
    exits = Fault("exit", "claims", code=1, text="EngineDeadError")
    yield _failed("exits", "claims", "attention", "attention exited with 1", faults=(exits,))
    yield Cell(
        "variables for benchmarks in the harness's environment",
        "claims",
        "native",
        Outcome.PASSED,
        variables={"VLLM_MOE_ROUTING_SIMULATION_STRATEGY": "uniform", "AFD_BENCHMARK_X": "1"},
    )


CELLS = (*_ends(), *_never_ready(), *_no_token(), *_launch(), *_claims())

"""What is missing or taken before anything is launched."""

from __future__ import annotations

from e2e.errors import Outcome
from tests.faults.cells.cell import Cell

PHASE = "before the launch"


def _missing(fault: str, damage: str, *words: str, role: str = "native") -> Cell:
    return Cell(
        fault=fault,
        phase=PHASE,
        role=role,
        outcome=Outcome.SETUP_MISSING,
        words=words,
        within=20,
        damage=damage,
    )


CELLS = (
    _missing("no tokenizer", "no tokenizer", "checkpoint tokenizer", "none of tokenizer.json"),
    _missing("weights cut short", "weights cut", "checkpoint weights", "its header says"),
    _missing(
        "config.json contradicts the profile",
        "other config",
        "checkpoint config",
        "num_experts is 4, not 8",
    ),
    _missing("no checkpoint", "no checkpoint", "is no folder", "nothing is downloaded"),
    _missing("no data set", "no data set", "/no/such/gsm8k does not exist", "AFD_E2E_GSM8K"),
    _missing("no server", "no server", "/no/such/vllm", "is not there or not executable"),
    _missing("no vLLM beside the server", "no vllm", "has no vllm"),
    _missing(
        "plugin without its entry point",
        "no entry point",
        "no entry point 'afd_standin'",
        "on PYTHONPATH alone it registers nothing",
        role="attention",
    ),
    _missing("not opted in", "not opted in", "AFD_STANDIN_CASES=1 is not set"),
    _missing("port taken", "http port", "is used by", "AFD_E2E_PORT_BASE"),
    _missing("port of FFN taken", "ffn port", "is used by", role="ffn"),
    _missing("port of the connector taken", "afd port", "is used by", role="ffn"),
    _missing("disk full", "disk full", "disk: 0.00 GiB free"),
    Cell("port in TIME_WAIT", PHASE, "native", Outcome.PASSED, damage="time wait"),
)

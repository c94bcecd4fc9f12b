"""CPU time of a whole GSM8K evaluation, 8 shots at concurrency 64, against a server that answers
at once: what is left is the harness's own cost.

    AFD_E2E_GSM8K=DIR python benchmarks/oracle_client.py      (without it: the bundled set)

Beside it, where they are, on the same stub in the same run:
    AFD_E2E_LM_EVAL_PYTHON   an interpreter with lm_eval[api]
    AFD_E2E_VLLM_GSM8K       vLLM's own tests/evals/gsm8k/gsm8k_eval.py (needs vllm here)

CPU seconds are of the whole process: imports, data set, prompts, requests and scores. The exit
code is 1 if ours are more than 3.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONCURRENCY = 64
SHOTS = 8
MOST_CPU_SECONDS = 3.0
HERE = Path(__file__).parent
BUNDLED = HERE.parent / "e2e" / "oracle" / "data"


def main() -> int:
    dataset = Path(os.environ.get("AFD_E2E_GSM8K", BUNDLED)).absolute()
    with stub() as url, tempfile.TemporaryDirectory() as scratch:
        seconds = {
            name: measure(name, [*command, url, str(dataset)], Path(scratch))
            for name, command in contestants().items()
        }
    ours = seconds["afd-e2e"]
    for name, theirs in seconds.items():
        print(f"{name:10} {theirs:6.2f} CPU-s   {theirs / ours:5.1f} x")
    if ours > MOST_CPU_SECONDS:
        print(f"afd-e2e took more than {MOST_CPU_SECONDS:g} CPU-s")
        return 1
    return 0


def contestants() -> dict[str, list[str]]:
    """Command lines; each is given the stub's URL and the data set."""
    found = {"afd-e2e": [sys.executable, str(HERE / "oracle_ours.py")]}
    if python := os.environ.get("AFD_E2E_LM_EVAL_PYTHON"):
        found["lm-eval"] = [python, str(HERE / "oracle_lm_eval.py")]
    if script := os.environ.get("AFD_E2E_VLLM_GSM8K"):
        found["vLLM"] = [sys.executable, str(HERE / "oracle_vllm.py"), script]
    return found


def measure(name: str, command: list[str], scratch: Path) -> float:
    """User and system seconds of the command and its children; its output is shown if it fails."""
    root = str(HERE.parent)
    environment = {**os.environ, "PYTHONPATH": root, "HF_HOME": str(scratch), "HF_HUB_OFFLINE": "1"}
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, env=environment, cwd=scratch, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{name} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    print(f"{name:10} {time.monotonic() - begin:6.2f} s: {done.stdout.strip().splitlines()[-1]}")
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


@contextmanager
def stub() -> Iterator[str]:
    """A server in a process of its own; the URL without `/v1`."""
    command = [sys.executable, str(HERE / "oracle_stub.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()


if __name__ == "__main__":
    sys.exit(main())

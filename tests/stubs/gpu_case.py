"""Running a profile on real GPUs for tests that do something to it; gated as the profile is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from e2e import gate, profile
from e2e.profile.model import Profile

_HOLDER = """
import sys, torch
held = torch.empty(512 << 20, dtype=torch.uint8, device="cuda")
print("held", flush=True)
sys.stdin.readline()
"""


def source(request: pytest.FixtureRequest, default: str) -> str:
    """The profile that `--profile` names, else the default."""
    return (request.config.getoption("--profile") or [default])[0]


def opted_in(source: str) -> Profile:
    """Skips with the variable that opts in."""
    loaded = profile.load(profile.find(source))
    if loaded.hardware.backend != "gpu" or gate.missing_opt_in(loaded, os.environ):
        pytest.skip(gate.opt_in_line(loaded))
    return loaded


def device_names(count: int) -> list[str]:
    """The first devices of `AFD_E2E_DEVICES`, or of the machine, as a server is told of them."""
    return os.environ.get("AFD_E2E_DEVICES", "0,1,2,3,4,5,6,7").split(",")[:count]


@contextmanager
def stranger(device: str) -> Iterator[subprocess.Popen[str]]:
    """A process of somebody else with 512 MiB on a device."""
    pytest.importorskip("torch", reason="something has to hold memory")
    command = [sys.executable, "-c", _HOLDER]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": device}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()

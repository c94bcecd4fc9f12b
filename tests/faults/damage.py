"""What can be wrong with a set-up, by its name."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import pytest

from tests.faults import setting
from tests.faults.playing import Stage

Variables = dict[str, str]

TAKEN = {"http port": 0, "ffn port": 1, "afd port": 2}
"""A listener on a port of the plan: its place after the first."""


@contextmanager
def done(name: str, stage: Stage, folder: Path) -> Iterator[Variables]:
    """What has to be set in the harness's environment, beside what is done to the stage and to the
    evidence `folder`."""
    if name in TAKEN:
        with socket.create_server(("127.0.0.1", _next_port(stage) + TAKEN[name])):
            yield {}
    elif name == "disk full":
        with mounted(folder, "64k"):
            yield {}
    elif name:
        yield _DAMAGES[name](stage)
    else:
        yield {}


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[None]:
    """A file system of its own in `folder`; skips where that is not allowed."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs leave to mount a file system")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _next_port(stage: Stage) -> int:
    port = next(stage.ports)
    stage.ports = chain([port], stage.ports)
    return port


def _time_wait(stage: Stage) -> Variables:
    """A connection that the side of the port has closed first."""
    with socket.create_server(("127.0.0.1", _next_port(stage))) as listener:
        client = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
        accepted.close()
        client.recv(1)
        client.close()
    return {}


def _no_tokenizer(stage: Stage) -> Variables:
    (stage.model / "tokenizer.json").unlink()
    return {}


def _weights_cut(stage: Stage) -> Variables:
    header = b'{"a": {"data_offsets": [0, 4096]}}'
    weights = stage.model / "model.safetensors"
    weights.write_bytes(len(header).to_bytes(8, "little") + header + bytes(100))
    return {}


def _other_config(stage: Stage) -> Variables:
    setting.checkpoint(stage.model, experts=4)
    return {}


def _no_vllm(stage: Stage) -> Variables:
    """A server in an interpreter that has nothing."""
    python = stage.folder / "python3"
    python.write_text('#!/bin/sh\necho \'[{"python": "3.11"}, {}, []]\'\n')
    python.chmod(0o755)
    stage.executable.write_text(f"#!{python}\n")
    return {}


def _no_entry_point(stage: Stage) -> Variables:
    stage.packages = stage.folder / "other"
    stage.packages.mkdir()
    setting.packages(stage.packages, plugin="another")
    return {}


_DAMAGES: dict[str, Callable[[Stage], Variables]] = {
    "time wait": _time_wait,
    "no tokenizer": _no_tokenizer,
    "weights cut": _weights_cut,
    "other config": _other_config,
    "no vllm": _no_vllm,
    "no entry point": _no_entry_point,
    "no checkpoint": lambda stage: {"AFD_STANDIN_MODEL": "/no/such/model"},
    "no data set": lambda stage: {"AFD_E2E_GSM8K": "/no/such/gsm8k"},
    "no server": lambda stage: {"AFD_CPU_E2E_VLLM_BIN": "/no/such/vllm"},
    "not opted in": lambda stage: {"AFD_STANDIN_CASES": ""},
}

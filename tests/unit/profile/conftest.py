"""A small profile that is right, and what is said of one that is not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from e2e import profile
from e2e.profile.problems import InvalidProfile, Problem

RIGHT = """\
profile: my-profile
description: Native and AFD, eager, graph and graph with DBO.
hardware:
  backend: gpu
  devices: 4
  memory_gib: 16
model:
  variable: AFD_GPU_E2E_MODEL
  canary: deepseek_v2
  config:
    architectures: [DeepseekV2ForCausalLM]
gate:
  opt_in:
    AFD_E2E_BACKEND: gpu
  needs: [AFD_E2E_DEVICES]
server:
  name: my-model
  port: 8000
  args:
    max-model-len: 2048
    language-model-only: true
afd:
  plugin: afd
  connector: P2pNcclAFDConnector
  port: 1239
environment:
  set:
    PYTHONUNBUFFERED: "1"
  scrub: [AFD_BENCHMARK_*]
evaluation:
  dataset: bundled
  samples: 7
  required: 6
  canary_checks: [text, fingerprint]
  concurrency: 4
time_limits:
  ready: 600
teardown:
  exit_codes:
    ffn: [1]
cases:
  baseline-eager:
    native: {dp: 2, tp: 2, ep: 4, devices: [0, 1, 2, 3]}
    execution: {mode: eager}
  afd-eager-2a2f:
    attention: {dp: 2, devices: [0, 1]}
    ffn: {dp: 2, ep: 2, devices: [2, 3]}
    execution: {mode: eager}
  afd-graph-dbo-2a2f:
    attention: {dp: 2, devices: [0, 1]}
    ffn: {dp: 2, ep: 2, devices: [2, 3]}
    execution:
      mode: graph
      capture_size: 8
      dbo: {decode_threshold: 1, prefill_threshold: 8}
performance:
  native: {dp: 4, ep: 4, devices: [0, 1, 2, 3]}
  against: afd-eager-2a2f
  load: {input_tokens: 1024, output_tokens: 128, requests: 64, rate: 5, concurrency: 8}
"""

Write = Callable[..., Path]
Refused = Callable[..., list[Problem]]


@pytest.fixture
def right() -> str:
    return RIGHT


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a profile beside the others of the test, by default `my-profile.yaml`."""

    def write(text: str | bytes, name: str = "my-profile") -> Path:
        file = tmp_path / f"{name}.yaml"
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    return write


@pytest.fixture
def refused(write: Write) -> Refused:
    """The problems of a text that has to be refused."""

    def refused(text: str | bytes) -> list[Problem]:
        with pytest.raises(InvalidProfile) as caught:
            profile.load(write(text))
        return caught.value.problems

    return refused

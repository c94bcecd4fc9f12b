from dataclasses import replace
from typing import Any

import pytest

from e2e.reference_afd.configure import Server, refusals, settings_of
from e2e.reference_afd.settings import AfdSettings, read

ATTENTION = read({"role": "attention", "connector": "GlooAFDConnector", "port": 1239})
FFN_OF_TWO = read(
    {"role": "ffn", "connector": "GlooAFDConnector", "port": 1239, "num_ffn_ranks": 2}
)
SERVER = Server(
    device="cpu",
    architecture="Qwen3MoeForCausalLM",
    dtype="torch.bfloat16",
    dp=1,
    tp=1,
    pp=1,
    expert_parallel=False,
    eager=True,
    quantization=None,
    load_format="auto",
)


def test_serves_what_it_can() -> None:
    assert refusals(ATTENTION, SERVER) == []
    assert refusals(FFN_OF_TWO, replace(SERVER, dp=2, expert_parallel=True)) == []


@pytest.mark.parametrize(
    ("settings", "change", "word"),
    [
        (ATTENTION, {"device": "cuda"}, "device"),
        (ATTENTION, {"architecture": "LlamaForCausalLM"}, "LlamaForCausalLM"),
        (ATTENTION, {"dtype": "torch.float16"}, "torch.float16"),
        (ATTENTION, {"tp": 2}, "tensor parallel"),
        (ATTENTION, {"pp": 2}, "pipeline parallel"),
        (ATTENTION, {"dp": 2}, "num_attention_ranks is 1, but the data parallel size is 2"),
        (FFN_OF_TWO, {"dp": 1, "expert_parallel": True}, "num_ffn_ranks is 2"),
        (FFN_OF_TWO, {"dp": 2}, "--enable-expert-parallel"),
        (ATTENTION, {"eager": False}, "--enforce-eager"),
        (ATTENTION, {"quantization": "fp8"}, "fp8"),
        (ATTENTION, {"load_format": "dummy"}, "dummy"),
        (ATTENTION, {"extras": ("dual-batch overlap",)}, "dual-batch overlap"),
    ],
)
def test_refuses(settings: AfdSettings, change: dict[str, Any], word: str) -> None:
    (reason,) = refusals(settings, replace(SERVER, **change))
    assert word in reason


@pytest.mark.parametrize("additional", [{}, None, {"other": 1}])
def test_leaves_native_servers_alone(additional: object) -> None:
    class Config:
        additional_config = additional

    config: Any = Config()
    assert settings_of(config) is None

"""Where a key of config.json is looked for."""

from e2e.claims.checkpoint import differences

_NESTED = {
    "architectures": ["Qwen3_5MoeForConditionalGeneration"],
    "text_config": {"num_experts": 256, "num_experts_per_tok": 8},
    "quantization_config": {"quant_method": "fp8"},
}


def test_at_the_top_or_in_the_text_config() -> None:
    expected = {
        "architectures": ["Qwen3_5MoeForConditionalGeneration"],
        "num_experts": 256,
        "text_config.num_experts_per_tok": 8,
        "quantization_config.quant_method": "fp8",
    }
    assert differences(_NESTED, expected) == []
    assert differences({"num_experts": 256}, {"num_experts": 256}) == []


def test_the_top_counts_first() -> None:
    config = {"num_experts": 8, "text_config": {"num_experts": 256}}
    assert differences(config, {"num_experts": 256}) == ["num_experts is 8, not 256"]


def test_wrong_or_absent() -> None:
    (wrong,) = differences(_NESTED, {"num_experts": 128})
    assert wrong == "num_experts is 256, not 128"
    (absent,) = differences(_NESTED, {"n_routed_experts": 64})
    assert absent.startswith("n_routed_experts is absent")

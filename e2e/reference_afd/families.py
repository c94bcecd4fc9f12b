"""The model families that can be split, as data: what each role leaves out of vLLM's own model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """`module` is where vLLM defines the decoder. Attention replaces its `ffn_blocks` by an
    exchange; FFN leaves its `attention_parts` out. `splits_experts`: every block is made of routed
    experts alone, so that several FFN ranks' shares add up to the whole."""

    module: str
    ffn_blocks: tuple[str, ...]
    attention_parts: tuple[str, ...]


FAMILIES = {
    "Qwen3MoeForCausalLM": Family(
        module="vllm.model_executor.models.qwen3_moe",
        ffn_blocks=("Qwen3MoeSparseMoeBlock", "Qwen3MoeMLP"),
        attention_parts=(
            "Qwen3MoeAttention",
            "RMSNorm",
            "VocabParallelEmbedding",
            "ParallelLMHead",
        ),
    ),
}

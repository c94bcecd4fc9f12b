"""The model families that can be split, as data: what each role leaves out of vLLM's own model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """`module` is where vLLM defines the decoder. Attention has an exchange in place of each of its
    `ffn_blocks`; FFN leaves its `attention_parts` out."""

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
    "DeepseekV2ForCausalLM": Family(
        module="vllm.model_executor.models.deepseek_v2",
        ffn_blocks=("DeepseekV2MoE", "DeepseekV2MLP"),
        attention_parts=(
            "DeepseekV2Attention",
            "DeepseekV2MLAAttention",
            "RMSNorm",
            "VocabParallelEmbedding",
            "ParallelLMHead",
        ),
    ),
}

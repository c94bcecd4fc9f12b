"""Qwen3-MoE: grouped-query attention with normalised queries and keys, softmax router."""

from e2e.canary.families.family import Attention, Family

_ATTENTION = "model.layers.{layer}.self_attn."

FAMILY = Family(
    name="qwen3_moe",
    config={
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "hidden_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "head_dim": 32,
        "intermediate_size": 64,
        "moe_intermediate_size": 32,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "output_router_logits": False,
        "router_aux_loss_coef": 0.0,
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "max_position_embeddings": 4096,
        "sliding_window": None,
        "use_sliding_window": False,
        "tie_word_embeddings": False,
        "initializer_range": 0.05,
        "use_cache": True,
    },
    attentions=(
        Attention(
            layers=(0, 1),
            heads=4,
            head_rows=_ATTENTION + "q_proj.weight",
            head_columns=_ATTENTION + "o_proj.weight",
            matrices={
                "query": _ATTENTION + "q_proj.weight",
                "key": _ATTENTION + "k_proj.weight",
                "value": _ATTENTION + "v_proj.weight",
                "output": _ATTENTION + "o_proj.weight",
            },
        ),
    ),
    moe_layers=(0, 1),
    experts=8,
    router="model.layers.{layer}.mlp.gate.weight",
    expert="model.layers.{layer}.mlp.experts.{expert}.{projection}_proj.weight",
)

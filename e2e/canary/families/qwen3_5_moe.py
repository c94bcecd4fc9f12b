"""Qwen3.5-MoE: a gated delta net, then gated grouped-query attention; a shared expert with a gate
of its own. Its vision model, which nothing here trains or serves, is there by its settings alone.
"""

from e2e.canary.families.family import Attention, Family

_PREFIX = "model.language_model."
_LAYER = _PREFIX + "layers.{layer}."
_LINEAR = _LAYER + "linear_attn."
_FULL = _LAYER + "self_attn."
_MLP = _LAYER + "mlp."

FAMILY = Family(
    name="qwen3_5_moe",
    config={
        "architectures": ["Qwen3_5MoeForConditionalGeneration"],
        "model_type": "qwen3_5_moe",
        "tie_word_embeddings": False,
        "text_config": {
            "model_type": "qwen3_5_moe_text",
            "hidden_size": 128,
            "num_hidden_layers": 2,
            "layer_types": ["linear_attention", "full_attention"],
            "full_attention_interval": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 64,
            "attn_output_gate": True,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 64,
            "linear_value_head_dim": 64,
            "linear_conv_kernel_dim": 4,
            "mamba_ssm_dtype": "float32",
            "moe_intermediate_size": 32,
            "shared_expert_intermediate_size": 32,
            "num_experts": 8,
            "num_experts_per_tok": 2,
            "output_router_logits": False,
            "router_aux_loss_coef": 0.0,
            "hidden_act": "silu",
            "attention_bias": False,
            "attention_dropout": 0.0,
            "rms_norm_eps": 1e-6,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10000.0,
                "partial_rotary_factor": 0.25,
                "mrope_section": [3, 3, 2],
                "mrope_interleaved": True,
            },
            "max_position_embeddings": 4096,
            "tie_word_embeddings": False,
            "initializer_range": 0.05,
            "use_cache": True,
        },
        "vision_config": {
            "depth": 1,
            "hidden_size": 64,
            "intermediate_size": 64,
            "num_heads": 2,
            "out_hidden_size": 128,
            "num_position_embeddings": 16,
        },
    },
    attentions=(
        Attention(
            layers=(0,),
            heads=4,
            head_rows=_LINEAR + "in_proj_z.weight",
            head_columns=_LINEAR + "out_proj.weight",
            matrices={
                "linear query, key and value": _LINEAR + "in_proj_qkv.weight",
                "linear gate": _LINEAR + "in_proj_z.weight",
                "linear step": _LINEAR + "in_proj_b.weight",
                "linear decay": _LINEAR + "in_proj_a.weight",
                "linear output": _LINEAR + "out_proj.weight",
            },
        ),
        Attention(
            layers=(1,),
            heads=4,
            head_rows=_FULL + "q_proj.weight",
            head_columns=_FULL + "o_proj.weight",
            matrices={
                "query and gate": _FULL + "q_proj.weight",
                "key": _FULL + "k_proj.weight",
                "value": _FULL + "v_proj.weight",
                "output": _FULL + "o_proj.weight",
            },
        ),
    ),
    moe_layers=(0, 1),
    experts=8,
    router=_MLP + "gate.weight",
    expert=_MLP + "experts.{expert}.{projection}_proj.weight",
    matrices={
        "shared gate": _MLP + "shared_expert.gate_proj.weight",
        "shared up": _MLP + "shared_expert.up_proj.weight",
        "shared down": _MLP + "shared_expert.down_proj.weight",
        "gate of the shared expert": _MLP + "shared_expert_gate.weight",
    },
    prefix=_PREFIX,
)

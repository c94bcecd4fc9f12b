"""DeepSeek-V2: multi-head latent attention of the dimensions that GPU kernels accept, shared
experts beside the routed ones."""

from e2e.canary.families.family import Attention, Family

_ATTENTION = "model.layers.{layer}.self_attn."
_MLP = "model.layers.{layer}.mlp."

FAMILY = Family(
    name="deepseek_v2",
    config={
        "architectures": ["DeepseekV2ForCausalLM"],
        "model_type": "deepseek_v2",
        "hidden_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "q_lora_rank": None,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "intermediate_size": 64,
        "moe_intermediate_size": 32,
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "n_shared_experts": 1,
        "first_k_dense_replace": 0,
        "moe_layer_freq": 1,
        "n_group": 1,
        "topk_group": 1,
        "topk_method": "greedy",
        "scoring_func": "softmax",
        "norm_topk_prob": False,
        "routed_scaling_factor": 4.0,
        "aux_loss_alpha": 0.0,
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "mlp_bias": False,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "rope_scaling": None,
        "max_position_embeddings": 4096,
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
                "latent": _ATTENTION + "kv_a_proj_with_mqa.weight",
                "key and value": _ATTENTION + "kv_b_proj.weight",
                "output": _ATTENTION + "o_proj.weight",
            },
        ),
    ),
    moe_layers=(0, 1),
    experts=8,
    router=_MLP + "gate.weight",
    expert=_MLP + "experts.{expert}.{projection}_proj.weight",
    matrices={
        "shared gate": _MLP + "shared_experts.gate_proj.weight",
        "shared up": _MLP + "shared_experts.up_proj.weight",
        "shared down": _MLP + "shared_experts.down_proj.weight",
    },
)

import pytest

from e2e.reference_afd.share import Share, Tally, kind

NAMES = {
    "model.embed_tokens.weight": "other",
    "model.layers.0.input_layernorm.weight": "other",
    "model.layers.0.self_attn.q_proj.weight": "attention",
    "model.layers.0.self_attn.k_norm.weight": "attention",
    "model.layers.0.mlp.gate.weight": "router",
    "model.layers.0.mlp.gate_proj.weight": "dense MLP",
    "model.layers.1.mlp.shared_experts.up_proj.weight": "dense MLP",
    "model.layers.0.mlp.experts.3.up_proj.weight": "expert",
    "model.layers.0.mlp.experts.routed_experts.w13_weight": "expert",
    "lm_head.weight": "other",
}


@pytest.mark.parametrize(("name", "expected"), NAMES.items())
def test_kind(name: str, expected: str) -> None:
    assert kind(name) == expected


def test_every_weight_has_exactly_one_role() -> None:
    attention, ffn = Share("attention", 0, 1, 8), Share("ffn", 0, 1, 8)
    assert all(attention.holds(name) != ffn.holds(name) for name in NAMES)
    assert {kind(name) for name in NAMES if attention.holds(name)} == {"attention", "other"}


def test_every_expert_has_exactly_one_ffn_rank() -> None:
    for experts, ranks in ((8, 1), (8, 2), (8, 3), (5, 4)):
        shares = [Share("ffn", rank, ranks, experts).own_experts for rank in range(ranks)]
        assert [expert for share in shares for expert in share] == list(range(experts))
    second = Share("ffn", 1, 2, 8)
    assert second.holds("model.layers.0.mlp.experts.4.up_proj.weight")
    assert not second.holds("model.layers.0.mlp.experts.3.up_proj.weight")
    assert second.holds("model.layers.0.mlp.gate.weight")


def test_tally_names_every_kind() -> None:
    tally = Tally()
    for name in NAMES:
        tally.add(name, 10)
    assert str(tally) == ("2 expert, 1 router, 2 dense MLP, 2 attention, 3 other (100 bytes)")

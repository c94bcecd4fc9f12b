import pytest

from e2e.reference_afd.settings import AfdRefused, read

GOOD = {
    "role": "ffn",
    "connector": "GlooAFDConnector",
    "host": "127.0.0.1",
    "port": 1239,
    "num_attention_ranks": 2,
    "num_ffn_ranks": 1,
    "compute_gate_on_attention": False,
    "connector_extra_config": {"rendezvous_seconds": 30.0},
}


def test_reads_the_real_plugins_keys() -> None:
    settings = read(GOOD)
    assert (settings.role, settings.port, settings.role_ranks) == ("ffn", 1239, 1)
    assert settings.connector_extra_config.rendezvous_seconds == 30
    assert read({**GOOD, "role": "attention"}).role_ranks == 2


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"role": "both"}, "afd.role is 'both'"),
        ({"connector": "P2pNcclAFDConnector"}, "afd.connector is 'P2pNcclAFDConnector'"),
        ({"port": 0}, "afd.port is 0"),
        ({"port": "1239"}, "afd.port is '1239'"),
        ({"num_ffn_ranks": 0}, "afd.num_ffn_ranks is 0"),
        ({"num_attention_ranks": 1.5}, "afd.num_attention_ranks is 1.5"),
        ({"compute_gate_on_attention": True}, "afd.compute_gate_on_attention is True"),
        ({"async_dp": True}, "afd.async_dp is True"),
        ({"rank": 3}, "afd.rank is 3"),
        ({"connector_extra_config": {"rdma": 1}}, "afd.connector_extra_config.rdma is 1"),
    ],
)
def test_refuses(change: dict[str, object], reason: str) -> None:
    with pytest.raises(AfdRefused) as refused:
        read({**GOOD, **change})
    assert [why for why in refused.value.reasons if why.startswith(reason)]
    assert len(refused.value.reasons) == 1


def test_says_all_that_is_wrong_at_once() -> None:
    with pytest.raises(AfdRefused) as refused:
        read({"role": "both", "connector": "none"})
    assert len(refused.value.reasons) == 3


def test_refuses_what_is_not_a_mapping() -> None:
    with pytest.raises(AfdRefused, match="afd is 'ffn'"):
        read("ffn")

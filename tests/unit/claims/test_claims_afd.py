"""Claims of an AFD deployment: they hold on a real one, and fail once on each broken one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from e2e.claims.log import LogFacts
from e2e.claims.observation import Observation
from e2e.claims.packages import Plugin
from e2e.claims.prove import judge_all


def unproven(seen: Observation) -> dict[str, str]:
    return {j.claim.name: j.claim.seen for j in judge_all(seen) if not j.claim.held}


def with_role(seen: Observation, index: int, **changes: object) -> Observation:
    roles = list(seen.roles)
    roles[index] = replace(roles[index], **changes)
    return replace(seen, roles=tuple(roles))


def connected(seen: Observation, *counts: int) -> Observation:
    """So many processes of each role hold a connection to the connector's port."""
    for index, count in enumerate(counts):
        port = frozenset({seen.plan.afd.port}) if seen.plan.afd else frozenset()
        processes = seen.roles[index].processes
        joined = tuple(replace(p, remote_ports=port) for p in processes[:count])
        seen = with_role(seen, index, processes=joined + processes[count:])
    return seen


def silent(seen: Observation) -> Observation:
    """A connector that logs nothing of its ranks, weights and exchanges, as the real plugin."""
    for index, role in enumerate(seen.roles):
        told = {k: v for k, v in role.log.lines.items() if k not in ("joined", "share")}
        told.pop("exchanged", None)
        point = Plugin("afd_plugin:register_afd", "vllm-afd-plugin 0.1")
        packages = replace(role.packages, plugins={"afd_reference": point})
        facts = LogFacts(role.log.name, told, role.log.counts)
        seen = with_role(seen, index, log=facts, packages=packages)
    return seen


def test_everything_holds_on_a_real_pair(afd):
    assert unproven(afd) == {}
    claims = {j.claim.name: j.claim for j in judge_all(afd)}
    assert claims["ffn plugin afd_reference"].seen == (
        "this project's e2e.reference_afd:register of afd-e2e 0.1.0"
    )
    assert claims["tokens cross"].seen.startswith("GlooAFDConnector first exchange: layer 0, 17")
    assert claims["attention weights"].seen.startswith("0 expert, 0 router, 0 dense MLP, 8 atten")


def test_everything_holds_with_two_attention_ranks(afd_2a1f):
    assert unproven(afd_2a1f) == {}
    claims = {j.claim.name: j.claim for j in judge_all(afd_2a1f)}
    assert claims["attention ranks joined"].expected == "2 of 3 ranks"
    assert claims["attention expert parallelism"].expected == "no experts, its groups as of EP"


class TestRealPlugin:
    """It logs nothing of its ranks: their connections are the proof."""

    def test_ranks_that_are_connected(self, afd):
        seen = connected(silent(afd), 1, 1)
        assert unproven(seen) == {}
        claims = {j.claim.name: j.claim for j in judge_all(seen)}
        assert "installed afd_plugin:register_afd" in claims["attention plugin afd_reference"].seen
        assert "tokens cross" not in claims

    @pytest.mark.parametrize(("ffn", "attention"), [(1, 0), (0, 1), (1, 2)])
    def test_ranks_that_are_missing_or_too_many(self, afd, ffn, attention):
        names = unproven(connected(silent(afd), ffn, attention)).keys()
        assert names == {"attention ranks joined" if ffn else "ffn ranks joined"}

    def test_plain_vllm_under_an_afd_label(self, afd):
        seen = silent(afd)
        for index in (0, 1):
            packages = replace(seen.roles[index].packages, plugins={})
            facts = seen.roles[index].log
            lines = {k: v for k, v in facts.lines.items() if k != "ffn started"}
            seen = with_role(seen, index, packages=packages, log=replace(facts, lines=lines))
        wrong = unproven(seen)
        assert wrong["ffn plugin afd_reference"] == "none (there: none)"
        assert "the loop has not started" in wrong["ffn ranks joined"]
        assert "attention ranks joined" in wrong


def test_a_plugin_that_failed_to_load(afd, relogged):
    text = "ERROR Failed to load plugin afd_reference\nINFO:     Application"
    seen = relogged(afd, "INFO:     Application", text, index=1)
    assert unproven(seen) == {
        "attention plugin afd_reference": "ERROR Failed to load plugin afd_reference"
    }


def test_another_plugin_that_failed_is_no_matter(afd, relogged):
    text = "ERROR Failed to load plugin other\nINFO:     Application"
    assert unproven(relogged(afd, "INFO:     Application", text, index=1)) == {}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("'connector': 'GlooAFDConnector'", "'connector': 'P2pNcclAFDConnector'"),
        ("'num_attention_ranks': 1", "'num_attention_ranks': 2"),
        ("'role': 'ffn'", "'role': 'attention'"),
        ("'additional_config'", "'other_config'"),
    ],
)
def test_another_connector_than_planned(afd, relogged, old, new):
    assert unproven(relogged(afd, old, new)).keys() == {"ffn connector"}


def test_a_world_of_another_size(afd, relogged):
    seen = relogged(afd, "in a world of 2,", "in a world of 20,", index=1)
    assert unproven(seen).keys() == {"attention ranks joined"}


def test_a_rank_that_joined_and_is_gone(afd_2a1f):
    role = afd_2a1f.roles[1]
    seen = with_role(afd_2a1f, 1, processes=role.processes[:-1])
    assert unproven(seen).keys() == {"attention ranks joined", "attention live ranks"}


def test_attention_that_holds_experts(afd, relogged):
    seen = relogged(afd, "holds parameters: 0 expert", "holds parameters: 10 expert", index=1)
    assert unproven(seen) == {"attention weights": "10 expert"}


def test_ffn_that_holds_attention(afd, relogged):
    text = "0 dense MLP, 0 attention, 0 other (1581056 bytes).\n"
    seen = relogged(afd, text, text.replace("0 attention", "12 attention"))
    assert unproven(seen) == {"ffn weights": "12 attention"}


def test_no_token_ever_crossed(afd, relogged):
    assert unproven(relogged(afd, "first exchange", "no exchange")) == {
        "tokens cross": "no exchange"
    }


def test_another_plugin_is_asked_for(afd):
    role = afd.roles[1]
    processes = tuple(
        replace(p, environ={**(p.environ or {}), "VLLM_PLUGINS": ""}) for p in role.processes
    )
    seen = with_role(afd, 1, processes=processes)
    assert unproven(seen) == {"attention plugins asked for": "VLLM_PLUGINS="}

"""A case of a profile as commands: what the profile says, and nothing else."""

from collections.abc import Callable
from pathlib import Path

import pytest

from e2e import profile
from e2e.errors import ProfileError
from e2e.plan import CasePlan, plan_case

_BASE = """\
profile: mine
extends: canary-4gpu
description: A canary of one's own.
gate: {opt_in: {AFD_E2E_BACKEND: gpu}}
"""


@pytest.fixture
def plan_mine(tmp_path: Path) -> Callable[..., CasePlan]:
    def plan_mine(more: str, case: str) -> CasePlan:
        (tmp_path / "mine.yaml").write_text(_BASE + more)
        return plan_case(profile.load(tmp_path / "mine.yaml"), case, {}, None)

    return plan_mine


def test_forms_of_flags(plan_mine) -> None:
    args = "{a: true, b: false, c: null, d: 3, e: 0.5, f: x, g: [h, 1], i: {j: {k: [1, true]}}}"
    case = plan_mine(f"server: {{args: {args}}}\n", "baseline-eager")
    assert case.roles[0].argv[-8:] == (
        "--a",
        "--d=3",
        "--e=0.5",
        "--f=x",
        "--g",
        "h",
        "1",
        '--i={"j":{"k":[1,true]}}',
    )


def test_the_more_special_flag_wins(plan_mine, flags) -> None:
    case = plan_mine(
        "cases: {afd-eager-2a2f: {args: {seed: 1}, ffn: {args: {seed: 2}}}}\n", "afd-eager-2a2f"
    )
    ffn, attention = case.roles
    assert (flags(ffn)["--seed"], flags(attention)["--seed"]) == ("2", "1")


def test_the_largest_batch_of_graph_mode_can_be_said_otherwise(plan_mine, flags) -> None:
    case = plan_mine(
        "cases: {baseline-graph: {args: {max-num-seqs: 4, max-num-batched-tokens: null}}}\n",
        "baseline-graph",
    )
    said = flags(case.roles[0])
    assert said["--max-num-seqs"] == "4"
    assert said["--max-cudagraph-capture-size"] == "8"
    assert "--max-num-batched-tokens" not in said


def test_expert_parallel_only_where_it_is_on(plan_mine, flags) -> None:
    text = "cases: {baseline-eager: {native: {ep: false}}}\n"
    (role,) = plan_mine(text, "baseline-eager").roles
    assert role.ep is None
    assert "--enable-expert-parallel" not in flags(role)


def test_an_asynchronous_connector_starts_attention_first(plan_mine) -> None:
    afd = (
        "afd: {connector: MyConnector, asynchronous: true, gate_on_attention: true, "
        "connector_extra: {ranks: 2}}\n"
    )
    case = plan_mine(afd, "afd-eager-2a2f")
    assert [role.role for role in case.roles] == ["attention", "ffn"]
    config = case.roles[0].argv[case.roles[0].argv.index("--additional-config") + 1]
    assert config == (
        '{"afd":{"role":"attention","connector":"MyConnector","host":"127.0.0.1","port":8050,'
        '"num_attention_ranks":2,"num_ffn_ranks":2,"async":true,"compute_gate_on_attention":true,'
        '"connector_extra_config":{"ranks":2}}}'
    )


def test_environment_of_a_case_is_added(plan_mine) -> None:
    text = "cases: {baseline-eager: {environment: {set: {A: '1'}, scrub: [B]}}}\n"
    case = plan_mine(text, "baseline-eager")
    (role,) = case.roles
    assert role.env_set["A"] == role.env_set["PYTHONUNBUFFERED"] == "1"
    assert {"B", "AFD_CAMP2P_STUB_IO"} < set(role.env_unset)
    assert case.scrub[-1] == "B"


def test_what_is_set_is_not_unset(plan_mine) -> None:
    text = "environment: {scrub: [VLLM_PLUGIN*, CUDA_*]}\n"
    (role,) = plan_mine(text, "baseline-eager").roles
    assert role.env_set["VLLM_PLUGINS"] == ""
    assert not set(role.env_set) & set(role.env_unset)


def test_plugins_of_a_case_are_loaded_and_no_others(plan_mine) -> None:
    text = "cases: {baseline-eager: {plugins: [one, two]}}\n"
    (role,) = plan_mine(text, "baseline-eager").roles
    assert role.env_set["VLLM_PLUGINS"] == "one,two"
    (role,) = plan_mine("", "baseline-eager").roles
    assert role.env_set["VLLM_PLUGINS"] == ""


def test_evaluation_of_a_case_changes_the_profiles(plan_mine) -> None:
    changed = "evaluation: {samples: 5, required: 4, max_tokens: 64}"
    text = f"cases: {{baseline-graph: {{{changed}}}}}\n"
    own = plan_mine(text, "baseline-graph").evaluation
    assert (own.samples, own.required, own.max_tokens, own.dataset) == (5, 4, 64, "bundled")
    assert own.lowered_from is None


def test_exit_codes_can_be_said(plan_mine) -> None:
    text = "teardown: {exit_codes: {ffn: [1], attention: [0, -15]}}\n"
    ffn, attention = plan_mine(text, "afd-eager-2a2f").roles
    assert (ffn.exit_codes, attention.exit_codes) == ((1,), (0, -15))


def test_memory_of_a_case(plan) -> None:
    assert plan("deepseek-v2-lite-4gpu/afd-eager-2a2f").min_memory_gib == 20
    assert plan("deepseek-v2-lite-4gpu/afd-eager-2a1f").min_memory_gib == 36


def test_unknown_case(plan) -> None:
    with pytest.raises(ProfileError) as caught:
        plan("canary-cpu/baseline-eagr")
    assert "has no case 'baseline-eagr'; did you mean 'baseline-eager'?" in caught.value.what

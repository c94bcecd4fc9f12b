"""Every claim of a native deployment holds on a real one, and fails once on a broken one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from e2e.claims.observation import Observation
from e2e.claims.prove import judge_all


def unproven(seen: Observation) -> dict[str, str]:
    """Claim name to what was seen, of the claims that do not hold."""
    return {j.claim.name: j.claim.seen for j in judge_all(seen) if not j.claim.held}


def with_process(seen: Observation, index: int, **changes: object) -> Observation:
    role = seen.roles[0]
    processes = list(role.processes)
    processes[index] = replace(processes[index], **changes)
    return replace(seen, roles=(replace(role, processes=tuple(processes)),))


def test_everything_holds_on_a_real_single_rank_server(native):
    assert unproven(native) == {}
    names = [judgement.claim.name for judgement in judge_all(native)]
    assert len(names) == len(set(names)) == 13


def test_everything_holds_on_a_real_tp2_ep2_server(native_tp2):
    assert unproven(native_tp2) == {}


def test_evidence_says_what_was_seen_and_where(native_tp2):
    claim = next(
        j.claim for j in judge_all(native_tp2) if j.claim.name == "native expert parallelism"
    )
    assert claim.expected == "EP2"
    assert "EP ranks of living workers [0, 1], 4/8 experts" in claim.seen
    assert claim.where == "native-eager-tp2-ep2.log, line 10"


class TestExecutionMode:
    def test_graphs_under_an_eager_label(self, native, relogged):
        seen = relogged(native, "enforce_eager=True", "enforce_eager=False")
        assert "enforce_eager=False" in unproven(seen)["native execution mode"]

    def test_capture_under_an_eager_label(self, native, relogged):
        captured = "Graph capturing finished in 3 secs, took 0.10 GiB\nINFO:     Application"
        seen = relogged(native, "INFO:     Application", captured)
        assert unproven(seen) == {"native graph capture": "graphs captured"}

    def test_eager_under_a_graph_label(self, native):
        seen = replace(native, plan=replace(native.plan, execution="graph"))
        assert set(unproven(seen)) == {"native execution mode", "native graph capture"}

    def test_another_graph_mode_than_planned(self, native, replanned):
        wanted = ("vllm", '--compilation-config={"cudagraph_mode":"FULL_DECODE_ONLY"}')
        seen = replanned(native, argv=wanted)
        seen = replace(seen, plan=replace(seen.plan, execution="graph"))
        assert "cudagraph_mode NONE" in unproven(seen)["native execution mode"]


class TestPrecision:
    def test_another_data_type(self, native, relogged):
        seen = relogged(native, " dtype=torch.bfloat16", " dtype=torch.float32")
        assert unproven(seen) == {"native dtype": "torch.float32"}

    def test_another_length(self, native, relogged):
        seen = relogged(native, "max_seq_len=1024", "max_seq_len=2048")
        assert unproven(seen) == {"native maximum length": "2048"}

    def test_short_names_are_understood(self, native, replanned):
        seen = replanned(native, argv=("vllm", "--dtype=half"))
        assert unproven(seen) == {"native dtype": "torch.bfloat16"}
        assert "torch.float16" in str([j.claim.expected for j in judge_all(seen)])


class TestParallelism:
    def test_a_plan_of_two_ranks_on_a_server_of_one(self, native, replanned):
        assert {"native parallel sizes", "native live ranks"} <= unproven(
            replanned(native, tp=2)
        ).keys()

    def test_a_rank_that_is_gone(self, native_tp2):
        seen = with_process(native_tp2, 3, argv=("python3",))
        assert {"native live ranks", "native expert parallelism"} == unproven(seen).keys()

    def test_an_engine_that_is_gone(self, native):
        seen = with_process(native, 1, argv=("python3",))
        assert {"native live ranks"} == unproven(seen).keys()

    def test_one_rank_needs_no_worker_process(self, native):
        seen = with_process(native, 2, argv=("python3",))
        assert unproven(seen) == {}

    def test_expert_parallelism_that_is_off(self, native_tp2, relogged):
        seen = relogged(native_tp2, "'enable_expert_parallel': True, ", "")
        assert {"native expert parallelism"} == unproven(seen).keys()

    def test_expert_parallelism_over_another_number_of_ranks(self, native_tp2, relogged):
        seen = relogged(native_tp2, "[EP Rank 0/2]", "[EP Rank 0/4]")
        assert {"native expert parallelism"} == unproven(seen).keys()

    def test_expert_parallelism_that_nobody_planned(self, native_tp2, replanned):
        assert {"native expert parallelism"} == unproven(replanned(native_tp2, tp=2)).keys()

    def test_expert_parallelism_of_one_rank_is_an_argument(self, native, relogged, replanned):
        argv = (*native.roles[0].plan.argv, "--enable-expert-parallel")
        planned = replanned(native, ep=1, argv=argv)
        assert {"native expert parallelism"} == unproven(planned).keys()
        told = relogged(planned, "'enforce_eager'", "'enable_expert_parallel': True, 'enforce'")
        assert unproven(with_process(told, 2, argv=("VLLM::Worker_EP0",))) == {}


class TestRouting:
    def test_a_variable_smuggled_in_by_a_wrapper(self, native):
        environ = {**native.roles[0].processes[2].environ, "AFD_BENCHMARK_FORCE_LB": "4"}
        seen = unproven(with_process(native, 2, environ=environ))
        assert seen == {"native scrubbed variables": "AFD_BENCHMARK_FORCE_LB=4 in pid 102"}

    def test_a_variable_that_the_case_sets_itself_is_no_smuggling(self, native, replanned):
        seen = replanned(native, env_set={"VLLM_PLUGINS": "", "AFD_BENCHMARK_FORCE_LB": "4"})
        environ = {**native.roles[0].processes[0].environ, "AFD_BENCHMARK_FORCE_LB": "4"}
        for index in range(3):
            seen = with_process(seen, index, environ=environ)
        assert unproven(seen) == {}

    @pytest.mark.parametrize("environ", [None, {}, {"TORCHINDUCTOR_COMPILE_THREADS": "1"}])
    def test_an_environment_that_cannot_be_read_proves_nothing(self, native, environ):
        seen = unproven(with_process(native, 1, environ=environ))
        assert seen["native scrubbed variables"] == "environment of pid 101 cannot be read"

    def test_plugins_unset_would_load_them_all(self, native):
        environ = {"SPT_NOENV": "1"}
        seen = unproven(with_process(native, 1, environ=environ))
        assert seen["native plugins asked for"] == "VLLM_PLUGINS=, unset"


class TestVersions:
    def test_a_log_of_another_vllm(self, native, relogged):
        seen = relogged(native, "V1 LLM engine (v0.32.0)", "V1 LLM engine (v0.26.0)")
        assert "the log says vLLM 0.26.0" in unproven(seen)["native versions"]

    def test_an_interpreter_without_torch(self, native):
        role = native.roles[0]
        packages = replace(role.packages, versions={"vllm": "0.32.0", "transformers": "5.19.0"})
        seen = replace(native, roles=(replace(role, packages=packages),))
        assert "torch" not in unproven(seen)["native versions"]


class TestCheckpoint:
    def test_another_checkpoint_than_planned(self, native):
        seen = replace(native, plan=replace(native.plan, model="/models/other"))
        assert unproven(seen) == {"native checkpoint": "/models/tiny-qwen3-moe"}

    def test_another_number_of_experts(self, native):
        seen = replace(native, config={"num_experts": 256, "num_experts_per_tok": 2})
        assert unproven(seen) == {"checkpoint num_experts": "256"}

    def test_a_key_under_another_name_is_pointed_out(self, native):
        seen = replace(native, config={"num_local_experts": 8, "num_experts_per_tok": 2})
        assert unproven(seen) == {
            "checkpoint num_experts": "absent (there are num_local_experts, num_experts_per_tok)"
        }

    def test_no_config_at_all(self, native):
        assert len(unproven(replace(native, config=None))) == 2

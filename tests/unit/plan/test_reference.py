"""The suites of the field, flag by flag and variable by variable, written down apart from the
profiles."""

import json

import pytest

from e2e import profile
from e2e.plan import CasePlan

_LARGE = {
    "--shutdown-timeout": "10",
    "--tensor-parallel-size": "1",
    "--enable-expert-parallel": "",
    "--enforce-eager": "",
    "--host": "127.0.0.1",
    "--dtype": "bfloat16",
    "--language-model-only": "",
    "--max-model-len": "4096",
    "--max-num-seqs": "1",
    "--max-num-batched-tokens": "4096",
    "--mamba-cache-mode": "align",
    "--all2all-backend": "allgather_reducescatter",
    "--seed": "0",
}
_SMALL = {
    "--shutdown-timeout": "10",
    "--tensor-parallel-size": "1",
    "--enable-expert-parallel": "",
    "--host": "127.0.0.1",
    "--max-model-len": "4096",
}
_GRAPH = {
    "--max-num-seqs": "8",
    "--max-cudagraph-capture-size": "8",
    "--cudagraph-capture-sizes": "8",
    "--compilation-config": '{"cudagraph_mode":"FULL_DECODE_ONLY"}',
}
_NATIVE_GRAPH = {**_GRAPH, "--max-num-batched-tokens": "8"}
_DBO = {
    "--no-enable-chunked-prefill": "",
    "--enable-dbo": "",
    "--dbo-decode-token-threshold": "1",
    "--dbo-prefill-token-threshold": "8",
}
_EVERY = {
    "VLLM_ENGINE_READY_TIMEOUT_S": "18000",
    "VLLM_USE_V2_MODEL_RUNNER": "0",
    "PYTHONUNBUFFERED": "1",
}
_ORDER = "0,2,4,6,1,3,5,7"


def _afd(role: str, attention: int, ffn: int) -> str:
    config = {"role": role, "connector": "P2pNcclAFDConnector", "host": "127.0.0.1", "port": 1239}
    ranks = {"num_attention_ranks": attention, "num_ffn_ranks": ffn}
    return json.dumps({"afd": {**config, **ranks}}, separators=(",", ":"))


def test_reference_case_native(plan, flags) -> None:
    case = plan("qwen3_5-122b-8gpu/baseline-eager", AFD_E2E_DEVICES=_ORDER, AFD_GPU_E2E_MODEL="/m")
    (role,) = case.roles
    assert role.argv[:3] == ("vllm", "serve", "/m")
    assert flags(role) == {
        **_LARGE,
        "--served-model-name": "qwen3-5-122b-afd-baseline",
        "--data-parallel-size": "4",
        "--port": "8000",
    }
    assert role.env_set == {
        **_EVERY,
        "VLLM_USE_FLASHINFER_SAMPLER": "0",
        "VLLM_PLUGINS": "",
        "CUDA_VISIBLE_DEVICES": "0,2,4,6",
    }
    assert (role.dp, role.tp, role.ep) == (4, 1, 4)
    assert case.evaluation.required == case.evaluation.samples == 7


def test_reference_case_afd(plan, flags) -> None:
    case = plan("qwen3_5-122b-8gpu/afd-eager-4a4f", AFD_E2E_DEVICES=_ORDER)
    ffn, attention = case.roles
    assert (ffn.role, attention.role) == ("ffn", "attention")
    for role, port, devices in ((attention, "8000", "0,2,4,6"), (ffn, "8001", "1,3,5,7")):
        assert role.argv[:3] == ("vllm", "serve", "$AFD_GPU_E2E_MODEL")
        assert flags(role) == {
            **_LARGE,
            "--served-model-name": f"qwen3-5-122b-afd-{role.role}",
            "--data-parallel-size": "4",
            "--port": port,
            "--additional-config": _afd(role.role, 4, 4),
        }
        assert role.env_set == {
            **_EVERY,
            "VLLM_USE_FLASHINFER_SAMPLER": "0",
            "VLLM_PLUGINS": "afd",
            "CUDA_VISIBLE_DEVICES": devices,
        }
    assert (attention.dp, attention.ep, ffn.dp, ffn.ep) == (4, None, 4, 4)
    assert ffn.ready_line == "AFD FFN EngineCore started; workers run connector loop."
    assert 1 in ffn.exit_codes
    assert attention.exit_codes == (0,)
    assert dict(ffn.ports) == {
        "http": 8001,
        "afd": 1239,
        **{f"afd-group-{rank}": 1240 + rank for rank in range(4)},
    }


def test_fp8_native_on_all_four(plan, flags) -> None:
    case = plan("qwen3_5-122b-fp8-4gpu/baseline-eager", AFD_GPU_E2E_FP8_MODEL="/fp8")
    (role,) = case.roles
    assert flags(role) == {
        **_LARGE,
        "--served-model-name": "qwen3-5-122b-fp8-afd-baseline",
        "--data-parallel-size": "4",
        "--port": "8000",
    }
    assert role.env_set["CUDA_VISIBLE_DEVICES"] == "0,1,2,3"


def test_fp8_says_no_quantization(plan, flags) -> None:
    case = plan("qwen3_5-122b-fp8-4gpu/afd-eager-2a2f", AFD_GPU_E2E_FP8_MODEL="/fp8")
    for role in case.roles:
        assert role.argv[2] == "/fp8"
        assert flags(role) == {
            **_LARGE,
            "--served-model-name": f"qwen3-5-122b-fp8-afd-{role.role}",
            "--data-parallel-size": "2",
            "--port": "8000" if role.role == "attention" else "8001",
            "--additional-config": _afd(role.role, 2, 2),
        }


_SUITES = {
    "deepseek-v2-lite-4gpu": ("deepseek-v2-lite-afd", {}, {"2a1f": 1, "2a2f": 2}),
    "qwen3-30b-4gpu": ("qwen3-moe-afd", {}, {"2a1f": 1}),
    "qwen3_6-35b-4gpu": ("qwen3-6-afd", {"--language-model-only": ""}, {"2a1f": 1}),
}
_MODES = {"eager": {"--enforce-eager": ""}, "graph": _GRAPH, "graph-dbo": {**_GRAPH, **_DBO}}


@pytest.mark.parametrize("name", _SUITES)
def test_small_suite_native(plan, flags, name: str) -> None:
    served, more, splits = _SUITES[name]
    case = plan(f"{name}/baseline-graph")
    (native,) = case.roles
    assert flags(native) == {
        **_SMALL,
        **_NATIVE_GRAPH,
        **more,
        "--served-model-name": f"{served}-baseline",
        "--data-parallel-size": "4",
        "--port": "8000",
    }
    assert native.env_set == {**_EVERY, "VLLM_PLUGINS": "", "CUDA_VISIBLE_DEVICES": "0,1,2,3"}
    assert _asked(case) == (7, 2, 1)
    cases = {f"afd-{mode}-{split}" for mode in _MODES for split in splits}
    assert set(profile.load(profile.find(name)).cases) == {"baseline-graph", *cases}


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize(
    ("name", "split"), [(name, split) for name, suite in _SUITES.items() for split in suite[2]]
)
def test_small_suite_afd(plan, flags, name: str, split: str, mode: str) -> None:
    served, more, splits = _SUITES[name]
    case = plan(f"{name}/afd-{mode}-{split}")
    for role in case.roles:
        attention = role.role == "attention"
        assert flags(role) == {
            **_SMALL,
            **_MODES[mode],
            **more,
            "--served-model-name": f"{served}-{role.role}",
            "--data-parallel-size": "2" if attention else str(splits[split]),
            "--port": "8000" if attention else "8001",
            "--additional-config": _afd(role.role, 2, splits[split]),
        }
        assert role.env_set == {
            **_EVERY,
            **({"VLLM_LOGGING_LEVEL": "DEBUG"} if mode == "graph-dbo" else {}),
            "VLLM_PLUGINS": "afd",
            "CUDA_VISIBLE_DEVICES": "0,1" if attention else ("2", "2,3")[splits[split] - 1],
        }
    assert _asked(case) == ((24, 7, 12) if mode == "graph-dbo" else (7, 2, 1))


def _asked(case: CasePlan) -> tuple[object, ...]:
    asked = case.evaluation
    assert (asked.dataset, asked.shots, asked.match, asked.max_tokens) == (
        "gsm8k",
        8,
        "strict",
        512,
    )
    return asked.samples, asked.required, asked.concurrency


@pytest.mark.parametrize(
    ("name", "ready"), [("qwen3_5-122b-8gpu", 3600), *((name, 900) for name in _SUITES)]
)
def test_deadlines(plan, name: str, ready: int) -> None:
    """Two hours for the answers, eight for all 1,319; a server that needs SIGKILL 20 s after
    SIGTERM fails."""
    case = "baseline-eager" if name == "qwen3_5-122b-8gpu" else "baseline-graph"
    for limit, seconds in (({}, 7200), ({"AFD_GSM8K_LIMIT": "all"}, 8 * 3600)):
        limits = plan(f"{name}/{case}", **limit).limits
        assert (limits.ready, limits.evaluation, limits.stop) == (ready, seconds, 20)


def test_benchmark_variables_never_reach_a_server(plan) -> None:
    case = plan(
        "qwen3_5-122b-8gpu/afd-eager-4a4f",
        AFD_BENCHMARK_ANYTHING="1",
        VLLM_MOE_ROUTING_SIMULATION_STRATEGY="uniform_random",
        HOME="/home/user",
    )
    for role in case.roles:
        assert role.env_unset == (
            "AFD_BENCHMARK_ANYTHING",
            "AFD_BENCHMARK_FORCE_LB_TOPN_PER_RANK",
            "AFD_CAMP2P_STUB_IO",
            "AFD_FORCE_BALANCED_TOPK_IDS",
            "AFD_PLUGIN_EARLY_ENGINE_PATCH",
            "VLLM_MOE_ROUTING_SIMULATION_STRATEGY",
        )

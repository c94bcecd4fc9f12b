"""The suites of the field, flag by flag and variable by variable, written down apart from the
profiles."""

import json

import pytest

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
    "--max-num-batched-tokens": "8",
    "--max-cudagraph-capture-size": "8",
    "--cudagraph-capture-sizes": "8",
    "--compilation-config": '{"cudagraph_mode":"FULL_DECODE_ONLY"}',
}
_DBO = {
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


@pytest.mark.parametrize(
    ("name", "served", "more"),
    [
        ("deepseek-v2-lite-4gpu", "deepseek-v2-lite-afd", {}),
        ("qwen3-30b-4gpu", "qwen3-moe-afd", {}),
        ("qwen3_6-35b-4gpu", "qwen3-6-afd", {"--language-model-only": ""}),
    ],
)
def test_small_suites(plan, flags, name: str, served: str, more: dict[str, str]) -> None:
    (native,) = plan(f"{name}/baseline-graph").roles
    assert flags(native) == {
        **_SMALL,
        **_GRAPH,
        **more,
        "--served-model-name": f"{served}-baseline",
        "--data-parallel-size": "4",
        "--port": "8000",
    }
    assert native.env_set == {**_EVERY, "VLLM_PLUGINS": "", "CUDA_VISIBLE_DEVICES": "0,1,2,3"}
    modes = {"eager": {"--enforce-eager": ""}, "graph": _GRAPH, "graph-dbo": {**_GRAPH, **_DBO}}
    for mode, mode_flags in modes.items():
        case = plan(f"{name}/afd-{mode}-2a1f")
        for role in case.roles:
            attention = role.role == "attention"
            assert flags(role) == {
                **_SMALL,
                **mode_flags,
                **more,
                "--served-model-name": f"{served}-{role.role}",
                "--data-parallel-size": "2" if attention else "1",
                "--port": "8000" if attention else "8001",
                "--additional-config": _afd(role.role, 2, 1),
            }
            assert role.env_set == {
                **_EVERY,
                **({"VLLM_LOGGING_LEVEL": "DEBUG"} if case.dbo else {}),
                "VLLM_PLUGINS": "afd",
                "CUDA_VISIBLE_DEVICES": "0,1" if attention else "2",
            }
        wanted = (24, 7, 12) if case.dbo else (7, 2, 1)
        evaluation = case.evaluation
        assert (evaluation.samples, evaluation.required, evaluation.concurrency) == wanted


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

"""Native against AFD on equal hardware: servers, load, and how it is judged."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from e2e import cli, plan_text, profile
from e2e.errors import ProfileError
from e2e.plan import plan_performance

_ORDER = {"AFD_E2E_DEVICES": "0,2,4,6,1,3,5,7", "AFD_GPU_E2E_MODEL": "/m"}
_BASE = """\
profile: mine
extends: qwen3_5-122b-8gpu
description: The reference case in graph mode.
gate: {opt_in: {AFD_E2E_BACKEND: gpu}}
"""


@pytest.fixture
def large() -> profile.Profile:
    return profile.load(profile.find("qwen3_5-122b-8gpu"))


def test_equal_hardware(large, flags) -> None:
    native, split = (measured.deployment for measured in plan_performance(large, _ORDER, None))
    assert sorted(native.devices) == sorted(split.devices) == list("01234567")
    assert (native.case, split.case) == ("performance-native", "performance-afd-eager-4a4f")
    for role in (*native.roles, *split.roles):
        assert flags(role)["--max-num-seqs"] == "64"
        assert flags(role)["--max-num-batched-tokens"] == "8192"
        assert "--enforce-eager" in flags(role)
        assert "AFD_BENCHMARK_FORCE_LB_TOPN_PER_RANK" in role.env_unset
    assert (native.roles[0].dp, native.roles[0].tp, native.roles[0].ep) == (8, 1, 8)
    assert [(role.role, role.dp, role.ep) for role in split.roles] == [
        ("ffn", 4, 4),
        ("attention", 4, None),
    ]


def test_the_load_of_the_reference_case(large) -> None:
    native, split = (measured.load for measured in plan_performance(large, _ORDER, None))
    assert native.argv(3) == (
        *("vllm", "bench", "serve", "--backend", "vllm"),
        *("--base-url", "http://127.0.0.1:8000"),
        *("--model", "/m", "--served-model-name", "qwen3-5-122b-afd-baseline"),
        *("--dataset-name", "random", "--random-input-len", "1024"),
        *("--random-output-len", "128", "--ignore-eos", "--temperature", "0"),
        *("--num-prompts", "1024", "--request-rate", "5", "--max-concurrency", "32"),
        *("--percentile-metrics", "ttft,tpot,itl,e2el"),
        *("--save-result", "--result-dir", "runs/performance"),
        *("--seed", "3", "--result-filename", "performance-native-seed-3.json"),
    )
    assert "qwen3-5-122b-afd-attention" in split.argv(3)
    for load in (native, split):
        assert (load.warm_up_seeds, load.seeds) == ((0,), (1, 2, 3, 4, 5))
        assert load.requests == 1024


def test_port_base_and_executable_and_proxies(large) -> None:
    variables = {
        **_ORDER,
        "AFD_E2E_PORT_BASE": "20000",
        "AFD_GPU_E2E_VLLM_BIN": "/venv/bin/vllm",
        "HTTP_PROXY": "http://proxy:1",
    }
    for measured in plan_performance(large, variables, None):
        argv = measured.load.argv(0)
        assert argv[0] == "/venv/bin/vllm"
        assert argv[argv.index("--base-url") + 1] == "http://127.0.0.1:20000"
        assert "127.0.0.1" in measured.load.env_set["NO_PROXY"]


def test_graph_mode(tmp_path: Path, flags) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(_BASE + "performance: {execution: {mode: graph, capture_size: 32}}\n")
    for measured in plan_performance(profile.load(file), _ORDER, None):
        for role in measured.deployment.roles:
            said = flags(role)
            assert said["--cudagraph-capture-sizes"] == said["--max-cudagraph-capture-size"] == "32"
            assert said["--max-num-seqs"] == "64"
            assert "--enforce-eager" not in said


def test_pasted_into_a_shell_every_run_is_the_plan(large, tmp_path: Path) -> None:
    tell = tmp_path / "it's vllm"
    tell.write_text("#!/usr/bin/env python3\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    tell.chmod(0o755)
    variables = {"AFD_GPU_E2E_VLLM_BIN": str(tell), "HTTP_PROXY": "http://proxy:1"}
    for measured in plan_performance(large, variables, None):
        done = subprocess.run(
            ["bash", "-eu", "-c", plan_text.measurement_as_shell(measured)],
            env={"PATH": os.environ["PATH"], "AFD_GPU_E2E_MODEL": "/a model"},
            capture_output=True,
            text=True,
            check=True,
        )
        told = [json.loads(line) for line in done.stdout.splitlines()]
        servers = len(measured.deployment.roles)
        seeds = (*measured.load.warm_up_seeds, *measured.load.seeds)
        assert [words[0] for words in told[:servers]] == ["serve"] * servers
        assert told[servers:] == [
            ["/a model" if word == "$AFD_GPU_E2E_MODEL" else word for word in argv[1:]]
            for argv in map(measured.load.argv, seeds)
        ]


def test_only_a_profile_that_has_the_section() -> None:
    with pytest.raises(ProfileError, match="canary-cpu has no performance section"):
        plan_performance(profile.load(profile.find("canary-cpu")), {}, None)


def test_on_the_command_line(capsys, monkeypatch) -> None:
    monkeypatch.delenv("AFD_GPU_E2E_MODEL", raising=False)
    assert cli.main(["plan", "qwen3_5-122b-8gpu", "--performance"]) == 0
    text = capsys.readouterr().out
    for words in (
        "# qwen3_5-122b-8gpu/performance-native\n",
        "for seed in 0 1 2 3 4 5; do",
        '--result-filename "performance-afd-eager-4a4f-seed-$seed.json"',
        "void: a run with fewer than 1024 completed requests",
        "parity, not a win: a difference within one standard deviation",
    ):
        assert words in text
    assert cli.main(["plan", "canary-cpu", "--performance"]) == 2
    assert cli.main(["plan", "--performance"]) == 2
    assert "--case and --performance are of one profile" in capsys.readouterr().err


def test_all_profiles_are_planned_at_once(capsys) -> None:
    assert cli.main(["plan"]) == 0
    text = capsys.readouterr().out
    for name in profile.names():
        for case in profile.load(profile.find(name)).cases:
            assert f"# {name}/{case}\n" in text

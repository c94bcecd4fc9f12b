"""A plan as JSON and as commands for a shell."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from e2e import plan_text

_TELL = """\
#!/usr/bin/env python3
import json, os, sys
print(json.dumps({"argv": sys.argv[1:], "env": dict(os.environ)}))
"""


def test_json_has_the_promised_form(plan) -> None:
    case = plan("canary-4gpu/afd-eager-2a2f")
    document = json.loads(json.dumps(plan_text.as_json(case)))
    assert list(document) == ["profile", "case", "roles", "evaluation", "checks", "inherited"]
    for role in document["roles"]:
        assert list(role) == ["role", "argv", "env", "devices", "ports"]
        assert list(role["env"]) == ["set", "unset"]
    assert document["inherited"]["server.args"] == "canary-2gpu"
    assert "inherited" not in plan_text.as_json(plan("canary-cpu/baseline-eager"))


def test_only_what_concerns_the_case_is_listed_as_inherited(plan) -> None:
    inherited = plan("qwen3_5-122b-fp8-4gpu/afd-eager-2a2f").inherited
    assert "hardware.backend" in inherited
    assert not [path for path in inherited if path.startswith("cases.")]


@pytest.mark.parametrize(
    "id_", ["deepseek-v2-lite-4gpu/afd-graph-dbo-2a2f", "canary-cpu/baseline-eager"]
)
def test_pasted_into_a_shell_it_is_the_plan(plan, tmp_path: Path, id_: str) -> None:
    tell = tmp_path / "it's a server"
    tell.write_text(_TELL)
    tell.chmod(0o755)
    variables = {
        "AFD_GPU_E2E_VLLM_BIN": str(tell),
        "AFD_CPU_E2E_VLLM_BIN": str(tell),
        "AFD_BENCHMARK_ANYTHING": "1",
        "HTTP_PROXY": "http://proxy:1",
    }
    case = plan(id_, **variables)
    model = {"AFD_GPU_E2E_MODEL": "/a model", "AFD_CPU_E2E_MODEL": "/a model"}
    done = subprocess.run(
        ["bash", "-eu", "-c", plan_text.as_shell(case)],
        env={"PATH": os.environ["PATH"], **variables, **model},
        capture_output=True,
        text=True,
        check=True,
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(told) == len(case.roles)
    for role, seen in zip(case.roles, told, strict=True):
        assert seen["argv"] == ["serve", "/a model", *role.argv[3:]]
        assert role.env_set.items() <= seen["env"].items()
        assert not set(role.env_unset) & set(seen["env"])


def test_checks_say_what_will_be_proven(plan) -> None:
    text = plan_text.as_shell(plan("canary-4gpu/afd-graph-2a2f", AFD_GSM8K_LIMIT="5"))
    for words in (
        "config.json says architectures = DeepseekV2ForCausalLM",
        "plugin entry point afd",
        "ffn runs DP 2, TP 1, EP 2",
        "processes of attention are on exactly 0, 1",
        "decode graphs are captured",
        "5 of 5 answers right under strict matching",
        "lowered from 7 samples: not the profile's verdict",
        "within the noise of the canary's fingerprint",
        "ffn exits with 0 or 1",
        "the memory of every device is back within 15 s",
    ):
        assert words in text
    whole = plan_text.as_shell(plan("qwen3-30b-4gpu/afd-graph-dbo-2a1f", AFD_GSM8K_LIMIT="all"))
    assert "decode graphs are captured, and a step of live requests is split in two" in whole
    assert "0.27 of all answers right" in whole

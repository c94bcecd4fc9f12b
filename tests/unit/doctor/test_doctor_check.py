"""All checks together: complete, quick, and nothing is imported or touched."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from e2e import doctor
from e2e.doctor import accelerators, questions
from e2e.doctor.result import CheckResult
from e2e.doctor.table import table
from e2e.errors import HarnessError, SetupMissing
from e2e.evidence.case import CaseEvidence
from e2e.plan import CasePlan, EvaluationPlan
from tests.stubs.device_driver import StubDriver, gpu
from tests.stubs.plans import case_plan, role_plan

ROOT = Path(__file__).parents[3]


@pytest.fixture
def evidence(tmp_path: Path) -> CaseEvidence:
    return CaseEvidence(tmp_path / "case", "run", "canary-2gpu", "baseline-eager")


def gpu_plan(*devices: str, **changes: object) -> CasePlan:
    return case_plan(role_plan(devices=devices), backend="gpu", **changes)


def device_checks(plan: CasePlan, driver: StubDriver) -> dict[str, tuple[bool, str]]:
    there = accelerators.inventory(plan, lambda: driver)
    return {r.name: (r.held, r.seen) for r in accelerators.checks(plan, {}, there)}


class TestDevices:
    def test_devices_that_are_free(self):
        driver = StubDriver()
        results = device_checks(gpu_plan("1", "0"), driver)
        assert all(held for held, _ in results.values())
        assert results["devices"][1].startswith("1 (GPU-11aa1f00) NVIDIA H200; 0 (GPU-00")
        assert driver.closed

    def test_a_device_that_is_not_there(self):
        held, seen = device_checks(gpu_plan("0", "2"), StubDriver())["devices"]
        assert not held
        assert seen == "2: there are 2 GPUs, counted from 0"

    def test_a_device_in_use(self):
        driver = StubDriver()
        driver[1].holders = {4_000_123: 512}
        held, seen = device_checks(gpu_plan("0", "1"), driver)["devices unused"]
        assert not held
        assert "pid 4000123" in seen
        assert "512 MiB" in seen

    def test_a_device_that_is_too_small(self):
        driver = StubDriver()
        held, seen = device_checks(gpu_plan("0", min_memory_gib=140), driver)["device memory"]
        assert not held
        assert seen == f"device {gpu(0).label}: 139.8 GiB free"

    def test_no_driver(self):
        problem = HarnessError("the NVIDIA driver cannot be asked", mend="install it")
        [result] = accelerators.checks(gpu_plan("0"), {}, problem)
        assert not result.held
        assert result.mend == "install it"


def asking(dataset: str, samples: int = 7, shots: int = 8) -> CasePlan:
    evaluation = EvaluationPlan(dataset, shots, samples, "strict", 7, (), 64, 1, None)
    return case_plan(role_plan(), evaluation=evaluation)


class TestDataSet:
    def test_the_bundled_one_is_always_there(self):
        assert questions.check(asking("bundled"), {}).held

    def test_too_few_questions(self):
        result = questions.check(asking("bundled", samples=5_000), {})
        assert not result.held
        assert "5000 questions" in result.mend

    def test_a_folder_without_its_files(self, tmp_path):
        result = questions.check(asking("gsm8k"), {"AFD_E2E_GSM8K": str(tmp_path)})
        assert not result.held
        assert "train.jsonl" in result.seen

    @pytest.mark.parametrize("variable", ["HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"])
    def test_offline_without_a_cache(self, tmp_path, variable):
        result = questions.check(asking("gsm8k"), {variable: "1", "HF_HOME": str(tmp_path)})
        assert not result.held
        assert "openai/gsm8k is not in the hub's cache" in result.seen

    @pytest.mark.parametrize(
        "cache", ["hub/datasets--openai--gsm8k/snapshots", "datasets/openai___gsm8k"]
    )
    def test_offline_with_a_cache(self, tmp_path, cache):
        (tmp_path / cache).mkdir(parents=True)
        variables = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
        assert questions.check(asking("gsm8k"), variables).held

    def test_online_the_hub_is_left_to_the_run(self, tmp_path):
        result = questions.check(asking("gsm8k"), {"HF_HOME": str(tmp_path)})
        assert result.held
        assert result.seen.endswith("from the hub")


def test_a_case_is_refused_with_everything_that_is_missing_at_once(evidence):
    driver = StubDriver()
    driver[1].holders = {4_000_123: 512}
    plan = gpu_plan("0", "1", model="$AFD_GPU_E2E_MODEL", min_memory_gib=140)
    with pytest.raises(SetupMissing) as refused:
        doctor.require(plan, evidence, lambda: driver)
    text = str(refused.value)
    for missing in ("checkpoint", "devices unused", "device memory"):
        assert f"| {missing}: " in text
    assert "nothing is downloaded" in refused.value.mend
    assert evidence.record.hardware["link 0-1"] == "NV18"


def test_a_case_that_has_everything_goes_on(evidence, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"num_experts": 8, "num_experts_per_tok": 2}))
    (folder / "tokenizer.json").write_text("{}")
    header = b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}'
    weights = len(header).to_bytes(8, "little") + header + bytes(4)
    (folder / "model.safetensors").write_bytes(weights)
    script = tmp_path / "vllm"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    roles = role_plan(argv=(str(script), "serve"), ports={"http": 1})
    plan = case_plan(roles, model=str(folder), min_memory_gib=0.1)
    begin = time.monotonic()
    doctor.require(plan, evidence)
    assert time.monotonic() - begin < 3
    assert "device 0" in evidence.record.hardware


def test_the_doctor_imports_nothing_heavy():
    code = (
        "import sys; from e2e import doctor; from e2e.doctor import table;"
        "print([m for m in ('torch', 'vllm', 'datasets', 'aiohttp', 'transformers', 'pynvml',"
        " 'rich', 'jinja2') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_the_table_shows_what_to_do():
    console = Console(width=100)
    with console.capture() as captured:
        console.print(
            table(
                "canary-cpu/baseline-eager",
                [
                    CheckResult("disk", True, "65 GiB free"),
                    CheckResult("user", False, "uid 7 has no [name]", "set USER"),
                ],
            )
        )
    text = captured.get()
    assert "fail" in text
    assert "uid 7 has no [name]" in text
    assert "set USER" in text

"""Servers on real GPUs that are not what their profile says are caught by name, and leave nothing.

Gated as their profiles are: `canary-1gpu`, and `canary-2gpu` for the order of devices; `--profile`
names another.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from e2e import run, session
from e2e.errors import Outcome
from e2e.evidence.case import CaseEvidence
from e2e.profile.model import Profile
from e2e.systems.executable import resolve
from tests.stubs import gpu_case
from tests.stubs.cpu_case import AFD_CASE, CASE, assert_nothing_left

_OTHER_MODE = """
export AFD_BENCHMARK_FORCE_LB_TOPN_PER_RANK=4
exec {server} "${{@/--enforce-eager/-cc.mode=none}}"
"""
_OTHER_DEVICE = """
case $CUDA_VISIBLE_DEVICES in {first}) other={second} ;; *) other={first} ;; esac
CUDA_VISIBLE_DEVICES=$other exec {server} "$@"
"""


def launched_by(
    script: str, chosen: Profile, case: str, folder: Path, **names: str
) -> tuple[Outcome, CaseEvidence]:
    """The case, its server started by a launcher of that script."""
    launcher = folder / "vllm"
    server = resolve(os.environ.get("AFD_GPU_E2E_VLLM_BIN", "vllm"))
    launcher.write_text("#!/bin/bash" + script.format(server=server, **names), encoding="utf-8")
    launcher.chmod(0o755)
    evidence = session.open_evidence(folder, "run-of-a-test", chosen.profile, case)
    variables = {**os.environ, "AFD_GPU_E2E_VLLM_BIN": str(launcher)}
    return run.execute(chosen, case, variables, evidence), evidence


def unproven(evidence: CaseEvidence) -> dict[str, str]:
    return {claim.name: claim.seen for claim in evidence.record.claims if not claim.held}


def test_a_launcher_that_smuggles_a_variable_and_changes_a_flag(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    chosen = gpu_case.opted_in(gpu_case.source(request, "canary-1gpu"))
    outcome, evidence = launched_by(_OTHER_MODE, chosen, CASE, tmp_path)

    assert outcome is Outcome.CLAIM_NOT_PROVEN
    seen = unproven(evidence)
    assert "AFD_BENCHMARK_FORCE_LB_TOPN_PER_RANK=4 in pid" in seen["native scrubbed variables"]
    assert "enforce_eager=False" in seen["native execution mode"]
    assert evidence.record.evaluation is None
    assert_nothing_left(evidence)


def test_roles_on_each_others_devices(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    chosen = gpu_case.opted_in(gpu_case.source(request, "canary-2gpu"))
    first, second = gpu_case.device_names(2)
    outcome, evidence = launched_by(
        _OTHER_DEVICE, chosen, AFD_CASE, tmp_path, first=first, second=second
    )

    assert outcome is Outcome.CLAIM_NOT_PROVEN
    assert {"attention pinning", "ffn pinning"} <= unproven(evidence).keys()
    assert evidence.record.evaluation is None
    assert_nothing_left(evidence)


def test_a_device_in_use_is_refused_with_who_uses_it(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    chosen = gpu_case.opted_in(gpu_case.source(request, "canary-1gpu"))
    (device,) = gpu_case.device_names(1)
    with gpu_case.stranger(device) as stranger:
        evidence = session.open_evidence(tmp_path, "run-of-a-test", chosen.profile, CASE)
        outcome = run.execute(chosen, CASE, os.environ, evidence)
        assert stranger.poll() is None

    assert outcome is Outcome.SETUP_MISSING
    told = "\n".join(line for f in evidence.record.failures for line in (f.what, *f.lines))
    assert f"pid {stranger.pid}" in told
    assert evidence.record.roles == []

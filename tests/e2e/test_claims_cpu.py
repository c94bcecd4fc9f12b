"""A real server that is not what its profile says is caught by name, and leaves nothing."""

from __future__ import annotations

import os
from pathlib import Path

from e2e import run
from e2e.errors import Outcome
from e2e.systems.executable import resolve
from tests.stubs.cpu_case import CASE, assert_nothing_left, evidence_in, opted_in

_LAUNCHER = """#!/bin/bash
export AFD_BENCHMARK_FORCE_LB_TOPN_PER_RANK=4
exec {server} "${{@/--enforce-eager/-cc.mode=none}}"
"""


def test_a_launcher_that_smuggles_a_variable_and_changes_a_flag(tmp_path: Path) -> None:
    chosen = opted_in()
    launcher = tmp_path / "vllm"
    launcher.write_text(_LAUNCHER.format(server=resolve("vllm")), encoding="utf-8")
    launcher.chmod(0o755)
    evidence = evidence_in(tmp_path)
    variables = {**os.environ, "AFD_CPU_E2E_VLLM_BIN": str(launcher)}
    assert run.execute(chosen, CASE, variables, evidence) is Outcome.CLAIM_NOT_PROVEN
    unproven = {claim.name: claim.seen for claim in evidence.record.claims if not claim.held}
    assert unproven.keys() == {"native scrubbed variables", "native execution mode"}
    assert "AFD_BENCHMARK_FORCE_LB_TOPN_PER_RANK=4 in pid" in unproven["native scrubbed variables"]
    assert "enforce_eager=False" in unproven["native execution mode"]
    assert evidence.record.evaluation is None
    assert_nothing_left(evidence)

"""Dual-batch overlap: a step of live requests ran as two ubatches.

Only the load that concurrent requests make can show it: vLLM splits no batch below its thresholds.
"""

from __future__ import annotations

from e2e.claims.judgement import Judgement, judge
from e2e.claims.log import LogFacts


def split_steps(log: LogFacts) -> int:
    """Steps of live requests, dummy and warm-up runs not counted, that ran as two ubatches."""
    return log.counts.get("ubatch", 0)


def judge_load(role: str, before: int, log: LogFacts) -> Judgement:
    """`before`: split steps before the load."""
    steps = split_steps(log) - before
    batches = log.counts.get("batch", 0)
    return judge(
        f"{role} dual-batch overlap",
        held=steps > 0,
        expected="a step of the concurrent load in two ubatches",
        seen=f"{steps} such steps under load, of {batches} steps in all",
        where=log.where("ubatch"),
        proof="should_ubatch: True in a step that vLLM logs at VLLM_LOGGING_LEVEL=DEBUG",
    )

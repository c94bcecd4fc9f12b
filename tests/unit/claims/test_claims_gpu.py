"""Claims that only GPUs can show: devices, graphs, dual-batch overlap."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from e2e import claims
from e2e.claims.observation import Deployment, Observation, RoleSeen, observe
from e2e.claims.prove import judge_all
from e2e.errors import ClaimNotProven
from e2e.evidence.case import CaseEvidence
from tests.stubs.device_driver import StubDriver, gpu, part
from tests.stubs.plans import case_plan, role_plan

DEVICES = ("GPU-a", "GPU-b")
STEP = (
    "(Worker_DP0 pid=7) DEBUG 11-30 20:00:00 [gpu_model_runner.py:4225] Running batch with "
    "cudagraph_mode: FULL, batch_descriptor: BatchDescriptor(num_tokens=8, num_reqs=8), "
    "should_ubatch: {}, num_tokens_across_dp: None\n"
)


def on_gpus(seen: Observation, where: dict[int, set[str]], **plan: Any) -> Observation:
    """The same ranks on devices, by pid."""
    role = seen.roles[0]
    processes = tuple(
        replace(process, devices=frozenset(where.get(process.pid, ())))
        for process in role.processes
    )
    planned = replace(role.plan, devices=DEVICES, **plan)
    role = replace(role, plan=planned, processes=processes, devices=DEVICES)
    return replace(seen, plan=replace(seen.plan, backend="gpu", roles=(planned,)), roles=(role,))


def pinning(seen: Observation) -> tuple[bool, str]:
    claim = next(j.claim for j in judge_all(seen) if j.claim.name == "native pinning")
    return claim.held, claim.seen


class TestPinning:
    """Worker TP0 is pid 102, TP1 is pid 103."""

    def test_each_rank_on_its_device(self, native_tp2):
        held, seen = pinning(on_gpus(native_tp2, {102: {"GPU-a"}, 103: {"GPU-b"}}))
        assert held
        assert seen == "pid 102 on GPU-a, pid 103 on GPU-b"

    def test_devices_in_the_wrong_order(self, native_tp2):
        held, seen = pinning(on_gpus(native_tp2, {102: {"GPU-b"}, 103: {"GPU-a"}}))
        assert not held
        assert seen == "pid 102 is on GPU-b, not on GPU-a; pid 103 is on GPU-a, not on GPU-b"

    def test_a_rank_on_a_second_device_too(self, native_tp2):
        held, seen = pinning(on_gpus(native_tp2, {102: {"GPU-a", "GPU-b"}, 103: {"GPU-b"}}))
        assert not held
        assert "pid 102 is on GPU-a, GPU-b, not on GPU-a" in seen

    def test_a_rank_on_no_device(self, native_tp2):
        held, seen = pinning(on_gpus(native_tp2, {102: {"GPU-a"}}))
        assert not held
        assert seen == "pid 103 is on no device, not on GPU-b"

    def test_a_process_that_is_no_rank_on_somebody_else_s_device(self, native_tp2):
        where = {100: {"GPU-c"}, 102: {"GPU-a"}, 103: {"GPU-b"}}
        held, seen = pinning(on_gpus(native_tp2, where))
        assert not held
        assert seen == "pid 100, no rank, is on GPU-c"

    def test_a_rank_that_is_gone(self, native_tp2):
        seen = on_gpus(native_tp2, {102: {"GPU-a"}})
        role = seen.roles[0]
        seen = replace(seen, roles=(replace(role, processes=role.processes[:-1]),))
        assert not pinning(seen)[0]

    def test_an_engine_that_is_its_own_worker(self, native):
        role = native.roles[0]
        engine = replace(role, processes=role.processes[:2])
        seen = on_gpus(replace(native, roles=(engine,)), {101: {"GPU-a"}})
        one = replace(seen.roles[0], devices=DEVICES[:1])
        assert pinning(replace(seen, roles=(one,))) == (True, "pid 101 on GPU-a")

    def test_nothing_is_claimed_on_a_cpu(self, native):
        assert "native pinning" not in {j.claim.name for j in judge_all(native)}


def live(pids: list[int], log: Path, devices: tuple[str, ...]) -> Deployment:
    living = [SimpleNamespace(pid=pid) for pid in pids]
    process = SimpleNamespace(log=log, living=lambda: living)
    role = SimpleNamespace(plan=role_plan(devices=devices), process=process)
    return cast(Deployment, SimpleNamespace(roles={"native": role}))


def test_devices_of_live_processes_are_asked_of_the_driver(tmp_path):
    driver = StubDriver(gpu(0), gpu(1, partitioned=True), part(gpu(1), 0))
    driver[1].holders = driver[2].holders = {os.getpid(): 10}
    log = tmp_path / "native.log"
    log.touch()
    mig = part(gpu(1), 0).uuid
    deployment = live([os.getpid()], log, (mig[:6], "0"))
    role: RoleSeen = observe(
        case_plan(role_plan(), backend="gpu"), deployment, lambda: driver
    ).roles[0]
    assert role.devices == (mig, gpu(0).uuid)
    assert role.processes[0].devices == {mig}
    assert driver.closed


class TestGraphs:
    @pytest.fixture
    def captured(self, native, relogged) -> Observation:
        """A server that captured decode graphs, by a plan that says so."""
        argv = ("vllm", "--compilation-config", '{"cudagraph_mode":"FULL_DECODE_ONLY"}')
        seen = relogged(native, "enforce_eager=True", "enforce_eager=False")
        seen = relogged(seen, "CUDAGraphMode.NONE", "CUDAGraphMode.FULL_DECODE_ONLY")
        seen = relogged(
            seen, "INFO:     Appl", "Graph capturing finished in 3 secs\nINFO:     Appl"
        )
        role = replace(seen.roles[0], plan=replace(seen.roles[0].plan, argv=argv))
        return replace(seen, plan=replace(seen.plan, execution="graph"), roles=(role,))

    def unproven(self, seen: Observation) -> set[str]:
        return {j.claim.name for j in judge_all(seen) if not j.claim.held}

    def test_graphs_that_were_captured(self, captured):
        assert self.unproven(captured) == set()

    def test_no_capture(self, captured, relogged):
        seen = relogged(captured, "Graph capturing finished", "Graph capturing skipped")
        assert self.unproven(seen) == {"native graph capture"}

    def test_another_graph_mode(self, captured, relogged):
        seen = relogged(captured, "CUDAGraphMode.FULL_DECODE_ONLY", "CUDAGraphMode.PIECEWISE")
        assert self.unproven(seen) == {"native execution mode"}

    def test_ffn_says_nothing_of_its_graphs(self, captured, relogged):
        seen = relogged(captured, "Graph capturing finished", "Graph capturing skipped")
        ffn = replace(seen.roles[0], plan=replace(seen.roles[0].plan, role="ffn"))
        assert self.unproven(replace(seen, roles=(ffn,))) == set()


class TestOverlap:
    @pytest.fixture
    def log(self, tmp_path: Path) -> Path:
        path = tmp_path / "native.log"
        path.write_text(STEP.format("True") * 2, encoding="utf-8")
        return path

    @pytest.fixture
    def evidence(self, tmp_path: Path) -> CaseEvidence:
        return CaseEvidence(tmp_path / "case", "run", "canary-2gpu", "afd-graph-dbo")

    @contextmanager
    def load(self, log: Path, evidence: CaseEvidence, dbo: bool = True):
        plan = case_plan(role_plan(), dbo=dbo)
        with claims.under_load(plan, live([], log, ()), evidence):
            yield

    def add(self, log: Path, text: str) -> None:
        with log.open("a", encoding="utf-8") as file:
            file.write(text)

    def test_a_step_of_the_load_that_was_split(self, log, evidence):
        with self.load(log, evidence):
            self.add(log, STEP.format("False") + STEP.format("True"))
        [claim] = evidence.record.claims
        assert claim.held
        assert claim.seen == "1 such steps under load, of 4 steps in all"

    def test_steps_before_the_load_do_not_count(self, log, evidence):
        with pytest.raises(ClaimNotProven, match="dual-batch overlap"), self.load(log, evidence):
            self.add(log, STEP.format("False"))
        assert not evidence.record.claims[0].held

    def test_a_failed_evaluation_is_not_hidden(self, log, evidence):
        with pytest.raises(ValueError, match="evaluation"), self.load(log, evidence):
            raise ValueError("evaluation")
        assert not evidence.record.claims[0].held

    def test_without_overlap_nothing_is_claimed(self, log, evidence):
        with self.load(log, evidence, dbo=False):
            pass
        assert not evidence.record.claims

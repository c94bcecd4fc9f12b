"""From live processes to the evidence: what is not proven is named, after all was judged."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from e2e import claims
from e2e.claims import processes
from e2e.claims.packages import Packages
from e2e.claims.prove import judge_all, settle
from e2e.errors import ClaimNotProven
from e2e.evidence.case import CaseEvidence
from tests.stubs.plans import case_plan, role_plan

LOGS = Path(__file__).parent / "logs"


@dataclass
class Child:
    pid: int
    log: Path

    def living(self) -> list[Child]:
        return [self]


@dataclass
class Role:
    plan: object
    process: Child


@dataclass
class Deployed:
    roles: dict[str, Role]


@pytest.fixture
def evidence(tmp_path: Path) -> CaseEvidence:
    return CaseEvidence(tmp_path / "case", "run", "canary-cpu", "baseline-eager")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    environ = {"VLLM_PLUGINS": "", "SPT_NOENV": "1", "PATH": os.environ["PATH"]}
    command = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(
        command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield child
        child.kill()


def test_all_claims_are_recorded_and_the_unproven_named(sleeper, evidence):
    plan = case_plan(role_plan())
    child = Child(sleeper.pid, LOGS / "native-eager-tp1.log")
    deployment = Deployed({"native": Role(plan.roles[0], child)})
    with pytest.raises(ClaimNotProven) as raised:
        claims.prove(plan, deployment, evidence)  # pyright: ignore[reportArgumentType]
    recorded = {claim.name: claim for claim in evidence.record.claims}
    assert recorded["native scrubbed variables"].held
    assert not recorded["native dtype"].held  # says the log, of a server that is gone
    assert not recorded["native live ranks"].held
    assert "native live ranks" in str(raised.value)
    assert "proof would be one living VLLM::EngineCore" in str(raised.value)
    assert "python" in evidence.record.software


def test_nothing_is_raised_where_everything_holds(native, evidence):
    settle(judge_all(native), evidence)
    assert all(claim.held for claim in evidence.record.claims)


def test_the_interpreter_is_that_of_a_helper_process_before_any_other(native):
    helper = processes.SeenProcess(
        7, (sys.executable, "-c", "from multiprocessing.resource_tracker import main"), {}
    )
    shell = processes.SeenProcess(8, ("/bin/sh", "/srv/wrapper"), {})
    leader = processes.SeenProcess(9, (sys.executable, "/venv/bin/vllm"), {})
    assert processes.interpreter_of([shell, leader, helper]) is helper
    assert processes.interpreter_of([shell, leader]) is leader
    assert processes.interpreter_of([shell]) is None


def test_an_interpreter_tells_its_versions_and_entry_points(tmp_path):
    for name, text in {
        "vllm": "Name: vllm\nVersion: 9.9",
        "plug": "Name: plug\nVersion: 1",
    }.items():
        folder = tmp_path / f"{name}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\n{text}\n")
    (tmp_path / "plug-1.dist-info" / "entry_points.txt").write_text(
        "[vllm.general_plugins]\nafd = plug:register\n"
    )
    packages = Packages.ask(sys.executable, {"PYTHONPATH": str(tmp_path)})
    assert packages.versions["vllm"] == "9.9"
    assert packages.plugins["afd"].value == "plug:register"
    assert packages.plugins["afd"].distribution == "plug 1"


@pytest.mark.parametrize("interpreter", ["/nowhere/python", "/bin/false", "/bin/echo"])
def test_an_interpreter_that_does_not_answer(interpreter):
    packages = Packages.ask(interpreter, {})
    assert interpreter in str(packages.problem)
    assert not packages.versions


def test_no_interpreter_proves_no_version(native):
    role = replace(native.roles[0], packages=Packages.of(None))
    unproven = [j for j in judge_all(replace(native, roles=(role,))) if not j.claim.held]
    assert [j.claim.name for j in unproven] == ["native versions"]
    assert "no living process" in unproven[0].claim.seen


def test_a_process_that_is_gone_is_left_out():
    with subprocess.Popen(["/bin/true"]) as child:
        child.wait()
    assert processes.observe([child.pid], {}) == []


def test_connections_of_a_live_process_are_seen():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            [seen] = processes.observe([os.getpid()], {os.getpid(): frozenset({"GPU-1"})})
    assert port in seen.remote_ports
    assert seen.devices == {"GPU-1"}
    assert seen.environ is not None

"""Proofs of ports, shared memory and files: each is shown to fail, and tells ours from others."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from e2e import proofs
from e2e.errors import Outcome
from e2e.evidence.case import CaseEvidence
from e2e.plan import CasePlan
from e2e.process import Owner
from e2e.process.guardian import segments, sockets
from e2e.process.guardian.segments import Segment
from e2e.process.guardian.sightings import Sightings
from e2e.profile.model import TimeLimits
from e2e.proofs import shared_memory
from tests.stubs.plans import case_plan, role_plan

WRITE_AND_HOLD = """
import sys, time
file = open(sys.argv[1], "wb"); print("held", flush=True); time.sleep(60)
"""


@dataclass
class SeenOnly:
    """As much of an owner as these proofs look at."""

    private: Path
    marker: str = "/none"
    sightings: Sightings = field(default_factory=Sightings)


@pytest.fixture
def evidence(tmp_path: Path) -> CaseEvidence:
    return CaseEvidence(tmp_path / "case", "run", "canary-cpu", "baseline-eager")


@pytest.fixture
def owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Owner:
    monkeypatch.setattr(shared_memory, "_other_runs", lambda _: False)
    (tmp_path / "private").mkdir()
    return cast(Owner, SeenOnly(tmp_path / "private"))


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener


@pytest.fixture
def segment() -> Iterator[Path]:
    path = Path("/dev/shm", f"afd-e2e-test-{secrets.token_hex(6)}")
    yield path
    path.unlink(missing_ok=True)


def plan_of(*ports: int) -> CasePlan:
    limits = TimeLimits(release=0.2)
    return case_plan(role_plan(ports={str(port): port for port in ports}), limits=limits)


def found(evidence: CaseEvidence, name: str) -> list[str]:
    (proof,) = [proof for proof in evidence.record.proofs if proof.name == name]
    assert proof.held == (not proof.found)
    assert (evidence.conclude() is Outcome.RESIDUE_LEFT) == any(
        not proof.held for proof in evidence.record.proofs
    )
    return proof.found


def test_a_port_of_the_plan_that_is_listened_on_names_the_owner(
    evidence: CaseEvidence, owner: Owner, listener: socket.socket
) -> None:
    port = listener.getsockname()[1]
    with proofs.ports_released(plan_of(port), owner, evidence):
        pass
    (line,) = found(evidence, "ports released")
    assert line.startswith(f"port {port} is listened on by pid {os.getpid()} (R)")


def test_a_port_that_a_role_listened_on_is_told_by_its_socket(
    evidence: CaseEvidence, owner: Owner, listener: socket.socket
) -> None:
    """A port of the kernel's choosing that somebody else has by now is no residue."""
    port = listener.getsockname()[1]
    (use,) = [use for use in sockets.ports() if use.number == port]
    owner.sightings.ports[use.inode + 1] = port
    with proofs.ports_released(plan_of(), owner, evidence):
        pass
    assert found(evidence, "ports released") == []
    owner.sightings.ports[use.inode] = port
    evidence.record.proofs.clear()
    with proofs.ports_released(plan_of(), owner, evidence):
        pass
    assert len(found(evidence, "ports released")) == 1


def test_a_new_segment_in_nobodys_hands_is_named_and_left(
    evidence: CaseEvidence, owner: Owner, segment: Path
) -> None:
    with proofs.shared_memory_returns(plan_of(), owner, evidence):
        segment.write_bytes(b"123")
    assert f"{segment}, 3 bytes, new, in nobody's hands" in found(
        evidence, "shared memory returned"
    )
    assert segment.exists()


def test_a_segment_that_a_role_held_is_named_and_removed(
    evidence: CaseEvidence, owner: Owner, segment: Path
) -> None:
    with proofs.shared_memory_returns(plan_of(), owner, evidence):
        segment.write_bytes(b"123")
        owner.sightings.shared.add(Segment(segment.name, segment.stat().st_ino))
    assert f"{segment}, 3 bytes, left by a role" in found(evidence, "shared memory returned")
    assert not segment.exists()


def test_segments_from_before_or_in_other_hands_are_no_residue(
    evidence: CaseEvidence, owner: Owner, segment: Path
) -> None:
    other = segment.with_name(f"{segment.name}-2")
    other.write_bytes(b"before")
    owner.sightings = Sightings()
    with subprocess.Popen(
        [sys.executable, "-c", WRITE_AND_HOLD, str(segment)], stdout=subprocess.PIPE
    ) as stranger:
        try:
            with proofs.shared_memory_returns(plan_of(), owner, evidence):
                assert stranger.stdout is not None
                assert stranger.stdout.readline() == b"held\n"
                assert segments.in_use(segments.segments()) >= {
                    Segment(segment.name, segment.stat().st_ino)
                }
        finally:
            stranger.kill()
            other.unlink()
    assert str(segment) not in str(found(evidence, "shared memory returned"))
    assert str(other) not in str(evidence.record.proofs)


def test_beside_another_run_an_unclaimed_segment_is_only_noted(
    evidence: CaseEvidence, owner: Owner, segment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_memory, "_other_runs", lambda _: True)
    with proofs.shared_memory_returns(plan_of(), owner, evidence):
        segment.write_bytes(b"123")
    assert found(evidence, "shared memory returned") == []
    assert str(segment) in str(evidence.record.proofs[0].detail["unclaimed"])


def test_what_is_in_the_private_folder_goes_with_it(evidence: CaseEvidence, owner: Owner) -> None:
    (owner.private / "rpc").mkdir()
    (owner.private / "rpc" / "socket").touch()
    with proofs.shared_memory_returns(plan_of(), owner, evidence):
        pass
    assert found(evidence, "sockets and temporary files gone") == []
    assert not owner.private.exists()


def test_a_failure_of_the_body_is_raised_and_the_proofs_are_made(
    evidence: CaseEvidence, owner: Owner
) -> None:
    with (
        pytest.raises(ValueError, match="body"),
        proofs.shared_memory_returns(plan_of(), owner, evidence),
        proofs.ports_released(plan_of(), owner, evidence),
    ):
        raise ValueError("body")
    assert [proof.name for proof in evidence.record.proofs] == [
        "ports released",
        "shared memory returned",
        "sockets and temporary files gone",
    ]

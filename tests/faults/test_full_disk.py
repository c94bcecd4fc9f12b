"""The evidence folder fills up, turns read-only or vanishes: named, no hang, nothing in halves."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.errors import HarnessError, Outcome, SetupMissing
from e2e.evidence.case import CaseEvidence
from e2e.process import Owner
from e2e.process.guardian import runs
from tests.faults.playing import Fault, Played, Stage, wait_for_phase


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, as large as doctor asks for."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", "size=16g", "tmpfs"]
    if os.geteuid() or subprocess.run(["mount", *options, folder], capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def read_only(disk: Path) -> None:
    """Also while files are open for writing there, as it happens to a disk with errors: later
    writes fail because nothing new can be made."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", disk], check=True)


def shrink(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=1m", disk], check=True)


def fill(disk: Path) -> None:
    shrink(disk)
    with (disk / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def no_partial(folder: Path) -> bool:
    return list(folder.rglob("*.partial")) == []


def test_a_full_disk_is_refused_before_a_launch(disk: Path) -> None:
    fill(disk)
    with pytest.raises(SetupMissing, match=r"cannot be (made|written to): No space left") as caught:
        CaseEvidence(disk / "case", "run", "canary-cpu", "baseline-eager")
    assert "--evidence" in caught.value.mend
    assert no_partial(disk)


def test_a_read_only_disk_is_refused_before_a_launch(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    with pytest.raises(SetupMissing, match="cannot be made: Read-only file system"):
        CaseEvidence(disk / "case", "run", "canary-cpu", "baseline-eager")


def test_a_guardian_without_a_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"guardian's log .* cannot be written: No such file"):
        Owner("run", tmp_path / "gone").__enter__()


@pytest.mark.parametrize("phase", ["launch", "ready", "evaluation"])
def test_a_disk_that_fills_in_the_midst(
    disk: Path, stage: Stage, host_folder: Path, phase: str
) -> None:
    """By a server's log, while the record is being written."""
    flood = Fault("flood", "ready", size=3_000_000)
    faults = [flood] if phase == "ready" else []
    with stage.playing(disk / "case", *faults, answer_seconds=0.3) as harness:
        wait_for_phase(harness, "launch" if faults else phase)
        (shrink if faults else fill)(disk)
        assert harness.wait(30) in (
            Outcome.HARNESS_ERROR.exit_code,
            Outcome.SERVER_FAILED.exit_code,
        )
    assert no_partial(disk)
    Played.read(disk / "case")
    assert runs.run_files(str(host_folder)) == []


@pytest.mark.parametrize("phase", ["ready", "evaluation", "stop"])
@pytest.mark.parametrize("what", ["vanishes", "turns read-only"])
def test_a_folder_that_is_lost_in_the_midst(
    disk: Path, stage: Stage, host_folder: Path, phase: str, what: str
) -> None:
    with stage.playing(disk / "case", answer_seconds=0.2) as harness:
        wait_for_phase(harness, phase)
        if what == "vanishes":
            shutil.rmtree(disk / "case")
        else:
            read_only(disk)
        assert harness.wait(30) == Outcome.HARNESS_ERROR.exit_code
    if what != "vanishes":
        subprocess.run(["umount", disk], check=True)
        assert no_partial(disk)
        Played.read(disk / "case")
    assert runs.run_files(str(host_folder)) == []

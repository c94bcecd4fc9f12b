"""Two runs on one host: together where they share nothing, refused by name where they do."""

from __future__ import annotations

from pathlib import Path
from signal import SIGINT

from e2e.errors import Outcome
from tests.faults.playing import Fault, Played, Stage, wait_for_phase


def test_on_ports_and_devices_of_their_own(stage: Stage, tmp_path: Path) -> None:
    with (
        stage.playing(tmp_path / "one", answer_seconds=2) as one,
        stage.playing(tmp_path / "two", answer_seconds=2) as two,
    ):
        wait_for_phase(one, "evaluation")
        wait_for_phase(two, "evaluation")
        assert one.poll() is two.poll() is None
        assert (one.wait(60), two.wait(60)) == (0, 0)
    for name in ("one", "two"):
        proofs = Played.read(tmp_path / name).record.proofs
        assert [proof.name for proof in proofs if not proof.held] == []


def test_on_the_same_port_the_second_is_told_who_holds_it(stage: Stage, tmp_path: Path) -> None:
    """Also while the first has not bound it yet."""
    port = next(stage.ports)
    with stage.playing(tmp_path / "one", Fault("hang"), port=port) as one:
        wait_for_phase(one, "ready")
        with stage.playing(tmp_path / "two", port=port) as two:
            assert two.wait(60) == Outcome.SETUP_MISSING.exit_code
        [failure] = Played.read(tmp_path / "two").failures
        assert "is leased to another run" in failure
        assert f"pid {one.pid}" in failure
        one.send_signal(SIGINT)
        assert one.wait(60) == Outcome.INTERRUPTED.exit_code
    assert all(proof.held for proof in Played.read(tmp_path / "one").record.proofs)

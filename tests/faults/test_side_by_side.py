"""Two runs on one host: together where they share nothing, refused by name where they do."""

from __future__ import annotations

from pathlib import Path

from e2e.errors import Outcome
from tests.faults.playing import Played, playing, wait_for_phase
from tests.faults.setting import free_port


def test_on_ports_and_devices_of_their_own(tmp_path: Path) -> None:
    with (
        playing(tmp_path / "one", seconds=2) as one,
        playing(tmp_path / "two", seconds=2) as two,
    ):
        wait_for_phase(one, "evaluate")
        wait_for_phase(two, "evaluate")
        assert one.poll() is two.poll() is None
        assert (one.wait(20), two.wait(20)) == (0, 0)
    for name in ("one", "two"):
        proofs = Played.read(tmp_path / name).record.proofs
        assert [proof.name for proof in proofs if not proof.held] == []


def test_on_the_same_port_the_second_is_told_who_holds_it(tmp_path: Path) -> None:
    port = free_port()
    with playing(tmp_path / "one", seconds=5, port=port) as one:
        wait_for_phase(one, "evaluate")
        with playing(tmp_path / "two", port=port) as two:
            assert two.wait(20) == Outcome.SETUP_MISSING.exit_code
        [failure] = Played.read(tmp_path / "two").failures
        assert "is leased to another run" in failure
        assert f"pid {one.pid}" in failure
        assert one.wait(20) == 0
    assert Played.read(tmp_path / "one").record.outcome is Outcome.PASSED

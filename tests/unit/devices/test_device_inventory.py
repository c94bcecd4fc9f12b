"""What there is, and which of it was asked for."""

from __future__ import annotations

import os

import pytest

from e2e.devices import Inventory, resolve, take, uuids
from e2e.devices.model import Holder
from e2e.errors import SetupMissing
from tests.stubs.device_driver import StubDriver, gpu, part


@pytest.fixture
def two() -> Inventory:
    return take(StubDriver())


@pytest.fixture
def divided() -> Inventory:
    """A whole GPU, and one that MIG divides in two."""
    return take(StubDriver(gpu(0), gpu(1, partitioned=True), part(gpu(1), 0), part(gpu(1), 1)))


def chosen(tokens: str, inventory: Inventory, visible: str | None = None) -> list[str]:
    return [d.identity.index for d in resolve(tokens.split(","), inventory, visible)]


def refused(tokens: str, inventory: Inventory, visible: str | None = None) -> SetupMissing:
    with pytest.raises(SetupMissing) as raised:
        resolve(tokens.split(","), inventory, visible)
    return raised.value


class TestInventory:
    def test_memory_of_processes_apart_from_what_the_driver_reserves(self):
        driver = StubDriver()
        driver[0].holders = {os.getpid(): 512}
        memory = take(driver).devices[0].memory
        assert (memory.used, memory.reserved) == (512, 615)
        assert memory.free == memory.total - 512 - 615

    def test_who_is_on_a_device(self):
        driver = StubDriver()
        driver[1].holders = {os.getpid(): 512, 2**22 + 1: None}
        mine, hidden = take(driver).devices[1].holders
        assert mine.user
        assert "pytest" in mine.command
        assert str(mine).endswith("holds 512 MiB")
        assert str(hidden) == "pid 4194305 (not visible from here) holds unknown memory"

    def test_links_and_facts(self, two):
        facts = two.facts()
        assert facts["link 0-1"] == "NV18"
        assert facts["NVIDIA driver"] == "580.95.05"
        assert facts["device 0"].startswith("NVIDIA H200, 143771 MiB (615 MiB reserved), GPU-00")

    def test_parts_of_a_gpu_have_no_links(self, divided):
        assert len(divided.links) == 1

    def test_a_command_is_cut(self):
        assert len(str(Holder(1, 2, "a", "b"))) < 200


class TestResolve:
    def test_the_order_asked_for_is_kept(self, two):
        assert chosen("1,0", two) == ["1", "0"]

    def test_a_uuid_and_a_prefix_of_one(self, two):
        assert chosen(f"{gpu(1).uuid},GPU-00", two) == ["1", "0"]

    @pytest.mark.parametrize("token", ["2", "GPU-77", "zero", "", "-1", "1:0"])
    def test_what_is_not_there(self, two, token):
        error = refused(token, two)
        assert token in error.lines[0]
        assert gpu(1).uuid in error.mend

    def test_a_prefix_that_fits_two(self, two):
        assert "fits GPU-00" in refused("GPU-", two).lines[0]

    def test_one_device_under_two_names(self, two):
        assert "listed twice" in refused("0,GPU-00", two).lines[0]

    def test_every_wrong_token_is_named_at_once(self, two):
        error = refused("7,0,0,nine", two)
        assert len(error.lines) == 3

    def test_nothing_beside_the_visible_devices(self, two):
        assert chosen("1", two, visible="1") == ["1"]
        error = refused(gpu(0).uuid, two, visible="1")
        assert "is not within CUDA_VISIBLE_DEVICES=1" in error.lines[0]
        assert gpu(0).uuid not in error.mend

    @pytest.mark.parametrize("visible", ["", "-1", "9", "NoDevFiles"])
    def test_no_device_visible(self, two, visible):
        assert "there are none" in refused("0", two, visible).mend

    @pytest.mark.parametrize("visible", ["1,7,0", "1,1,0"])
    def test_the_visible_list_ends_at_the_first_that_is_wrong(self, two, visible):
        assert chosen("1", two, visible) == ["1"]
        assert "is not within" in refused("0", two, visible).lines[0]

    def test_parts_of_a_gpu(self, divided):
        assert chosen(f"MIG-11,{part(gpu(1), 0).uuid},0", divided) == ["1:1", "1:0", "0"]
        assert chosen("MIG-11", divided, visible="MIG-11") == ["1:1"]
        assert "is not within" in refused("MIG-10", divided, visible="MIG-11").lines[0]

    def test_uuids_for_leases_whatever_the_plan_calls_them(self, monkeypatch):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        driver = StubDriver()
        assert uuids(("1", "GPU-00"), lambda: driver) == (gpu(1).uuid, gpu(0).uuid)
        assert driver.closed
        assert uuids(()) == ()

    def test_a_divided_gpu_is_no_device(self, divided):
        assert "divided by MIG" in refused("1", divided).lines[0]

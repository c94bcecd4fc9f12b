"""What the host must have, each found missing once."""

from __future__ import annotations

import shutil
import socket
import time
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace

import pytest

from e2e.devices.model import Device, Identity, Inventory, Memory
from e2e.doctor import machine
from tests.stubs.plans import case_plan, role_plan

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """MiB free on every disk."""
    disk = SimpleNamespace(mib=100_000)
    usage = lambda path: Usage(0, 0, disk.mib << 20)  # noqa: E731
    monkeypatch.setattr(machine, "shutil", SimpleNamespace(disk_usage=usage))
    return disk


def test_a_disk_with_room_and_one_without(free):
    assert machine.disk(Path("/nowhere/yet/runs")).held
    free.mib = 100
    result = machine.disk(Path("/nowhere/yet/runs"))
    assert not result.held
    assert "0.10 GiB free under /nowhere/yet/runs" in result.seen


def test_the_shared_memory_of_a_default_container(free):
    free.mib = 64
    result = machine.shared_memory(Path("/dev/shm"))
    assert not result.held
    assert result.seen == "64 MiB free in /dev/shm"
    assert "--shm-size" in result.mend


def test_no_shared_memory_at_all(tmp_path):
    assert "is not there" in machine.shared_memory(tmp_path / "shm").seen


def test_shared_memory_of_this_host():
    assert machine.shared_memory(Path("/dev/shm")).held == (
        shutil.disk_usage("/dev/shm").free >= 1 << 30
    )


@pytest.fixture
def host_of_8_gib(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(Identity("0", "cpu:0", "a CPU"), Memory(16_384, 8_192, 0))
    monkeypatch.setattr(machine.host, "take", lambda: Inventory({}, (device,)))


def test_memory_that_the_profile_asks_for(host_of_8_gib):
    assert machine.memory(case_plan(role_plan(), min_memory_gib=8)).held
    result = machine.memory(case_plan(role_plan(), min_memory_gib=9))
    assert not result.held
    assert result.seen == "8.0 GiB available of 16.0"
    assert result.mend.startswith("9 GiB are needed")


def test_beside_devices_memory_of_the_host_goes_by_ranks(host_of_8_gib):
    two = role_plan(dp=2)
    assert machine.memory(case_plan(two, backend="gpu", min_memory_gib=80)).held
    three = role_plan(dp=3)
    assert not machine.memory(case_plan(three, backend="gpu", min_memory_gib=80)).held


def test_a_user_with_a_name(monkeypatch):
    assert machine.user({"USER": "lab"}).seen == "lab (USER)"
    assert machine.user({}).held


def test_a_uid_without_a_name(monkeypatch):
    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(machine.pwd, "getpwuid", unknown)
    result = machine.user({"USER": ""})
    assert not result.held
    assert "password database" in result.seen
    assert machine.user({"LOGNAME": "lab"}).held


def test_a_port_that_somebody_listens_on_is_named_with_its_owner():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = machine.ports(case_plan(role_plan(ports={"http": port})))
    assert not result.held
    assert result.seen.startswith(f"{port} is used by ")
    assert "pid" in result.seen
    assert machine.ports(case_plan(role_plan(ports={"http": port}))).held


def test_a_port_in_time_wait_is_free():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        served, _ = server.accept()
        served.close()
        client.close()
    deadline = time.monotonic() + 2
    plan = case_plan(role_plan(ports={"http": port}))
    while not machine.ports(plan).held and time.monotonic() < deadline:
        time.sleep(0.02)
    assert machine.ports(plan).held

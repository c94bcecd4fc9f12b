"""The host as a device of the CPU backend."""

from __future__ import annotations

from e2e.devices import host


def test_the_host_has_memory_and_cores():
    inventory = host.take()
    [device] = inventory.devices
    assert device.memory.total > device.memory.free > 0
    assert "cores" in inventory.facts()["device 0"]


def test_a_processor_of_unknown_model(tmp_path):
    assert host.processor(tmp_path / "none")
    (tmp_path / "cpuinfo").write_text("flags : a b\nmodel name : Some CPU\n")
    assert host.processor(tmp_path / "cpuinfo") == "Some CPU"


def test_a_memory_limit_of_the_cgroup(tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("active_file 5\ninactive_file 300\n")
    assert host.cgroup_limit(tmp_path) == (1000, 400)


def test_no_memory_limit(tmp_path):
    assert host.cgroup_limit(tmp_path) is None
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("")
    assert host.cgroup_limit(tmp_path) is None

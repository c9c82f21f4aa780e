"""The topology of a host: with everything, with little, and the real one."""

from __future__ import annotations

import numpy as np

from racks.telemetry.fake_host import FakeHost
from stretto.racks.telemetry.core_times import parse_cpu_list
from stretto.racks.telemetry.host_machine import host_machine


def test_threads_of_a_core_nodes_caches_devices_and_disks(tmp_path):
    fake = FakeHost(tmp_path, 4)
    fake.topology(["0-1", "0-1", "2-3", "2-3"], ["0-1", "2-3"])
    for address, kind, node in (("0000:01:00.0", "0x030200", "1"), ("0000:02:00.0", "0x020000", "-1")):
        fake.write(f"sys/bus/pci/devices/{address}/class", kind + "\n")
        fake.write(f"sys/bus/pci/devices/{address}/numa_node", node + "\n")
    for disk in ("sda", "loop0"):
        fake.write(f"sys/block/{disk}/size", "1\n")
    host = host_machine(tmp_path)
    machine = host.machine
    assert [machine.parts[at].name for at in machine.of_kind("core")] == ["core0", "core2"]
    assert [machine.parts[machine.home(at)].name for at in machine.of_kind("cpu")] == ["mem0", "mem0", "mem1", "mem1"]
    assert [machine.parts[at].kind for at in machine.of_kind("gpu", "nic")] == ["gpu", "nic"]
    assert machine.of_kind("socket-link")
    assert host.caches[0] == "L3 32768K 0-1"
    assert host.disks == ("sda",)
    near = host.nearness((0, 1, 2))
    assert near[0, 1] == 1.0
    assert near[0, 2] == 0.5
    assert np.all(np.diag(near) == 0)


def test_a_host_that_tells_nothing_still_is_a_machine(tmp_path):
    host = host_machine(tmp_path)
    assert len(host.cpus) >= 1
    assert len(host.machine.of_kind("memory")) == 1
    assert len(host.notes) == 4
    assert all("assumed" in note for note in host.notes)


def test_a_device_without_a_core_is_near_to_all(tmp_path):
    assert host_machine(tmp_path).nearness((None, None, None))[0, 1] == 0.5


def test_this_host_is_a_machine():
    host = host_machine()
    assert len(host.machine.of_kind("cpu")) == len(host.cpus)


def test_lists_of_cpus():
    assert parse_cpu_list("0-2,8\n") == {0, 1, 2, 8}
    assert parse_cpu_list("nonsense,4-,-3,") == {4}

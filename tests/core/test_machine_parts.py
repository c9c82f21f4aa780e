"""Machines, racks and presets: routes, counts and refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from machine_cases import box, way

from stretto.core.machine import KINDS, Machine, Part, Rack, rack_of
from stretto.core.machine_presets import PRESETS, hgx8, paper_rack, power8_m1, power8_m2, preset
from stretto.errors import InvalidInput, UnknownName

INF, NAN = float("inf"), float("nan")
GB = 1e9


# Parts and machines -------------------------------------------------------------------------------


def test_a_part_is_of_a_known_kind_and_lets_something_through() -> None:
    assert Part("p", "gpu").capacity == INF
    with pytest.raises(InvalidInput) as caught:
        Part("p", "quantum")
    assert str(caught.value) == f"p: kind 'quantum' is unknown; known: {', '.join(KINDS)}"
    for wrong in (0.0, -1.0, NAN):
        with pytest.raises(InvalidInput) as caught:
            Part("p", "memory", wrong)
        assert str(caught.value) == f"p: capacity {wrong} must be positive"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parts": (Part("b", "memory"), Part("a", "memory"), Part("b", "cpu"), Part("a", "cpu"))}, "'a' names two"),
        ({"links": (("mem", "core"), ("core", "cpv"))}, "a link names 'cpv', which is no part"),
        ({"parts": (Part("core", "core"), Part("cpu", "cpu")), "links": ()}, "the machine has no memory"),
        ({"links": (("mem", "core"),)}, "'cpu' reaches no memory"),
    ],
)
def test_a_wrong_machine_is_refused(changes: dict[str, Any], words: str) -> None:
    parts = (Part("mem", "memory"), Part("core", "core"), Part("cpu", "cpu"))
    fine = Machine("m", parts, (("mem", "core"), ("core", "cpu")))
    assert fine.processors == (2,)
    with pytest.raises(InvalidInput) as caught:
        replace(fine, **changes)
    assert words in str(caught.value)
    assert caught.value.field == "m"


def test_routes_are_shortest_and_pass_through_no_processor() -> None:
    machine = box()
    assert way(machine, "gpu0", "mem0") == ["gpu0", "switch0", "root0", "mem0"]
    assert way(machine, "gpu0", "mem1") == ["gpu0", "switch0", "root0", "mem0", "link0-1", "mem1"]
    assert way(machine, "mem0", "mem0") == ["mem0"]
    assert way(machine, "gpu0", "fpga0") == ["gpu0", "switch0", "fpga0"]
    parts = (Part("mem", "memory"), Part("near", "gpu"), Part("far", "memory"), Part("alone", "core"))
    bridge = Machine("bridge", parts, (("near", "mem"), ("near", "far")))
    assert way(bridge, "near", "far") == ["near", "far"]
    assert way(bridge, "mem", "far") is None  # the only way leads through a GPU
    assert way(bridge, "mem", "alone") is None


def test_ties_go_by_the_lower_index() -> None:
    parts = (Part("b", "memory"), Part("y", "pcie-switch"), Part("x", "pcie-switch"), Part("gpu", "gpu"))
    links = (("gpu", "x"), ("gpu", "y"), ("x", "b"), ("y", "b"))
    assert way(Machine("m", parts, links), "gpu", "b") == ["gpu", "y", "b"]


def test_home_is_the_nearest_memory_that_can_be_reached() -> None:
    machine = box()
    home = {part.name: machine.parts[machine.home(place)].name for place, part in enumerate(machine.parts)
            if part.kind in ("cpu", "gpu", "nic")}  # fmt: skip
    assert home == {"cpu0.0.0": "mem0", "cpu0.0.1": "mem0", "cpu1.0.0": "mem1", "cpu1.0.1": "mem1",
                    "gpu0": "mem0", "nic0": "mem1"}  # fmt: skip
    parts = (Part("lost", "memory"), Part("b", "memory"), Part("a", "memory"), Part("gpu", "gpu"))
    equal = Machine("m", parts, (("gpu", "a"), ("gpu", "b")))
    assert equal.home(3) == 1


def test_neighbours_are_known_from_both_ends() -> None:
    machine = box()
    for place, near in enumerate(machine.neighbours):
        assert list(near) == sorted(set(near))
        assert all(place in machine.neighbours[other] for other in near)
    assert sum(len(near) for near in machine.neighbours) == 2 * len(machine.links)


def test_racks_have_machines_with_names_of_their_own() -> None:
    with pytest.raises(InvalidInput, match="r: the rack has no machines"):
        Rack("r", ())
    with pytest.raises(InvalidInput, match="r: two machines have one name"):
        Rack("r", (box("a"), box("b"), box("a")))
    rack = rack_of([box("a"), box("b"), box("a")], "r")
    assert (rack.name, [machine.name for machine in rack.machines]) == ("r", ["a0", "b", "a1"])
    assert rack.num_processors == 3 * 7
    assert rack_of([replace(box("a"), meta={"x": "y"})] * 2).machines[1].meta == {"x": "y"}
    assert rack_of([box()]).name == "rack"


# Presets ------------------------------------------------------------------------------------------


def count(rack: Rack, kind: str, model: str | None = None) -> int:
    return sum(part.kind == kind and model in (None, part.model) for one in rack.machines for part in one.parts)


def test_the_papers_rack_has_the_papers_counts() -> None:
    rack = paper_rack()
    assert (rack.name, len(rack.machines)) == ("paper-rack", 6)
    assert (count(rack, "memory"), count(rack, "gpu", "k80"), count(rack, "gpu", "k40")) == (12, 6, 2)
    assert (count(rack, "fpga"), count(rack, "fpga", "7v3"), count(rack, "nic")) == (2, 2, 6)
    assert count(rack, "cpu", "power8") == 24
    assert [machine.name for machine in rack.machines] == ["m10", "m11", "m20", "m21", "m22", "m23"]
    assert [sum(part.kind == "gpu" for part in machine.parts) for machine in rack.machines] == [3, 3, 1, 1, 0, 0]


def test_power8_machines_spread_their_devices_over_two_switches() -> None:
    first, second = power8_m1(num_cores=2, num_threads=4, num_gpus=3), power8_m2(num_gpus=2, fpga="385")
    assert way(first, "gpu0", "mem0") == ["gpu0", "switch0", "root0", "mem0"]
    assert way(first, "gpu1", "mem1") == ["gpu1", "switch1", "root1", "mem1"]
    assert way(first, "gpu2", "mem0") == ["gpu2", "switch0", "root0", "mem0"]
    assert way(first, "fpga0", "mem1") == ["fpga0", "switch1", "root1", "mem1"]
    assert way(second, "fpga0", "mem0") == ["fpga0", "switch0", "root0", "mem0"]
    assert way(first, "nic0", "mem0") == ["nic0", "switch0", "root0", "mem0"]
    assert way(first, "cpu1.1.3", "mem0") == ["cpu1.1.3", "core1.1", "mem1", "link0-1", "mem0"]
    assert {part.model for part in second.parts if part.kind in ("gpu", "fpga")} == {"k40", "385"}
    capacity = {part.kind: part.capacity for part in first.parts}
    assert capacity == {
        "memory": 96 * GB, "root-complex": 32 * GB, "core": 1.0, "cpu": INF, "pcie-switch": 12.5 * GB,
        "socket-link": 38.4 * GB, "gpu": INF, "fpga": INF, "nic": 6.8 * GB,
    }  # fmt: skip


def test_the_gpu_server_has_two_gpus_and_a_nic_behind_each_switch() -> None:
    machine = hgx8(num_cores=1, num_threads=1)
    for switch in range(4):
        neighbours = {machine.parts[place].name for place in machine.neighbours[machine.index_of[f"switch{switch}"]]}
        assert neighbours == {f"root{switch // 2}", f"gpu{2 * switch}", f"gpu{2 * switch + 1}", f"nic{switch}"}
    capacity = {part.kind: part.capacity for part in machine.parts}
    assert capacity["memory"] == 300 * GB
    assert capacity["root-complex"] == 180 * GB
    assert capacity["socket-link"] == 96 * GB
    assert capacity["pcie-switch"] == capacity["nic"] == 50 * GB
    assert {part.model for part in machine.parts if part.kind in ("cpu", "gpu")} == {"xeon", "h100"}
    assert sum(part.kind == "cpu" for part in hgx8().parts) == 32


def test_two_nics_share_a_switch_with_a_gpu_each() -> None:
    (machine,) = preset("two-nics").machines
    capacity = {part.kind: part.capacity for part in machine.parts}
    assert capacity["nic"] == 11.5 * GB
    assert (capacity["memory"], capacity["root-complex"], capacity["socket-link"]) == (60 * GB, 32 * GB, 38.4 * GB)
    for side in (0, 1):
        assert way(machine, f"nic{side}", f"gpu{side}") == [f"nic{side}", f"switch{side}", f"gpu{side}"]
        assert machine.parts[machine.index_of[f"gpu{side}"]].model == "k80"
    assert [part.model for part in machine.parts if part.kind == "cpu"] == ["xeon"] * 4


def test_presets_are_found_by_name() -> None:
    assert {name: preset(name).name for name in PRESETS} == {name: name for name in PRESETS}
    assert [machine.name for machine in preset("small-rack").machines] == ["m1", "m2"]
    assert [count(preset("small-rack"), "gpu", model) for model in ("k80", "k40")] == [2, 1]
    assert count(preset("small-rack"), "fpga") == 1
    assert [count(preset(name), "gpu") for name in ("m1", "m2", "hgx8")] == [3, 1, 8]
    with pytest.raises(UnknownName, match=r"rack 'papr-rack'.*paper-rack"):
        preset("papr-rack")

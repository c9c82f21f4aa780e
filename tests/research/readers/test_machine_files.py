"""Machines from TOML and from lstopo's XML: what is read, and what is refused with its place."""

from __future__ import annotations

import pytest
from research.readers.hwloc import read_hwloc
from research.readers.write_machines import write_rack

from stretto.core.machine import Machine, Part
from stretto.core.machine_presets import PRESETS
from stretto.errors import InvalidInput
from stretto.files.clusters.machine_toml import read_rack
from stretto.files.document import Document

LSTOPO = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" nodeset="0x00000003">
  <object type="Package" os_index="0" nodeset="0x00000001">
   <object type="NUMANode" os_index="0" nodeset="0x00000001" local_memory="1000"/>
   <object type="Core" os_index="0" nodeset="0x00000001">
    <object type="PU" os_index="0"/><object type="PU" os_index="1"/>
   </object>
   <object type="Bridge" bridge_type="0-1">
    <object type="Bridge" bridge_type="1-1" pci_type="0604 [1000:c010]" pci_link_speed="31.5">
     <object type="Bridge" bridge_type="1-1" pci_link_speed="31.5">
      <object type="PCIDev" pci_type="0302 [10de:2330]" pci_link_speed="63.0"/>
     </object>
     <object type="PCIDev" pci_type="0207 [15b3:1021]" pci_link_speed="31.5"/>
    </object>
    <object type="PCIDev" pci_type="0108 [144d:a80a]" pci_link_speed="8.0"/>
   </object>
  </object>
  <object type="Package" os_index="1" nodeset="0x00000002">
   <object type="NUMANode" os_index="1" nodeset="0x00000002"/>
   <object type="Core" os_index="1" nodeset="0x00000002"><object type="PU" os_index="2"/></object>
   <object type="Bridge" bridge_type="0-1">
    <object type="PCIDev" pci_type="1200 [10ee:5000]" pci_link_speed="0.0"/>
   </object>
  </object>
 </object>
</topology>
"""


def _hwloc(text: str) -> Machine:
    return read_hwloc(Document("box.xml", text.encode()))


def _parts(machine: Machine, name: str, end: str) -> list[str]:
    route = machine.route(machine.index_of[name], machine.index_of[end])
    assert route is not None
    return [machine.parts[place].name for place in route]


def test_lstopo_gives_switches_threads_and_devices_where_they_hang():
    machine = _hwloc(LSTOPO)
    assert _parts(machine, "gpu0", "mem0") == ["gpu0", "switch0", "root0", "mem0"]
    assert _parts(machine, "nic0", "mem0") == ["nic0", "switch0", "root0", "mem0"]
    assert _parts(machine, "fpga0", "mem1") == ["fpga0", "root1", "mem1"]
    assert _parts(machine, "cpu1.0", "mem0") == ["cpu1.0", "core1", "mem1", "link0-1", "mem0"]
    assert [part.name for part in machine.parts if part.kind == "cpu"] == ["cpu0.0", "cpu0.1", "cpu1.0"]
    assert machine.parts[machine.index_of["switch0"]].capacity == pytest.approx(31.5e9)
    assert sum(part.kind == "root-complex" for part in machine.parts) == 2  # a disk alone makes no bridge


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<topology", "wrong XML"),
        ("<adag/>", "no <topology>"),
        ("<topology/>", "no PU"),
        ('<!DOCTYPE t [<!ENTITY a "b">]><topology/>', "entity"),
        ("<topology>" + '<object type="Group">' * 300 + "</object>" * 300 + "</topology>", "nested"),
    ],
)
def test_wrong_xml_is_refused_with_its_file(text, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        _hwloc(text)
    assert caught.value.source == "box.xml"


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_survive_a_file(name):
    rack = PRESETS[name]()
    again = read_rack(Document("rack.toml", write_rack(rack).encode()))
    assert [(m.name, m.parts, m.links) for m in again.machines] == [(m.name, m.parts, m.links) for m in rack.machines]


def test_counts_and_presets_in_a_file():
    text = """
    [[machine]]
    name = "node"
    count = 2
    preset = "m1"
    [[machine]]
    name = "box"
    links = [["mem", "core"], ["core", "cpu0"], ["core", "cpu1"]]
    [[machine.part]]
    name = "mem"
    kind = "memory"
    bandwidth = "50GB/s"
    [[machine.part]]
    name = "core"
    kind = "core"
    [[machine.part]]
    name = "cpu"
    kind = "cpu"
    count = 2
    """
    rack = read_rack(Document("rack.toml", text.encode()))
    assert [machine.name for machine in rack.machines] == ["node0", "node1", "box"]
    assert rack.machines[2].parts[0] == Part("mem", "memory", 50e9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "wrong TOML"),
        ("name = 'x'", r"no \[\[machine\]\]"),
        ("[[machine]]\nname='a'\ncolour='red'", "'colour' is unknown"),
        ("[[machine]]\nlinks=[]\n[[machine.part]]\nname='m'\nkind='memory'", "bandwidth is missing"),
        ("[[machine]]\nlinks=[]\n[[machine.part]]\nname='m'\nkind='ram'\nbandwidth=1", "'ram' is unknown"),
        ("[[machine]]\nlinks=[['m','x']]\n[[machine.part]]\nname='m'\nkind='memory'\nbandwidth=1", "no part"),
        ("[[machine]]\nlinks=[]\n[[machine.part]]\nname='c'\nkind='cpu'", "no memory"),
        (
            "[[machine]]\nlinks=[]\n[[machine.part]]\nname='m'\nkind='memory'\nbandwidth=1\n"
            "[[machine.part]]\nname='c'\nkind='cpu'",
            "reaches no memory",
        ),
        ("[[machine]]\npreset='paper-rack'", "rack of 6 machines"),
        ("[[machine]]\npreset='m1'\ncount=0", "not a number"),
    ],
)
def test_wrong_files_are_refused_with_their_place(text, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        read_rack(Document("rack.toml", text.encode()))
    assert caught.value.source == "rack.toml"

"""Machines from ``lstopo --of xml`` (hwloc 1.x and 2.x): packages, NUMA nodes, cores, PCIe bridges and devices.

hwloc knows what hangs where and how fast PCIe links are, but no memory bandwidth: that, and the link between sockets,
are the caller's to say. A bridge with several devices behind it is a switch; with one, it is just a port and left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from stretto.core.machine import Machine
from stretto.core.machine_presets import MachineBuilder
from stretto.core.units import is_count
from stretto.files.document import Document
from stretto.files.sniff import graph_name

_MAX_DEPTH = 256
#: Each two of them are joined.
_MAX_NODES = 128
#: PCI classes: display and 3D controllers, network controllers, processing accelerators.
_DEVICES = {"03": "gpu", "02": "nic", "12": "fpga"}
_GB = 1e9
_UNKNOWN_LINK = 16.0  # GB/s, where hwloc could not read a PCIe link (no privileges, or a virtual machine)


@dataclass
class _Object:
    kind: str
    attributes: dict[str, str]
    children: list[_Object] = field(default_factory=list)


def read_hwloc(
    document: Document, *, memory_bytes_per_s: float = 100 * _GB, link_bytes_per_s: float = 40 * _GB
) -> Machine:
    """Read one machine.

    Parameters
    ----------
    memory_bytes_per_s, link_bytes_per_s
        Bandwidth of each NUMA node's memory, and between two of them.
    """
    root = _Reader(document).parse()
    build = MachineBuilder(graph_name(document))
    nodes = _of(root, "NUMANode") or [_Object("NUMANode", {"os_index": "0"})]
    if len(nodes) > _MAX_NODES:
        document.fail(f"{len(nodes):,} NUMA nodes, more than {_MAX_NODES}", field="NUMANode")
    for number in range(len(nodes)):
        build.add(f"mem{number}", "memory", memory_bytes_per_s)
    order = [node.attributes.get("os_index", str(number)) for number, node in enumerate(nodes)]
    _add_cores(build, root, order)
    _add_devices(build, root, order, 0)
    for a in range(len(nodes)):
        for b in range(a + 1, len(nodes)):
            build.join_sockets(a, b, link_bytes_per_s)
    if not any(part.kind == "cpu" for part in build.parts):
        document.fail("no PU: this is not the XML of lstopo", field="object")
    return build.build()


def _of(one: _Object, kind: str) -> list[_Object]:
    found = [one] if one.kind == kind else []
    for child in one.children:
        found += _of(child, kind)
    return found


def _node(attributes: dict[str, str], order: list[str], default: int) -> int:
    """Return the NUMA node that an object is nearest to, from the mask in its ``nodeset``."""
    try:
        mask = int(attributes.get("nodeset", "0").split(",")[-1], 16)
    except ValueError:
        return default
    for number, index in enumerate(order):
        if is_count(index) and mask >> int(index) & 1:
            return number
    return default


def _add_cores(build: MachineBuilder, root: _Object, order: list[str]) -> None:
    for number, core in enumerate(_of(root, "Core")):
        unit = build.add(f"core{number}", "core", 1.0, to=f"mem{_node(core.attributes, order, 0)}")
        for thread in range(len(_of(core, "PU"))):
            build.add(f"cpu{number}.{thread}", "cpu", to=unit)


def _add_devices(build: MachineBuilder, one: _Object, order: list[str], node: int) -> None:
    """Add the host bridges below an object; IO objects carry no node, so that of what holds them counts."""
    node = _node(one.attributes, order, node)
    for child in one.children:
        if child.kind == "Bridge" and _below(child):
            root = f"root{sum(part.kind == 'root-complex' for part in build.parts)}"
            links = [_speed(device) for device in _below(child)]
            build.add(root, "root-complex", sum(links), to=f"mem{node}")
            _add_bridge(build, child, root)
        elif child.kind != "Bridge":
            _add_devices(build, child, order, node)


def _add_bridge(build: MachineBuilder, bridge: _Object, above: str) -> None:
    for child in bridge.children:
        kind = _device(child)
        if kind:
            number = sum(part.kind == kind for part in build.parts)
            capacity = _speed(child) if kind == "nic" else float("inf")
            build.add(f"{kind}{number}", kind, capacity, to=above, model=child.attributes.get("pci_type", "")[5:16])
        elif child.kind == "Bridge" and len(_below(child)) > 1:
            name = f"switch{sum(part.kind == 'pcie-switch' for part in build.parts)}"
            _add_bridge(build, child, build.add(name, "pcie-switch", _speed(child), to=above))
        elif child.kind == "Bridge":
            _add_bridge(build, child, above)


def _device(one: _Object) -> str:
    return _DEVICES.get(one.attributes.get("pci_type", "")[:2], "") if one.kind == "PCIDev" else ""


def _below(one: _Object) -> list[_Object]:
    return [device for device in _of(one, "PCIDev") if _device(device)]


def _speed(one: _Object) -> float:
    """Return bytes per second of the link to a PCIe object; zero says that hwloc could not read it."""
    try:
        speed = float(one.attributes.get("pci_link_speed", "0"))
    except ValueError:
        speed = 0.0
    return (speed if 0 < speed < 1e4 else _UNKNOWN_LINK) * _GB


class _Reader:
    """Builds the tree of objects; entity declarations are refused, so nothing can expand."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.parser = expat.ParserCreate()
        self.root = _Object("", {})
        self.stack = [self.root]
        self.has_topology = False

    def parse(self) -> _Object:
        parser = self.parser
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.EntityDeclHandler = self.entity
        try:
            parser.Parse(self.document.data, True)
        except expat.ExpatError as error:
            self.document.fail(f"wrong XML: {expat.ErrorString(error.code)}", line=error.lineno)
        except (LookupError, ValueError) as error:
            self.document.fail(f"wrong XML: {error}", line=parser.CurrentLineNumber)
        if not self.has_topology:
            self.document.fail("no <topology>: this is not the XML of lstopo", field="topology")
        return self.root

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self.stack) > _MAX_DEPTH:
            self.document.fail(f"nested deeper than {_MAX_DEPTH}", line=self.parser.CurrentLineNumber)
        self.has_topology = self.has_topology or name == "topology"
        if name == "object":
            found = _Object(attributes.get("type", ""), attributes)
            self.stack[-1].children.append(found)
            self.stack.append(found)

    def end(self, name: str) -> None:
        if name == "object":
            self.stack.pop()

    def entity(self, *_: object) -> NoReturn:
        self.document.fail("entity declarations are refused", line=self.parser.CurrentLineNumber)

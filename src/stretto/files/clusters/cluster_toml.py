"""Cluster files: devices, machines, network and kinds, in TOML (or the same in JSON).

::

    name = "lab"

    [network]                     # between any two devices, unless said otherwise below
    bandwidth = "10Gbit/s"
    latency = "50us"

    [[machine]]                   # two machines, node0 and node1
    name = "node"
    count = 2
    bandwidth = "16GB/s"          # between devices of one machine
    latency = "5us"
    [[machine.device]]
    kind = "gpu"
    count = 4
    speed = 5.0
    memory = "16GB"

    [[device]]                    # devices outside of any [[machine]]
    kind = "cpu"
    count = 8

    [[node]]                      # nodes run every set of tasks that fits, see core/nodes/packing.py
    count = 4
    cores = 16
    memory = "64GB"
    resources = { licenses = 2 }

    [kinds.gpu]                   # what a kind can run, see KindRule
    never = ["io*"]

Where a ``count`` stands, or no name, names are numbered; devices of a machine are called
``machine/device``. Sizes, rates and times are text with a unit, or plain numbers: bytes, bytes per second, seconds.

Instead of one network, ``[matrix]`` gives full ``bandwidth`` and ``latency`` matrices by device,
or ``[[link]]`` entries describe wires: ``ends = ["node*", "tor"]`` with ``bandwidth``, ``latency`` and
``duplex = "full" | "half"``, between devices, machines and the names in ``network.switches``. A ``*``
stands for every match. In such a topology a machine joins its devices by a bus of its
``bandwidth``, or without limit when it states none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

import numpy as np

from stretto.core.cluster import DEFAULT_BANDWIDTH, Cluster, Device, KindRule, Links
from stretto.core.csr import Floats
from stretto.core.problem_size import check_num_devices
from stretto.core.topology import MAX_ROUTED_DEVICES, MAX_WIRES, Wire, route
from stretto.errors import InvalidInput, UnknownName
from stretto.files.document import Document
from stretto.files.fields import Fields, toml_or_json
from stretto.files.sniff import graph_name

#: Latency and bandwidth are full matrices; ten thousand devices already take 1.6 GB.
MAX_DEVICES = 10_000
_TOP = ("name", "network", "machine", "device", "node", "matrix", "link", "routes", "kinds")
#: Files that are easily taken for clusters, by the key that gives them away.
_OTHERS = {
    "task": "a workflow of commands, not a cluster: run it with  stretto run FILE --cluster CLUSTER",
    "pool": "a file of pools, not a cluster: give it to --pools",
}
_DEVICE = ("kind", "count", "speed", "memory", "cores", "machine", "price_usd_per_hour", "name")
_NODE = ("name", "count", "kind", "speed", "cores", "memory", "gpus", "scratch", "resources", "price_usd_per_hour")
_MACHINE = ("name", "count", "bandwidth", "latency", "device")


def read_cluster(document: Document) -> Cluster:
    """Read a cluster from TOML or JSON."""
    try:
        return _Reader(document).cluster()
    except InvalidInput as error:
        raise error.at(document.name) from None


@dataclass
class _Machine:
    """A machine and what joins its devices; None leaves it to the network."""

    name: str
    bandwidth: float | None = None
    latency_s: float | None = None
    members: list[int] = field(default_factory=list)


class _Reader:
    """Goes through the tables of one file."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.root = toml_or_json(document)
        for key, what in _OTHERS.items():
            if key in self.root:
                self.root.fail(f"this is {what}", key)
        self.root.only(*_TOP)
        self.devices: list[Device] = []
        self.machines: dict[str, _Machine] = {}
        self.numbers: dict[str, int] = {}

    def cluster(self) -> Cluster:
        root = self.root
        network = root.fields("network")
        network.only("bandwidth", "latency", "switches")
        for entry in root.tables("machine"):
            self.machine(entry)
        for entry in root.tables("device"):
            self.group(entry, None)
        for entry in root.tables("node"):
            self.nodes(entry)
        if not self.devices:
            root.fail("the cluster has no devices and no nodes", "device")
        if "link" in root and ("matrix" in root or "routes" in root):
            root.fail("give [matrix] or [[link]], not both", "link")
        latency, bandwidth, links = self.joined(network)
        name = root.text("name", graph_name(self.document))
        kinds = root.fields("kinds")
        rules = {kind: _rule(kinds.fields(kind)) for kind in kinds}
        return Cluster(tuple(self.devices), latency, bandwidth, name, links, rules)

    def machine(self, entry: Fields) -> None:
        entry.only(*_MACHINE)
        base = entry.text("name", "m")
        many = "count" in entry or "name" not in entry
        inside = entry.tables("device")
        for _ in range(entry.count("count", 1, 1, MAX_DEVICES)):
            if len(self.machines) >= MAX_DEVICES:
                entry.fail(f"more than {MAX_DEVICES:,} machines")
            name = self.numbered(base) if many else base
            if name in self.machines:
                entry.fail(f"two machines are called {name!r}")
            self.machines[name] = _Machine(
                name,
                entry.rate("bandwidth", 0.0) if "bandwidth" in entry else None,
                entry.seconds("latency", 0.0) if "latency" in entry else None,
            )
            for group in inside:
                self.group(group, name)

    def group(self, entry: Fields, machine: str | None) -> None:
        """Add the devices of one ``[[device]]`` table."""
        entry.only(*(key for key in _DEVICE if machine is None or key != "machine"))
        kind = entry.text("kind", "cpu")
        base = entry.text("name", kind)
        prefix = f"{machine}/" if machine is not None else ""
        home = machine if machine is not None else entry.text("machine", "m0")
        many = "count" in entry or "name" not in entry
        values = {key: entry.number(key) for key in ("speed", "cores", "price_usd_per_hour") if key in entry}
        if "memory" in entry:
            values["memory_bytes"] = entry.size_bytes("memory")
        for _ in range(entry.count("count", 1, 1, MAX_DEVICES)):
            if len(self.devices) >= MAX_DEVICES:
                entry.fail(f"more than {MAX_DEVICES:,} devices")
            name = prefix + (self.numbered(prefix + base).removeprefix(prefix) if many else base)
            if home in self.machines:
                self.machines[home].members.append(len(self.devices))
            self.devices.append(Device(name, kind, machine=home, **values))  # type: ignore[arg-type]

    def nodes(self, entry: Fields) -> None:
        """Add the nodes of one ``[[node]]`` table: they run every set of tasks that fits."""
        entry.only(*_NODE)
        if "cores" not in entry:
            entry.fail("a node states its cores; use [[device]] for what runs one task at a time", "cores")
        base = entry.text("name", "node")
        many = "count" in entry or "name" not in entry
        values = {key: entry.number(key) for key in ("speed", "cores", "price_usd_per_hour") if key in entry}
        values["gpus"] = entry.number("gpus") if "gpus" in entry else 0.0
        if "memory" in entry:
            values["memory_bytes"] = entry.size_bytes("memory")
        for _ in range(entry.count("count", 1, 1, MAX_DEVICES)):
            if len(self.devices) >= MAX_DEVICES:
                entry.fail(f"more than {MAX_DEVICES:,} devices and nodes")
            name = self.numbered(base) if many else base
            resources = _named_resources(entry)
            kind = entry.text("kind", "cpu")
            node = Device(name, kind, machine=name, **values)  # type: ignore[arg-type]
            self.devices.append(replace(node, packs=True, resources=resources))

    def numbered(self, base: str) -> str:
        """Return the base name with the next number, as the shorthand does."""
        number = self.numbers.get(base, 0)
        self.numbers[base] = number + 1
        return f"{base}{number}"

    def joined(self, network: Fields) -> tuple[Floats, Floats, Links | None]:
        """Return latency, bandwidth and shared links."""
        if "link" in self.root:
            return self.topology(network)
        m = len(self.devices)
        check_num_devices(m)
        bandwidth = np.full((m, m), network.rate("bandwidth", DEFAULT_BANDWIDTH))
        latency = np.full((m, m), network.seconds("latency", 0.0))
        if "switches" in network:
            network.fail("switches need [[link]] entries that join them", "switches")
        for machine in self.machines.values():
            inside = np.ix_(machine.members, machine.members)
            if machine.bandwidth is not None:
                bandwidth[inside] = machine.bandwidth
            if machine.latency_s is not None:
                latency[inside] = machine.latency_s
        if "matrix" in self.root:
            matrix = self.root.fields("matrix")
            matrix.only("bandwidth", "latency")
            bandwidth = _matrix(matrix, "bandwidth", bandwidth)
            latency = _matrix(matrix, "latency", latency)
        np.fill_diagonal(latency, 0.0)
        return latency, bandwidth, _routes(self.root.fields("routes"), m) if "routes" in self.root else None

    def topology(self, network: Fields) -> tuple[Floats, Floats, Links]:
        names = [device.name for device in self.devices]
        switches = network.texts("switches")
        if len(names) > MAX_ROUTED_DEVICES:  # before wires are made: a pattern stands for each pair of them
            self.root.fail(f"{len(names)} devices; routes are limited to {MAX_ROUTED_DEVICES}", "link")
        nodes = [*names, *self.machines, *switches]
        if len(set(nodes)) != len(nodes):
            twice = next(name for name in nodes if nodes.count(name) > 1)
            self.root.fail(f"two of the devices, machines and switches are called {twice!r}", "link")
        index = {name: number for number, name in enumerate(nodes)}
        wires = list(self.buses(index))
        for entry in self.root.tables("link"):
            for wire in _wires(entry, index, network):
                if len(wires) >= MAX_WIRES:
                    entry.fail(f"more than {MAX_WIRES:,} wires")
                wires.append(wire)
        return route(nodes, len(names), wires)

    def buses(self, index: Mapping[str, int]) -> Iterator[Wire]:
        """Join each device to its machine; half of the inner latency on either side."""
        for machine in self.machines.values():
            for member in machine.members:
                width = machine.bandwidth if machine.bandwidth is not None else np.inf
                yield Wire(member, index[machine.name], width, (machine.latency_s or 0.0) / 2)


def _named_resources(entry: Fields) -> tuple[tuple[str, float], ...]:
    """Read what a node has besides cores, memory and GPUs: scratch in bytes, and amounts by name."""
    table = entry.fields("resources")
    named = [("scratch", entry.size_bytes("scratch"))] if "scratch" in entry else []
    for name in table:
        if name in ("cores", "memory", "gpus", "scratch", "slot"):
            table.fail("this is a key of the node itself, not one of its named resources", name)
        named.append((name, table.size_bytes(name) if isinstance(table.values[name], str) else table.number(name)))
    return tuple(named)


def _wires(entry: Fields, index: Mapping[str, int], network: Fields) -> Iterator[Wire]:
    """Yield the wires of one ``[[link]]``, one for each pair that its ends stand for."""
    entry.only("ends", "bandwidth", "latency", "duplex")
    ends = entry.texts("ends")
    if len(ends) != 2:
        entry.fail(f"expected two ends, got {len(ends)}", "ends")
    duplex = entry.text("duplex", "full")
    if duplex not in ("full", "half"):
        entry.fail(f"{duplex!r} is neither 'full' nor 'half'", "duplex")
    bandwidth = entry.rate("bandwidth", network.rate("bandwidth", DEFAULT_BANDWIDTH))
    latency_s = entry.seconds("latency", network.seconds("latency", 0.0))
    first, second = (_nodes(entry, end, index) for end in ends)
    done: set[tuple[int, int]] = set()
    for a in first:
        for b in second:
            pair = (min(a, b), max(a, b))
            if a != b and pair not in done:
                done.add(pair)
                yield Wire(a, b, bandwidth, latency_s, duplex == "full")


def _nodes(entry: Fields, pattern: str, index: Mapping[str, int]) -> list[int]:
    """Return the nodes that a name or a pattern means; ``*`` does not reach over a slash."""
    if pattern in index:
        return [index[pattern]]
    parts = pattern.split("/")
    found = [
        number
        for name, number in index.items()
        if name.count("/") == len(parts) - 1 and all(map(fnmatchcase, name.split("/"), parts))
    ]
    if not found:
        entry.fail(str(UnknownName("device, machine or switch", pattern, index)), "ends")
    return found


def _rule(table: Fields) -> KindRule:
    table.only("like", "only", "never", "factor")
    factors = table.fields("factor")
    factor = {pattern: factors.number(pattern) for pattern in factors}
    for pattern, value in factor.items():
        if not value > 0:
            factors.fail(f"{value} must be positive", pattern)
    like = table.text("like", "") if "like" in table else None
    return KindRule(like, table.texts("only"), table.texts("never"), factor)


def _matrix(matrix: Fields, key: str, default: Floats) -> Floats:
    """Read a full matrix by device; what stands on its diagonal does not matter."""
    if key not in matrix:
        return default
    m = len(default)
    rows = [row for row in matrix.items(key) if isinstance(row, list) and len(row) == m]
    if len(rows) != m or len(matrix.items(key)) != m:
        matrix.fail(f"expected {m} rows of {m} values, by device", key)
    read = matrix.as_rate if key == "bandwidth" else matrix.as_seconds
    return np.array(
        [
            [default[a, a] if a == b else read(item, f"{key}[{a}][{b}]") for b, item in enumerate(row)]
            for a, row in enumerate(rows)
        ],
        dtype=np.float64,
    )


def _routes(table: Fields, num_devices: int) -> Links:
    """Read shared links with the explicit route of each pair, as the writer leaves them."""
    table.only("links", "bandwidth", "route")
    names = table.texts("links")
    rates = [table.as_rate(item, "bandwidth") for item in table.items("bandwidth")]
    rows = table.items("route")
    pairs = [table.as_list(pair, "route") for row in rows for pair in table.as_list(row, "route")]
    if len(rates) != len(names) or len(pairs) != num_devices**2 or len(rows) != num_devices:
        table.fail(f"expected a bandwidth for each link and {num_devices} x {num_devices} routes")
    flat = []
    for link in (link for pair in pairs for link in pair):
        if isinstance(link, bool) or not isinstance(link, int) or not 0 <= link < len(names):
            table.fail(f"{link!r} is not the number of a link", "route")
        flat.append(link)
    ptr = np.cumsum([0] + [len(pair) for pair in pairs]).astype(np.int32)
    return Links(names, np.array(rates, dtype=np.float64), ptr, np.array(flat, dtype=np.int32))

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

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from stretto.core.cluster import DEFAULT_BANDWIDTH, Cluster, Device, KindRule, Links
from stretto.core.csr import Floats
from stretto.core.problem_size import check_num_devices
from stretto.core.topology import MAX_ROUTED_DEVICES, MAX_WIRES, Wire, route
from stretto.core.units import parse_bytes, parse_rate, parse_seconds, stating_unit
from stretto.errors import InvalidInput, UnknownName
from stretto.files.document import Document
from stretto.files.sniff import graph_name

#: Latency and bandwidth are full matrices; ten thousand devices already take 1.6 GB.
MAX_DEVICES = 10_000
_TOP = ("name", "network", "machine", "device", "matrix", "link", "routes", "kinds")
#: Files that are easily taken for clusters, by the key that gives them away.
_OTHERS = {
    "task": "a workflow of commands, not a cluster: run it with  stretto run FILE --cluster CLUSTER",
    "pool": "a file of pools, not a cluster: give it to --pools",
}
_DEVICE = ("kind", "count", "speed", "memory", "cores", "machine", "price_usd_per_hour", "name")
_MACHINE = ("name", "count", "bandwidth", "latency", "device")
_LINE = re.compile(r"\(at line (\d+), column \d+\)")

Table = Mapping[str, Any]


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
        self.root = _parse(document)
        for key, what in _OTHERS.items():
            if key in self.root:
                raise InvalidInput(f"this is {what}", field=key)
        _known(self.root, _TOP, "")
        self.devices: list[Device] = []
        self.machines: dict[str, _Machine] = {}
        self.numbers: dict[str, int] = {}

    def cluster(self) -> Cluster:
        root = self.root
        network = _table(root.get("network", {}), "network")
        _known(network, ("bandwidth", "latency", "switches"), "network")
        for place, entry in enumerate(_tables(root.get("machine", []), "machine")):
            self.machine(entry, f"machine[{place}]")
        for place, entry in enumerate(_tables(root.get("device", []), "device")):
            self.group(entry, f"device[{place}]", None)
        if not self.devices:
            raise InvalidInput("the cluster has no devices", field="device")
        given = [key for key in ("matrix", "link") if key in root]
        if len(given) > 1 or ("link" in root and "routes" in root):
            raise InvalidInput("give [matrix] or [[link]], not both", field="link")
        latency, bandwidth, links = self.joined(network)
        name = _text(root.get("name", graph_name(self.document)), "name")
        rules = {kind: _rule(entry, kind) for kind, entry in _table(root.get("kinds", {}), "kinds").items()}
        return Cluster(tuple(self.devices), latency, bandwidth, name, links, rules)

    def machine(self, entry: Table, place: str) -> None:
        _known(entry, _MACHINE, place)
        base = _text(entry.get("name", "m"), f"{place}.name")
        many = "count" in entry or "name" not in entry
        inside = _tables(entry.get("device", []), f"{place}.device")
        for _ in range(_count(entry, place)):
            if len(self.machines) >= MAX_DEVICES:
                raise InvalidInput(f"more than {MAX_DEVICES:,} machines", field=place)
            name = self.numbered(base) if many else base
            if name in self.machines:
                raise InvalidInput(f"two machines are called {name!r}", field=place)
            self.machines[name] = _Machine(
                name,
                _rate(entry["bandwidth"], f"{place}.bandwidth") if "bandwidth" in entry else None,
                _seconds(entry["latency"], f"{place}.latency") if "latency" in entry else None,
            )
            for number, group in enumerate(inside):
                self.group(group, f"{place}.device[{number}]", name)

    def group(self, entry: Table, place: str, machine: str | None) -> None:
        """Add the devices of one ``[[device]]`` table."""
        _known(entry, _DEVICE if machine is None else [key for key in _DEVICE if key != "machine"], place)
        kind = _text(entry.get("kind", "cpu"), f"{place}.kind")
        base = _text(entry.get("name", kind), f"{place}.name")
        prefix = f"{machine}/" if machine is not None else ""
        home = machine if machine is not None else _text(entry.get("machine", "m0"), f"{place}.machine")
        many = "count" in entry or "name" not in entry
        values: dict[str, float] = {}
        for key, convert in (("speed", _number), ("cores", _number), ("price_usd_per_hour", _number)):
            if key in entry:
                values[key] = convert(entry[key], f"{place}.{key}")
        if "memory" in entry:
            values["memory_bytes"] = _bytes(entry["memory"], f"{place}.memory")
        for _ in range(_count(entry, place)):
            if len(self.devices) >= MAX_DEVICES:
                raise InvalidInput(f"more than {MAX_DEVICES:,} devices", field=place)
            name = prefix + (self.numbered(prefix + base).removeprefix(prefix) if many else base)
            if home in self.machines:
                self.machines[home].members.append(len(self.devices))
            self.devices.append(Device(name, kind, machine=home, **values))

    def numbered(self, base: str) -> str:
        """Return the base name with the next number, as the shorthand does."""
        number = self.numbers.get(base, 0)
        self.numbers[base] = number + 1
        return f"{base}{number}"

    def joined(self, network: Table) -> tuple[Floats, Floats, Links | None]:
        """Return latency, bandwidth and shared links."""
        if "link" in self.root:
            return self.topology(network)
        m = len(self.devices)
        check_num_devices(m)
        bandwidth = np.full((m, m), _rate(network.get("bandwidth", DEFAULT_BANDWIDTH), "network.bandwidth"))
        latency = np.full((m, m), _seconds(network.get("latency", 0.0), "network.latency"))
        if "switches" in network:
            raise InvalidInput("switches need [[link]] entries that join them", field="network.switches")
        for machine in self.machines.values():
            inside = np.ix_(machine.members, machine.members)
            if machine.bandwidth is not None:
                bandwidth[inside] = machine.bandwidth
            if machine.latency_s is not None:
                latency[inside] = machine.latency_s
        if "matrix" in self.root:
            matrix = _table(self.root["matrix"], "matrix")
            _known(matrix, ("bandwidth", "latency"), "matrix")
            bandwidth = _matrix(matrix.get("bandwidth"), bandwidth, "matrix.bandwidth", rate=True)
            latency = _matrix(matrix.get("latency"), latency, "matrix.latency", rate=False)
        np.fill_diagonal(latency, 0.0)
        return latency, bandwidth, _routes(self.root["routes"], m) if "routes" in self.root else None

    def topology(self, network: Table) -> tuple[Floats, Floats, Links]:
        names = [device.name for device in self.devices]
        switches = [_text(name, "network.switches") for name in _list(network.get("switches", []), "network.switches")]
        if len(names) > MAX_ROUTED_DEVICES:  # before wires are made: a pattern stands for each pair of them
            raise InvalidInput(f"{len(names)} devices; routes are limited to {MAX_ROUTED_DEVICES}", field="link")
        nodes = [*names, *self.machines, *switches]
        if len(set(nodes)) != len(nodes):
            twice = next(name for name in nodes if nodes.count(name) > 1)
            raise InvalidInput(f"two of the devices, machines and switches are called {twice!r}", field="link")
        index = {name: number for number, name in enumerate(nodes)}
        wires = list(self.buses(index))
        for place, entry in enumerate(_tables(self.root["link"], "link")):
            for wire in _wires(entry, f"link[{place}]", index, network):
                if len(wires) >= MAX_WIRES:
                    raise InvalidInput(f"more than {MAX_WIRES:,} wires", field=f"link[{place}]")
                wires.append(wire)
        return route(nodes, len(names), wires)

    def buses(self, index: Mapping[str, int]) -> Iterator[Wire]:
        """Join each device to its machine; half of the inner latency on either side."""
        for machine in self.machines.values():
            for member in machine.members:
                width = machine.bandwidth if machine.bandwidth is not None else np.inf
                yield Wire(member, index[machine.name], width, (machine.latency_s or 0.0) / 2)


def _parse(document: Document) -> Table:
    """Return the tables of a TOML or JSON document."""
    if document.head.lstrip().startswith(b"{"):
        return _table(document.json, "cluster")
    try:
        return tomllib.loads(document.text)
    except tomllib.TOMLDecodeError as error:
        found = _LINE.search(str(error))
        message = f"wrong TOML: {_LINE.sub('', str(error)).strip()}"
        document.fail(message, line=int(found.group(1)) if found else None)
    except (RecursionError, ValueError) as error:  # nested too deeply, or a number with too many digits
        document.fail(f"wrong TOML: {error}")


def _wires(entry: Table, place: str, index: Mapping[str, int], network: Table) -> Iterator[Wire]:
    """Yield the wires of one ``[[link]]``, one for each pair that its ends stand for."""
    _known(entry, ("ends", "bandwidth", "latency", "duplex"), place)
    ends = _list(entry.get("ends"), f"{place}.ends")
    if len(ends) != 2:
        raise InvalidInput(f"expected two ends, got {len(ends)}", field=f"{place}.ends")
    duplex = entry.get("duplex", "full")
    if duplex not in ("full", "half"):
        raise InvalidInput(f"{duplex!r} is neither 'full' nor 'half'", field=f"{place}.duplex")
    default_rate = network.get("bandwidth", DEFAULT_BANDWIDTH)
    bandwidth = _rate(entry.get("bandwidth", default_rate), f"{place}.bandwidth")
    latency_s = _seconds(entry.get("latency", network.get("latency", 0.0)), f"{place}.latency")
    first, second = (_nodes(end, index, f"{place}.ends") for end in ends)
    done: set[tuple[int, int]] = set()
    for a in first:
        for b in second:
            pair = (min(a, b), max(a, b))
            if a != b and pair not in done:
                done.add(pair)
                yield Wire(a, b, bandwidth, latency_s, duplex == "full")


def _nodes(end: Any, index: Mapping[str, int], place: str) -> list[int]:
    """Return the nodes that a name or a pattern means; ``*`` does not reach over a slash."""
    pattern = _text(end, place)
    if pattern in index:
        return [index[pattern]]
    parts = pattern.split("/")
    found = [
        number
        for name, number in index.items()
        if name.count("/") == len(parts) - 1 and all(map(fnmatchcase, name.split("/"), parts))
    ]
    if not found:
        raise InvalidInput(str(UnknownName("device, machine or switch", pattern, index)), field=place)
    return found


def _rule(entry: Any, kind: str) -> KindRule:
    place = f"kinds.{kind}"
    table = _table(entry, place)
    _known(table, ("like", "only", "never", "factor"), place)
    factors = _table(table.get("factor", {}), f"{place}.factor")
    factor = {pattern: _number(value, f"{place}.factor.{pattern}") for pattern, value in factors.items()}
    for pattern, value in factor.items():
        if not value > 0:
            raise InvalidInput(f"{value} must be positive", field=f"{place}.factor.{pattern}")
    return KindRule(
        like=_text(table["like"], f"{place}.like") if "like" in table else None,
        only=tuple(_text(item, f"{place}.only") for item in _list(table.get("only", []), f"{place}.only")),
        never=tuple(_text(item, f"{place}.never") for item in _list(table.get("never", []), f"{place}.never")),
        factor=factor,
    )


def _matrix(value: Any, default: Floats, place: str, *, rate: bool) -> Floats:
    """Read a full matrix by device; what stands on its diagonal does not matter."""
    if value is None:
        return default
    m = len(default)
    rows = _list(value, place)
    if len(rows) != m or any(not isinstance(row, list) or len(row) != m for row in rows):
        raise InvalidInput(f"expected {m} rows of {m} values, by device", field=place)
    convert = _rate if rate else _seconds
    return np.array(
        [
            [default[a, a] if a == b else convert(item, f"{place}[{a}][{b}]") for b, item in enumerate(row)]
            for a, row in enumerate(rows)
        ],
        dtype=np.float64,
    )


def _routes(value: Any, num_devices: int) -> Links:
    """Read shared links with the explicit route of each pair, as the writer leaves them."""
    table = _table(value, "routes")
    _known(table, ("links", "bandwidth", "route"), "routes")
    names = tuple(_text(name, "routes.links") for name in _list(table.get("links"), "routes.links"))
    rates = [_rate(item, "routes.bandwidth") for item in _list(table.get("bandwidth"), "routes.bandwidth")]
    rows = _list(table.get("route"), "routes.route")
    pairs = [_list(pair, "routes.route") for row in rows for pair in _list(row, "routes.route")]
    if len(rates) != len(names) or len(pairs) != num_devices**2 or len(rows) != num_devices:
        raise InvalidInput(
            f"expected a bandwidth for each link and {num_devices} x {num_devices} routes", field="routes"
        )
    for link in (link for pair in pairs for link in pair):
        if isinstance(link, bool) or not isinstance(link, int) or not 0 <= link < len(names):
            raise InvalidInput(f"{link!r} is not the number of a link", field="routes.route")
    ptr = np.cumsum([0] + [len(pair) for pair in pairs]).astype(np.int32)
    flat = np.array([link for pair in pairs for link in pair], dtype=np.int32)
    return Links(names, np.array(rates, dtype=np.float64), ptr, flat)


def _known(table: Table, keys: tuple[str, ...] | list[str], place: str) -> None:
    for key in table:
        if key not in keys:
            raise InvalidInput(str(UnknownName("key", key, keys)), field=f"{place}.{key}" if place else key)


def _table(value: Any, place: str) -> Table:
    if not isinstance(value, dict):
        raise InvalidInput(f"{str(value)[:60]!r} is not a table", field=place)
    return value


def _tables(value: Any, place: str) -> list[Table]:
    return [_table(item, f"{place}[{number}]") for number, item in enumerate(_list(value, place))]


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidInput(f"{str(value)[:60]!r} is not a list", field=place)
    return value


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{str(value)[:60]!r} is not a name", field=place)
    return value


def _count(entry: Table, place: str) -> int:
    count = entry.get("count", 1)
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_DEVICES:
        raise InvalidInput(f"{str(count)[:60]} is not between 1 and {MAX_DEVICES}", field=f"{place}.count")
    return count


def _number(value: Any, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput(f"{str(value)[:60]!r} is not a number", field=place)
    try:
        return float(value)
    except OverflowError:
        raise InvalidInput(f"{str(value)[:60]} is too large", field=place) from None


def _bytes(value: Any, place: str) -> float:
    return _quantity(parse_bytes, value, place, ("GB", "GiB"))


def _rate(value: Any, place: str) -> float:
    return _quantity(parse_rate, value, place, ("GB/s", "Gbit/s"))


def _seconds(value: Any, place: str) -> float:
    return _quantity(parse_seconds, value, place, ("us", "ms", "s"))


def _quantity(parse: Any, value: Any, place: str, units: tuple[str, ...]) -> float:
    try:
        return float(parse(stating_unit(value, field=place, units=units) if isinstance(value, str) else value))
    except OverflowError:
        raise InvalidInput(f"{str(value)[:60]} is too large", field=place) from None
    except InvalidInput as error:
        raise InvalidInput(error.message, field=place) from None

"""Write a cluster as TOML that reads back the same."""

from __future__ import annotations

import numpy as np
import tomli_w

from stretto.core.cluster import Cluster, Device, KindRule, Links
from stretto.errors import InvalidInput
from stretto.files.fields import write_tables

#: A table of TOML: text, numbers, lists and tables.
TomlTable = dict[str, object]


def write_cluster(cluster: Cluster) -> bytes:
    """Return the cluster as a TOML file with a ``[[device]]`` table for each device.

    A network that is the same between all devices is written once; anything else becomes a
    matrix, and shared links are written with the route of each pair.
    """
    body: TomlTable = {"name": cluster.name, **_network(cluster)}
    if cluster.rules:
        body["kinds"] = {kind: _rule(rule) for kind, rule in cluster.rules.items()}
    if cluster.links is not None:
        body["routes"] = _routes(cluster.links, cluster.num_devices)
    # The order of devices is that of matrices and plans: nodes are read after devices, so they must stand last.
    first_node = next((place for place, device in enumerate(cluster.devices) if device.packs), cluster.num_devices)
    devices, nodes = cluster.devices[:first_node], cluster.devices[first_node:]
    if not all(device.packs for device in nodes):
        raise InvalidInput("devices that run one task at a time must stand before the nodes", field=cluster.name)
    tables = write_tables("device", map(_device, devices)) + write_tables("node", map(_node, nodes))
    return f"{tomli_w.dumps(body)}\n{tables}".encode()


def _network(cluster: Cluster) -> TomlTable:
    off = ~np.eye(cluster.num_devices, dtype=bool)
    rates, times = cluster.bandwidth[off], cluster.latency_s[off]
    if len(rates) == 0:
        return {"network": {"bandwidth": float(cluster.bandwidth[0, 0])}}
    if np.all(rates == rates[0]) and np.all(times == times[0]):
        return {"network": {"bandwidth": float(rates[0]), "latency": float(times[0])}}
    return {"matrix": {"bandwidth": cluster.bandwidth.tolist(), "latency": cluster.latency_s.tolist()}}


def _device(device: Device) -> TomlTable:
    body: TomlTable = {
        "name": device.name,
        "kind": device.kind,
        "machine": device.machine,
        "speed": float(device.speed),
    }
    if np.isfinite(device.memory_bytes):
        body["memory"] = float(device.memory_bytes)
    if np.isfinite(device.cores):
        body["cores"] = float(device.cores)
    if device.price_usd_per_hour:
        body["price_usd_per_hour"] = float(device.price_usd_per_hour)
    return body


def _node(device: Device) -> TomlTable:
    body = _device(device)
    del body["machine"]
    named = dict(device.resources)
    if device.gpus:
        body["gpus"] = float(device.gpus)
    if "scratch" in named:
        body["scratch"] = float(named.pop("scratch"))
    if named:
        body["resources"] = {name: float(amount) for name, amount in named.items()}
    return body


def _rule(rule: KindRule) -> TomlTable:
    body: TomlTable = {"like": rule.like} if rule.like is not None else {}
    body |= {key: list(patterns) for key, patterns in (("only", rule.only), ("never", rule.never)) if patterns}
    if rule.factor:
        body["factor"] = {pattern: float(value) for pattern, value in rule.factor.items()}
    return body


def _routes(links: Links, num_devices: int) -> TomlTable:
    pairs = [links.route[a:b].tolist() for a, b in zip(links.route_ptr[:-1], links.route_ptr[1:], strict=True)]
    rows = [pairs[row * num_devices : (row + 1) * num_devices] for row in range(num_devices)]
    return {"links": list(links.names), "bandwidth": links.bandwidth.tolist(), "route": rows}

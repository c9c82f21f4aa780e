"""Write a cluster as TOML that reads back the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import numpy as np

from stretto.core.cluster import Cluster, Device, KindRule, Links
from stretto.core.csr import Floats

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def write_cluster(cluster: Cluster) -> bytes:
    """Return the cluster as a TOML file, one ``[[device]]`` table for each device.

    A network that is the same between all devices is written once; anything else becomes a
    matrix, and shared links are written with the route of each pair.
    """
    lines = [f"name = {_quote(cluster.name)}", ""]
    lines.extend(_network(cluster))
    for device in cluster.devices:
        lines.extend(_device(device))
    for kind, rule in cluster.rules.items():
        lines.extend(_rule(kind, rule))
    if cluster.links is not None:
        lines.extend(_routes(cluster.links, cluster.num_devices))
    return ("\n".join(lines) + "\n").encode()


def _network(cluster: Cluster) -> Iterator[str]:
    off = ~np.eye(cluster.num_devices, dtype=bool)
    rates, times = cluster.bandwidth[off], cluster.latency_s[off]
    if len(rates) == 0:
        yield from ("[network]", f"bandwidth = {_number(cluster.bandwidth[0, 0])}", "")
    elif np.all(rates == rates[0]) and np.all(times == times[0]):
        yield from ("[network]", f"bandwidth = {_number(rates[0])}", f"latency = {_number(times[0])}", "")
    else:
        yield from (
            "[matrix]",
            f"bandwidth = {_matrix(cluster.bandwidth)}",
            f"latency = {_matrix(cluster.latency_s)}",
            "",
        )


def _device(device: Device) -> Iterator[str]:
    yield "[[device]]"
    yield f"name = {_quote(device.name)}"
    yield f"kind = {_quote(device.kind)}"
    yield f"machine = {_quote(device.machine)}"
    yield f"speed = {_number(device.speed)}"
    if np.isfinite(device.memory_bytes):
        yield f"memory = {_number(device.memory_bytes)}"
    if np.isfinite(device.cores):
        yield f"cores = {_number(device.cores)}"
    if device.price_usd_per_hour:
        yield f"price_usd_per_hour = {_number(device.price_usd_per_hour)}"
    yield ""


def _rule(kind: str, rule: KindRule) -> Iterator[str]:
    yield f"[kinds.{_key(kind)}]"
    if rule.like is not None:
        yield f"like = {_quote(rule.like)}"
    for key, patterns in (("only", rule.only), ("never", rule.never)):
        if patterns:
            yield f"{key} = [{', '.join(_quote(pattern) for pattern in patterns)}]"
    if rule.factor:
        pairs = ", ".join(f"{_key(pattern)} = {_number(value)}" for pattern, value in rule.factor.items())
        yield f"factor = {{ {pairs} }}"
    yield ""


def _routes(links: Links, num_devices: int) -> Iterator[str]:
    yield "[routes]"
    yield f"links = [{', '.join(_quote(name) for name in links.names)}]"
    yield f"bandwidth = [{', '.join(_number(value) for value in links.bandwidth)}]"
    yield "route = ["
    pairs = [links.route[a:b].tolist() for a, b in zip(links.route_ptr[:-1], links.route_ptr[1:], strict=True)]
    for row in range(num_devices):
        yield f"  {json.dumps(pairs[row * num_devices : (row + 1) * num_devices])},"
    yield "]"


def _matrix(values: Floats) -> str:
    rows = (f"  [{', '.join(_number(value) for value in row)}]," for row in values)
    return "\n".join(["[", *rows, "]"])


def _number(value: float) -> str:
    """Return a TOML float, which unlike an integer may be of any size."""
    return repr(float(value))


def _quote(text: str) -> str:
    """Return a TOML basic string; JSON's escapes are TOML's, but for the delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else _quote(text)

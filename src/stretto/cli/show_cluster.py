"""A cluster at a glance: groups of equal devices, and the links between machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stretto.cli.terminal.console import Output, new_table, print_json, print_tables
from stretto.core.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from stretto.core.cluster import Cluster

_MOST_ROWS = 20


def show_cluster(cluster: Cluster, output: Output) -> None:
    """Print a cluster in the wanted form."""
    if output is Output.JSON:
        print_json({"what": "cluster", "name": cluster.name} | _cluster_json(cluster))
        return
    if output is Output.QUIET:
        print(cluster.num_devices)
        return
    print_tables(_device_table(cluster), _link_table(cluster))


def _cluster_json(cluster: Cluster) -> dict[str, Any]:
    return {
        "num_devices": cluster.num_devices,
        "devices": [dict(vars(device)) for device in cluster.devices],
        "links": list(cluster.links.names) if cluster.links is not None else None,
        "rules": {kind: dict(vars(rule)) for kind, rule in cluster.rules.items()},
        "latency_s": cluster.latency_s,
        "bandwidth_bytes_per_s": cluster.bandwidth,
    }


def _device_table(cluster: Cluster) -> Any:
    """Return one row per group of equal devices."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for d in cluster.devices:
        key = (d.kind, d.speed, d.memory_bytes, d.cores, d.price_usd_per_hour, d.machine)
        groups.setdefault(key, []).append(d.name)
    table = new_table(f"{cluster.name}: {format_count(cluster.num_devices, 'device')}")
    table.add_column("kind")
    table.add_column("devices", overflow="fold")
    table.add_column("machine", overflow="fold")
    for name in ("speed", "memory", "cores", "$/h"):
        table.add_column(name, justify="right", no_wrap=True)
    for (kind, speed, memory, cores, price, machine), names in list(groups.items())[:_MOST_ROWS]:
        span = names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]} ({len(names)})"
        table.add_row(
            kind,
            span,
            machine,
            f"{speed:g}",
            format_bytes(memory) if memory != float("inf") else "-",
            f"{cores:g}" if cores != float("inf") else "-",
            f"{price:g}" if price else "-",
        )
    if len(groups) > _MOST_ROWS:
        table.caption = f"and {format_count(len(groups) - _MOST_ROWS, 'group')} more"
    return table


def _link_table(cluster: Cluster) -> Any:
    """Return the range of bandwidth and latency between each pair of machines."""
    import numpy as np

    machines = list(dict.fromkeys(device.machine for device in cluster.devices))
    members = {m: np.array([i for i, d in enumerate(cluster.devices) if d.machine == m]) for m in machines}
    table = new_table("Links")
    table.add_column("from")
    table.add_column("to")
    table.add_column("bandwidth", justify="right")
    table.add_column("latency", justify="right")
    pairs = [(a, b) for i, a in enumerate(machines) for b in machines[i:]]
    for a, b in pairs[:_MOST_ROWS]:
        block = np.ix_(members[a], members[b])
        off = members[a][:, None] != members[b][None, :]
        if not off.any():
            continue
        table.add_row(
            a, b, _span(cluster.bandwidth[block][off], _rate), _span(cluster.latency_s[block][off], format_seconds)
        )
    if len(pairs) > _MOST_ROWS:
        table.caption = f"and {format_count(len(pairs) - _MOST_ROWS, 'pair')} more"
    return table


def _rate(value: float) -> str:
    return f"{format_bytes(value)}/s" if value != float("inf") else "free"


def _span(values: Any, write: Any) -> str:
    low, high = write(float(values.min())), write(float(values.max()))
    return low if low == high else f"{low} .. {high}"

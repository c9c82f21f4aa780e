"""A site as TOML text that reads back the same."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby

import tomli_w

from stretto.core.site import Partition, Reservation, Site, SiteNode
from stretto.core.site_policy import QOS_LIMITS, Account, PriorityFactors, Qos, SchedulerTiming
from stretto.files.clusters.host_list import compress_hosts
from stretto.files.clusters.site_builder import ALL
from stretto.files.fields import write_tables


def site_bytes(site: Site) -> bytes:
    """Return the tables of a site; neighbours that are equal but for their names are one table."""
    parts = [tomli_w.dumps({"name": site.name})]
    policy = site.policy
    if policy.priority is not None:
        parts.append(tomli_w.dumps({"priority": _priority(policy.priority)}))
    if policy.scheduler is not None:
        parts.append(tomli_w.dumps({"scheduler": _scheduler(policy.scheduler)}))
    everything = tuple(node.name for node in site.nodes)
    tables: Iterable[tuple[str, Iterable[Mapping[str, object]]]] = (
        ("node", _nodes(site.nodes)),
        ("partition", (_partition(part, everything) for part in site.partitions)),
        ("reservation", (_reservation(item, everything) for item in site.reservations)),
        ("qos", map(_qos, policy.qos)),
        ("account", map(_account, policy.accounts)),
    )
    parts += [write_tables(name, rows) for name, rows in tables]
    return "\n".join(part for part in parts if part).encode()


def _nodes(nodes: Iterable[SiteNode]) -> Iterable[dict[str, object]]:
    for _, equal in groupby(nodes, key=lambda node: _node_values(replace(node, name=""))):
        group = list(equal)
        yield {"name": compress_hosts([node.name for node in group])} | _node_values(group[0])


def _node_values(node: SiteNode) -> dict[str, object]:
    values: dict[str, object] = {"cpus": node.cpus}
    if math.isfinite(node.memory_bytes):
        values["memory"] = _number(node.memory_bytes)
    if node.gpus:
        values["gpus"] = dict(node.gpus)
    if node.features:
        values["features"] = sorted(node.features)
    if node.weight != 1:
        values["weight"] = node.weight
    for key in ("power_w", "idle_power_w"):
        if getattr(node, key) is not None:
            values[key] = _number(getattr(node, key))
    if node.price_usd_per_hour:
        values["price_usd_per_hour"] = _number(node.price_usd_per_hour)
    return values


def _number(value: float) -> float | int:
    """Return whole numbers without a point."""
    return int(value) if value == int(value) and abs(value) < 2**53 else value


def _hosts(names: tuple[str, ...], everything: tuple[str, ...]) -> str:
    return ALL if names == everything else compress_hosts(names)


def _partition(part: Partition, everything: tuple[str, ...]) -> dict[str, object]:
    values: dict[str, object] = {"name": part.name, "nodes": _hosts(part.nodes, everything)}
    for key in ("priority_tier", "priority_job_factor"):
        if getattr(part, key) != 1:
            values[key] = getattr(part, key)
    if math.isfinite(part.max_time_s):
        values["max_time"] = _number(part.max_time_s)
    if part.default_time_s is not None:
        values["default_time"] = _number(part.default_time_s)
    if part.max_nodes is not None:
        values["max_nodes"] = part.max_nodes
    values |= {key: True for key in ("default", "exclusive") if getattr(part, f"is_{key}")}
    return values


def _reservation(item: Reservation, everything: tuple[str, ...]) -> dict[str, object]:
    times: dict[str, object] = {"start": _number(item.start_s), "end": _number(item.end_s)}
    if item.is_dated:
        times = {key: datetime.fromtimestamp(float(str(value)), UTC) for key, value in times.items()}
    return {"name": item.name, **times, "nodes": _hosts(item.nodes, everything)}


def _priority(factors: PriorityFactors) -> dict[str, object]:
    weights = ("age", "fair_share", "job_size", "partition", "qos")
    values: dict[str, object] = {key: _number(getattr(factors, key)) for key in weights}
    values |= {"max_age": _time(factors.max_age_s), "half_life": _time(factors.half_life_s)}
    return values | {"favors_small": factors.favors_small}


def _time(value: float) -> object:
    return _number(value) if math.isfinite(value) else "unlimited"


def _scheduler(timing: SchedulerTiming) -> dict[str, object]:
    values: dict[str, object] = {"backfill": timing.has_backfill, "bf_continue": timing.bf_continue}
    for key in ("bf_interval", "bf_window", "bf_resolution", "sched_interval"):
        values[key] = _number(getattr(timing, f"{key}_s"))
    return values | {key: getattr(timing, key) for key in ("bf_max_job_test", "queue_depth")}


def _qos(qos: Qos) -> dict[str, object]:
    values: dict[str, object] = {"name": qos.name, "priority": qos.priority}
    if math.isfinite(qos.max_time_s):
        values["max_time"] = _number(qos.max_time_s)
    return values | {key: getattr(qos, key) for key in QOS_LIMITS if getattr(qos, key) is not None}


def _account(account: Account) -> dict[str, object]:
    values: dict[str, object] = {"name": account.name, "shares": account.shares}
    return values | {key: getattr(account, key) for key in ("parent", "user") if getattr(account, key) is not None}

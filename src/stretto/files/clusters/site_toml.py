"""Site files: nodes, partitions, reservations and the policy of a queue, in TOML.

``docs/formats.md`` shows the whole schema. Sizes and times are text with a unit, or plain numbers: bytes, seconds. What
is left out has the default of the class that it fills; a key that is not known is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime

from stretto.core.site import MAX_COUNT, Partition, Reservation, Site, SiteNode
from stretto.core.site_policy import QOS_LIMITS, Account, PriorityFactors, Qos, SchedulerTiming, SitePolicy
from stretto.errors import InvalidInput
from stretto.files.clusters.site_builder import ALL, FilePlace, SiteBuilder
from stretto.files.document import Document
from stretto.files.fields import Fields, toml
from stretto.files.sniff import graph_name
from stretto.files.traces.slurm_values import duration_s

_ROOT = ("name", "node", "partition", "reservation", "priority", "scheduler", "qos", "account")
_NODE = (
    "name",
    "cpus",
    "memory",
    "gpus",
    "features",
    "weight",
    "power_w",
    "idle_power_w",
    "price_usd_per_hour",
)
_PARTITION = (
    "name",
    "nodes",
    "priority_tier",
    "priority_job_factor",
    "max_time",
    "default_time",
    "max_nodes",
    "default",
    "exclusive",
)
_WEIGHTS = ("age", "fair_share", "job_size", "partition", "qos")
_PRIORITY_TIMES = {"max_age": "max_age_s", "half_life": "half_life_s"}
_SCHEDULER_TIMES = {name: f"{name}_s" for name in ("bf_interval", "bf_window", "bf_resolution", "sched_interval")}
_SCHEDULER_COUNTS = ("bf_max_job_test", "queue_depth")
_SCHEDULER_FLAGS = {"backfill": "has_backfill", "bf_continue": "bf_continue"}
_UNITS = ("s", "min", "h")
_NEVER = ("unlimited", "infinite", "inf", "never")
_DAYS = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*d")
_HEADER = re.compile(rb"(?m)^\s*\[\[\s*node\s*\]\]")
_TABLE = re.compile(r"\s*\[(\[?)\s*([A-Za-z_]+)\s*\]?\]")
_KEY = re.compile(r"\s*([A-Za-z_]+)\s*=")


class SiteToml:
    """Reads and writes Stretto's own site files."""

    summary = "Stretto's site file: nodes, partitions, reservations and policy in TOML"
    endings = ("toml",)

    def matches(self, document: Document) -> bool:
        """Say whether there is a table of nodes."""
        return _HEADER.search(document.data) is not None

    def read(self, document: Document) -> Site:
        """Read the site; see the module."""
        try:
            return _site(document, toml(document))
        except InvalidInput as error:
            line = error.line if error.line is not None else _line_of(document, error.field)
            raise InvalidInput(error.message, source=document.name, line=line, field=error.field) from None

    def write(self, site: Site) -> bytes:
        """Return the site as TOML that reads back the same."""
        from stretto.files.clusters.site_writer import site_bytes

        return site_bytes(site)


def _site(document: Document, root: Fields) -> Site:
    root.only(*_ROOT)
    builder = SiteBuilder(document)
    for table in root.tables("node"):
        _add_node(builder, table)
    for table in root.tables("partition"):
        _add_partition(builder, table)
    for table in root.tables("reservation"):
        _add_reservation(builder, table)
    policy = SitePolicy(
        priority=_priority(builder, root.fields("priority")) if "priority" in root else None,
        scheduler=_scheduler(builder, root.fields("scheduler")) if "scheduler" in root else None,
        qos=tuple(_qos(builder, table) for table in root.tables("qos")),
        accounts=tuple(_account(builder, table) for table in root.tables("account")),
    )
    return builder.build(root.text("name", graph_name(document)), policy)


def _line_of(document: Document, field: str | None) -> int | None:
    """Return the line of a place such as ``node[2].cpus``; the parser does not keep it."""
    found = re.match(r"([a-z]+)(?:\[([0-9]+)\])?(?:\.([a-z_]+))?", field or "")
    if found is None:
        return None
    wanted, number, key = found[1], int(found[2] or 0), found[3]
    seen, header, inside = -1, None, False
    for line, text in enumerate(document.text.splitlines(), start=1):
        table, entry = _TABLE.match(text), _KEY.match(text)
        if table is not None:
            seen += table[2] == wanted
            inside = table[2] == wanted and seen == number
            header = line if inside else header
        elif entry is not None and (entry[1] == key if inside else header is None and entry[1] == field):
            return line
    return header


def _place(table: Fields, key: str | None = None) -> FilePlace:
    return FilePlace(field=table.at(key) if key is not None else table.place)


def _add_node(builder: SiteBuilder, table: Fields) -> None:
    table.only(*_NODE)
    table.need("cpus")
    hosts = table.as_text(table.need("name"), "name")
    cpus = table.count("cpus", 1, 1, MAX_COUNT)
    memory = table.size_bytes("memory") if "memory" in table else float("inf")
    gpus, features = _gpus(table), frozenset(table.texts("features"))
    weight = table.count("weight", 1, 0, MAX_COUNT)
    power = {key: table.number(key) if key in table else None for key in ("power_w", "idle_power_w")}
    price = table.number("price_usd_per_hour") if "price_usd_per_hour" in table else 0.0

    def make(name: str) -> SiteNode:
        return SiteNode(
            name, cpus, memory, dict(gpus), features, weight, power["power_w"], power["idle_power_w"], price
        )

    with builder.at(_place(table)):
        make(hosts)
    builder.add_nodes(hosts, make, _place(table, "name"))


def _gpus(table: Fields) -> Mapping[str, int]:
    """Return GPUs by type, from a number or from ``{ a100 = 4 }``."""
    value = table.values.get("gpus", 0)
    if not isinstance(value, dict):
        count = table.count("gpus", 0, 0, MAX_COUNT)
        return {"gpu": count} if count else {}
    types = table.fields("gpus")
    return {kind: types.count(kind, 0, 0, MAX_COUNT) for kind in types}


def _add_partition(builder: SiteBuilder, table: Fields) -> None:
    table.only(*_PARTITION)
    name = table.as_text(table.need("name"), "name")
    numbers = {key: table.count(key, 1, 0, MAX_COUNT) for key in ("priority_tier", "priority_job_factor")}
    max_time = _seconds(table, "max_time") if "max_time" in table else float("inf")
    default_time = _seconds(table, "default_time") if "default_time" in table else None
    max_nodes = table.count("max_nodes", 1, 1, MAX_COUNT) if "max_nodes" in table else None
    is_default, is_exclusive = _flag(table, "default"), _flag(table, "exclusive")

    def make(nodes: tuple[str, ...]) -> Partition:
        return Partition(
            name,
            nodes,
            **numbers,
            max_time_s=max_time,
            default_time_s=default_time,
            max_nodes=max_nodes,
            is_default=is_default,
            is_exclusive=is_exclusive,
        )

    with builder.at(_place(table)):
        make(("any",))
    builder.add_partition(name, _hosts(table), make, _place(table, "nodes"))


def _hosts(table: Fields) -> str:
    """Return nodes as one host list, from text or from a list of texts."""
    value = table.values.get("nodes", ALL)
    return ",".join(table.texts("nodes")) if isinstance(value, list) else table.as_text(value, "nodes")


def _add_reservation(builder: SiteBuilder, table: Fields) -> None:
    table.only("name", "start", "end", "nodes")
    name = table.as_text(table.need("name"), "name")
    (start, dated), (end, end_dated) = _moment(table, "start"), _moment(table, "end")
    if dated != end_dated:
        table.fail("start and end are both dates, or both seconds from the first submission", "end")

    def make(nodes: tuple[str, ...]) -> Reservation:
        return Reservation(name, start, end, nodes, is_dated=dated)

    with builder.at(_place(table)):
        make(("any",))
    builder.add_reservation(name, _hosts(table), make, _place(table, "nodes"))


def _moment(table: Fields, key: str) -> tuple[float, bool]:
    """Return a time, and whether it is a date (Unix time) rather than seconds from the first submission."""
    value = table.need(key)
    if isinstance(value, str) and re.match(r"\s*[0-9]{4}-", value):
        text = value.strip()
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            table.fail(f"{text[:60]!r} is not a date such as 2026-01-10T08:00:00", key)
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if isinstance(value, datetime):
        return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp(), True
    return _seconds(table, key), False


def _seconds(table: Fields, key: str) -> float:
    """Return a time: seconds, text with a unit (``90s``, ``4h``, ``7d``), as Slurm writes it (``1-12:00:00``)."""
    value = table.need(key)
    text = value.strip().lower() if isinstance(value, str) else ""
    if text in _NEVER:
        return float("inf")
    days = _DAYS.fullmatch(text)
    if days is not None:
        return 86400.0 * float(days[1])
    if ":" in text or "-" in text:
        try:
            return duration_s(text)
        except ValueError as error:
            table.fail(str(error), key)
    return table.as_seconds(value, key, _UNITS)


def _flag(table: Fields, key: str, default: bool = False) -> bool:
    value = table.values.get(key, default)
    if not isinstance(value, bool):
        table.fail(f"{str(value)[:60]!r} is neither true nor false", key)
    return value


def _priority(builder: SiteBuilder, table: Fields) -> PriorityFactors:
    table.only(*_WEIGHTS, *_PRIORITY_TIMES, "favors_small")
    values = {key: table.number(key) for key in _WEIGHTS if key in table}
    values |= {field: _seconds(table, key) for key, field in _PRIORITY_TIMES.items() if key in table}
    with builder.at(_place(table)):
        return PriorityFactors(**values, favors_small=_flag(table, "favors_small"))


def _scheduler(builder: SiteBuilder, table: Fields) -> SchedulerTiming:
    table.only(*_SCHEDULER_TIMES, *_SCHEDULER_COUNTS, *_SCHEDULER_FLAGS)
    times = {field: _seconds(table, key) for key, field in _SCHEDULER_TIMES.items() if key in table}
    counts = {key: table.count(key, 1, 1, MAX_COUNT) for key in _SCHEDULER_COUNTS if key in table}
    with builder.at(_place(table)):
        return SchedulerTiming(
            **times,  # type: ignore[arg-type]  # all of them times
            **counts,
            has_backfill=_flag(table, "backfill", default=True),
            bf_continue=_flag(table, "bf_continue"),
        )


def _qos(builder: SiteBuilder, table: Fields) -> Qos:
    table.only("name", "priority", "max_time", *QOS_LIMITS)
    limits = {key: table.count(key, 1, 0, MAX_COUNT) for key in QOS_LIMITS if key in table}
    with builder.at(_place(table)):
        return Qos(
            table.as_text(table.need("name"), "name"),
            table.count("priority", 0, 0, MAX_COUNT),
            _seconds(table, "max_time") if "max_time" in table else float("inf"),
            **limits,
        )


def _account(builder: SiteBuilder, table: Fields) -> Account:
    table.only("name", "parent", "shares", "user")
    with builder.at(_place(table)):
        return Account(
            table.as_text(table.need("name"), "name"),
            table.text("parent", "") if "parent" in table else None,
            table.count("shares", 1, 0, MAX_COUNT),
            table.text("user", "") if "user" in table else None,
        )


FORMAT = SiteToml()

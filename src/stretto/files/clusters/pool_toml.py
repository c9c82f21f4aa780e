"""Pool files: nodes of one kind and one price, in TOML (or the same in JSON); and a shorthand.

::

    [[pool]]
    name = "onprem"
    num_nodes = 128
    procs_per_node = 16
    memory_per_node = "64GB"

    [[pool]]
    name = "cloud"
    num_nodes = 64
    min_nodes = 0                 # elastic: nodes come up when they are needed
    gpus_per_node = 1
    speed = 1.2
    price_usd_per_hour = 0.40
    billing = "60s"               # each begun minute is paid
    minimum = "10min"             # at least this is paid for a rental, in plans
    provision = "90s"
    idle_shutdown = "5min"
    [pool.spot]                   # the market may take nodes back
    time_s = [0, 3600]
    price_usd_per_hour = [0.12, 0.15]
    hazard_per_hour = 0.01        # one for all steps, or one for each
    bid_usd_per_hour = 0.14
    checkpoint = "10min"

Promised starts (backfill ``promise``) count on pools of fixed size. With ``promised = true`` they also count on renting
the nodes of an elastic pool, up to ``num_nodes``; spot pools never count.

Sizes and times are text with a unit, or plain numbers: bytes, seconds. What is left out has the default of ``Pool``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal, TypeAlias, TypedDict

import numpy as np

from stretto.core.csr import Floats
from stretto.core.pool import MAX_NODES, Pool, Spot
from stretto.core.units import parse_seconds, stating_unit
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.fields import Fields, toml_or_json, write_tables

_Count: TypeAlias = Literal["min_nodes", "procs_per_node", "gpus_per_node"]
_Number: TypeAlias = Literal["speed", "price_usd_per_hour"]
_Time: TypeAlias = Literal["billing_s", "provision_s", "idle_shutdown_s", "minimum_s"]
_COUNTS: tuple[_Count, ...] = ("min_nodes", "procs_per_node", "gpus_per_node")
_NUMBERS: tuple[_Number, ...] = ("speed", "price_usd_per_hour")
#: Keys with units, and the fields of ``Pool`` and ``Spot`` that they fill.
_SIZES = {"memory_per_node": "memory_bytes_per_node"}
_TIMES: dict[str, _Time] = {
    "billing": "billing_s",
    "provision": "provision_s",
    "idle_shutdown": "idle_shutdown_s",
    "minimum": "minimum_s",
}
_POOL = ("name", "num_nodes", *_COUNTS, *_NUMBERS, *_SIZES, *_TIMES, "promised", "spot")
_SPOT = ("time_s", "price_usd_per_hour", "hazard_per_hour", "bid_usd_per_hour", "checkpoint")
_TIME_UNITS = ("s", "min", "h")
_NUMBER = r"[0-9]+(?:\.[0-9]+)?|\.[0-9]+"
_SHORTHAND = re.compile(
    r"(?P<name>[^:,\s]+):(?:(?P<least>[0-9]+)-)?(?P<most>[0-9]+)"
    rf"(?:\*(?P<procs>[0-9]+))?(?:g(?P<gpus>[0-9]+))?(?:x(?P<speed>{_NUMBER}))?"
    rf"(?:[$@](?P<price>{_NUMBER}))?(?:~(?P<provision>(?:{_NUMBER})[a-z]*))?"
)


class _PoolFields(TypedDict, total=False):
    """The fields of ``Pool`` beside its name and its number of nodes."""

    min_nodes: int
    procs_per_node: int
    gpus_per_node: int
    speed: float
    price_usd_per_hour: float
    memory_bytes_per_node: float
    billing_s: float
    provision_s: float
    idle_shutdown_s: float
    minimum_s: float
    promised: bool
    spot: Spot


def read_pools(document: Document) -> tuple[Pool, ...]:
    """Read the pools of a TOML or JSON document."""
    try:
        root = toml_or_json(document)
        root.only("pool")
        return _distinct([_pool(entry) for entry in root.tables("pool")])
    except InvalidInput as error:
        raise error.at(document.name) from None


def parse_pools(text: str) -> tuple[Pool, ...]:
    """Return the pools of a shorthand such as ``onprem:128,cloud:0-64x1.2$0.40``.

    ::

        pools = pool {"," pool}
        pool  = name ":" [least "-"] most ["*" procs] ["g" gpus] ["x" speed] ["$" price] ["~" provision]

    ``most`` nodes of ``procs`` processors and ``gpus`` GPUs each, ``speed`` times as fast, for ``price`` USD per
    node and hour. With ``least`` the pool is elastic: it keeps that many nodes, and others come up after
    ``provision`` (with its unit: ``90s``, ``2min``). The parts come in this order. ``@`` may stand
    for ``$``, which shells take for themselves.
    """
    pools = []
    for part in text.split(","):
        found = _SHORTHAND.fullmatch(part.strip())
        if found is None:
            raise InvalidInput(
                f"{part.strip()[:60]!r} is not a pool; write onprem:128 or cloud:0-64*8g1x1.2@0.40~90s",
                field="pools",
            )
        pools.append(_of_shorthand(found))
    return _distinct(pools)


def write_pools(pools: Sequence[Pool]) -> bytes:
    """Return the pools as a TOML file that reads back the same."""
    return write_tables("pool", map(_pool_table, pools)).encode()


def _pool(table: Fields) -> Pool:
    table.only(*_POOL)
    for key in ("name", "num_nodes"):
        table.need(key)
    name = table.text("name", "")
    if not name.isprintable():
        table.fail(f"{name[:60]!r} is not a name", "name")
    values: _PoolFields = {}
    for count in _COUNTS:
        if count in table:
            values[count] = table.count(count, 0, 0, MAX_NODES)
    for number in _NUMBERS:
        if number in table:
            values[number] = _number(table, number)
    if "memory_per_node" in table:
        values["memory_bytes_per_node"] = table.size_bytes("memory_per_node")
    for key, field in _TIMES.items():
        if key in table:
            values[field] = table.seconds(key, 0.0, _TIME_UNITS)
    if "promised" in table:
        said = table.need("promised")
        if not isinstance(said, bool):
            table.fail(f"{str(said)[:60]!r} is not true or false", "promised")
        values["promised"] = said
    if "spot" in table:
        values["spot"] = _spot(table.fields("spot"))
    return Pool(name, table.count("num_nodes", 0, 0, MAX_NODES), **values)


def _spot(table: Fields) -> Spot:
    table.only(*_SPOT)
    prices = _series(table, "price_usd_per_hour")
    times = _series(table, "time_s") if "time_s" in table else np.zeros(1)
    hazards = _series(table, "hazard_per_hour") if "hazard_per_hour" in table else np.zeros(1)
    if len(hazards) == 1:
        hazards = np.full(len(times), hazards[0])
    more: dict[str, float] = {}
    if "bid_usd_per_hour" in table:
        more["bid_usd_per_hour"] = _number(table, "bid_usd_per_hour")
    if "checkpoint" in table:
        more["checkpoint_s"] = table.seconds("checkpoint", 0.0, _TIME_UNITS)
    try:
        return Spot(times, prices, hazards, **more)
    except InvalidInput as error:
        table.fail(error.message)


def _series(table: Fields, key: str) -> Floats:
    """Return a list of numbers; one number stands for a list of one."""
    value = table.need(key)
    items = value if isinstance(value, list) else [value]
    return np.array([table.document.number(item, table.at(key)) for item in items], dtype=np.float64)


def _number(table: Fields, key: str) -> float:
    return table.document.number(table.need(key), table.at(key))


def _of_shorthand(found: re.Match[str]) -> Pool:
    name = found["name"]
    counts = {key: int(found[key][:20]) for key in ("least", "most", "procs", "gpus") if found[key] is not None}
    for value in counts.values():
        if value > MAX_NODES:
            raise InvalidInput(f"{value} is more than {MAX_NODES:,}", field=f"pool {name}")
    return Pool(
        name,
        counts["most"],
        procs_per_node=counts.get("procs", 1),
        gpus_per_node=counts.get("gpus", 0),
        speed=float(found["speed"] or 1.0),
        price_usd_per_hour=float(found["price"] or 0.0),
        provision_s=parse_seconds(
            stating_unit(found["provision"] or "0", field=f"pool {name}", place="~", units=("s", "min"))
        ),
        min_nodes=counts.get("least"),
    )


def _distinct(pools: list[Pool]) -> tuple[Pool, ...]:
    if not pools:
        raise InvalidInput("there is no pool", field="pool")
    seen: set[str] = set()
    for pool in pools:
        if pool.name in seen:
            raise InvalidInput(f"two pools are called {pool.name!r}", field="pool")
        seen.add(pool.name)
    return tuple(pools)


def _pool_table(pool: Pool) -> dict[str, object]:
    """Return the table of a pool; what has its default, and no limit at all, is left out."""
    plain = Pool(pool.name, pool.num_nodes)
    table: dict[str, object] = {"name": pool.name, "num_nodes": pool.num_nodes}
    table |= {key: getattr(pool, key) for key in _COUNTS if getattr(pool, key) != getattr(plain, key)}
    numbers = {key: key for key in _NUMBERS} | _SIZES | _TIMES
    table |= {
        key: float(getattr(pool, own)) for key, own in numbers.items() if getattr(pool, own) != getattr(plain, own)
    }
    if pool.promised:
        table["promised"] = True
    if pool.spot is not None:
        table["spot"] = _spot_table(pool.spot)
    return table


def _spot_table(spot: Spot) -> dict[str, object]:
    table: dict[str, object] = {
        field: [float(value) for value in getattr(spot, field)]
        for field in ("time_s", "price_usd_per_hour", "hazard_per_hour")
    }
    if math.isfinite(spot.bid_usd_per_hour):
        table["bid_usd_per_hour"] = float(spot.bid_usd_per_hour)
    if math.isfinite(spot.checkpoint_s):
        table["checkpoint"] = float(spot.checkpoint_s)
    return table

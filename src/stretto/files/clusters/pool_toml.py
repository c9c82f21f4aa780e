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
    provision = "90s"
    idle_shutdown = "5min"
    [pool.spot]                   # the market may take nodes back
    time_s = [0, 3600]
    price_usd_per_hour = [0.12, 0.15]
    hazard_per_hour = 0.01        # one for all steps, or one for each
    bid_usd_per_hour = 0.14
    checkpoint = "10min"

Sizes and times are text with a unit, or plain numbers: bytes, seconds. What is left out has the default of ``Pool``.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from stretto.core.csr import Floats
from stretto.core.pool import MAX_NODES, Pool, Spot
from stretto.core.units import parse_bytes, parse_seconds, stating_unit
from stretto.errors import InvalidInput, UnknownName
from stretto.files.document import Document
from stretto.files.json_fields import as_array, as_object

_COUNTS = ("num_nodes", "min_nodes", "procs_per_node", "gpus_per_node")
_NUMBERS = ("speed", "price_usd_per_hour")
#: Keys with units, and the fields of ``Pool`` and ``Spot`` that they fill.
_SIZES = {"memory_per_node": "memory_bytes_per_node"}
_TIMES = {"billing": "billing_s", "provision": "provision_s", "idle_shutdown": "idle_shutdown_s"}
_POOL = ("name", *_COUNTS, *_NUMBERS, *_SIZES, *_TIMES, "spot")
_SPOT = ("time_s", "price_usd_per_hour", "hazard_per_hour", "bid_usd_per_hour", "checkpoint")
_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_NUMBER = r"[0-9]+(?:\.[0-9]+)?|\.[0-9]+"
_SHORTHAND = re.compile(
    r"(?P<name>[^:,\s]+):(?:(?P<least>[0-9]+)-)?(?P<most>[0-9]+)"
    rf"(?:\*(?P<procs>[0-9]+))?(?:g(?P<gpus>[0-9]+))?(?:x(?P<speed>{_NUMBER}))?"
    rf"(?:[$@](?P<price>{_NUMBER}))?(?:~(?P<provision>(?:{_NUMBER})[a-z]*))?"
)


def read_pools(document: Document) -> tuple[Pool, ...]:
    """Read the pools of a TOML or JSON document."""
    try:
        root = _parse(document)
        _known(document, root, ("pool",), "")
        entries = as_array(document, root.get("pool", []), "pool")
        return _distinct([_pool(document, entry, f"pool[{place}]") for place, entry in enumerate(entries)])
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
    return ("\n".join(line for pool in pools for line in _lines(pool)) + "\n").encode()


def _parse(document: Document) -> dict[str, Any]:
    if document.head.lstrip().startswith(b"{"):
        return as_object(document, document.json, "pools")
    try:
        return tomllib.loads(document.text)
    except tomllib.TOMLDecodeError as error:
        found = _LINE.search(str(error))
        message = f"wrong TOML: {_LINE.sub('', str(error)).strip()}"
        document.fail(message, line=int(found.group(1)) if found else None)
    except (RecursionError, ValueError) as error:  # nested too deeply, or a number with too many digits
        document.fail(f"wrong TOML: {error}")


def _pool(document: Document, entry: Any, place: str) -> Pool:
    table = as_object(document, entry, place)
    _known(document, table, _POOL, place)
    for key in ("name", "num_nodes"):
        if key not in table:
            document.fail(f"{key!r} is missing", field=place)
    name = table["name"]
    if not isinstance(name, str) or not name or not name.isprintable():
        document.fail(f"{str(name)[:60]!r} is not a name", field=f"{place}.name")
    values: dict[str, Any] = {}
    for key in _COUNTS:
        if key in table:
            values[key] = _count(document, table[key], f"{place}.{key}")
    for key in _NUMBERS:
        if key in table:
            values[key] = document.number(table[key], f"{place}.{key}")
    values |= _quantities(document, table, _SIZES, parse_bytes, place)
    values |= _quantities(document, table, _TIMES, parse_seconds, place)
    if "spot" in table:
        values["spot"] = _spot(document, table["spot"], f"{place}.spot")
    return Pool(name, **values)


def _spot(document: Document, entry: Any, place: str) -> Spot:
    table = as_object(document, entry, place)
    _known(document, table, _SPOT, place)
    prices = _series(document, table, "price_usd_per_hour", place)
    times = _series(document, table, "time_s", place) if "time_s" in table else np.zeros(1)
    hazard = table.get("hazard_per_hour", 0.0)
    if isinstance(hazard, list):
        hazards = _series(document, table, "hazard_per_hour", place)
    else:
        hazards = np.full(len(times), document.number(hazard, f"{place}.hazard_per_hour"))
    more: dict[str, float] = {}
    if "bid_usd_per_hour" in table:
        more["bid_usd_per_hour"] = document.number(table["bid_usd_per_hour"], f"{place}.bid_usd_per_hour")
    more |= _quantities(document, table, {"checkpoint": "checkpoint_s"}, parse_seconds, place)
    try:
        return Spot(times, prices, hazards, **more)
    except InvalidInput as error:
        document.fail(error.message, field=place)


def _series(document: Document, table: dict[str, Any], key: str, place: str) -> Floats:
    if key not in table:
        document.fail(f"{key!r} is missing", field=place)
    value = table[key]
    items = value if isinstance(value, list) else [value]
    return np.array([document.number(item, f"{place}.{key}") for item in items], dtype=np.float64)


def _quantities(
    document: Document, table: dict[str, Any], keys: dict[str, str], parse: Callable[[Any], float], place: str
) -> dict[str, float]:
    values: dict[str, float] = {}
    for key, field in keys.items():
        if key in table:
            try:
                value = table[key]
                units = ("GB", "GiB") if parse is parse_bytes else ("s", "min", "h")
                values[field] = parse(stating_unit(value, field=key, units=units) if isinstance(value, str) else value)
            except (InvalidInput, OverflowError) as error:
                document.fail(getattr(error, "message", "too large"), field=f"{place}.{key}")
    return values


def _count(document: Document, value: Any, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_NODES:
        document.fail(f"{str(value)[:60]} is not a count from 0 to {MAX_NODES:,}", field=place)
    return value


def _known(document: Document, table: dict[str, Any], keys: Sequence[str], place: str) -> None:
    for key in table:
        if key not in keys:
            document.fail(str(UnknownName("key", key, keys)), field=f"{place}.{key}" if place else key)


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


def _lines(pool: Pool) -> Iterator[str]:
    """Yield the table of a pool; what has its default, and no limit at all, is left out."""
    plain = Pool(pool.name, pool.num_nodes)
    yield "[[pool]]"
    yield f"name = {json.dumps(pool.name, ensure_ascii=False)}"
    for field in _COUNTS:
        value = getattr(pool, field)
        if field == "num_nodes" or value != getattr(plain, field):
            yield f"{field} = {value}"
    for key, field in ({key: key for key in _NUMBERS} | _SIZES | _TIMES).items():
        if getattr(pool, field) != getattr(plain, field):
            yield f"{key} = {float(getattr(pool, field))!r}"
    if pool.spot is not None:
        yield from _spot_lines(pool.spot)
    yield ""


def _spot_lines(spot: Spot) -> Iterator[str]:
    yield "[pool.spot]"
    for field in ("time_s", "price_usd_per_hour", "hazard_per_hour"):
        yield f"{field} = {[float(value) for value in getattr(spot, field)]!r}"
    if math.isfinite(spot.bid_usd_per_hour):
        yield f"bid_usd_per_hour = {float(spot.bid_usd_per_hour)!r}"
    if math.isfinite(spot.checkpoint_s):
        yield f"checkpoint = {float(spot.checkpoint_s)!r}"

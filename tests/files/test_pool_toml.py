"""Pool files and the shorthand: what they mean, that they read back, and what faults are told."""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.pool import Pool, Spot
from stretto.errors import InvalidInput, StrettoError
from stretto.files.clusters.pool_toml import parse_pools, read_pools, write_pools
from stretto.files.document import Document

EXAMPLE = """
[[pool]]
name = "onprem"
num_nodes = 128
procs_per_node = 16
memory_per_node = "64GB"

[[pool]]
name = "cloud"
num_nodes = 64
min_nodes = 0
gpus_per_node = 1
speed = 1.2
price_usd_per_hour = 0.40
billing = "60s"
minimum = "10min"
provision = "90s"
idle_shutdown = "5min"
[pool.spot]
time_s = [0, 3600]
price_usd_per_hour = [0.12, 0.15]
hazard_per_hour = 0.01
bid_usd_per_hour = 0.14
checkpoint = "10min"
"""


def read(text: str) -> tuple[Pool, ...]:
    return read_pools(Document("pools.toml", text.encode()))


def same(a: Pool, b: Pool) -> bool:
    return all(
        _same_spot(a.spot, b.spot) if field.name == "spot" else getattr(a, field.name) == getattr(b, field.name)
        for field in fields(Pool)
    )


def _same_spot(a: Spot | None, b: Spot | None) -> bool:
    if a is None or b is None:
        return a is b
    return all(np.array_equal(getattr(a, field.name), getattr(b, field.name)) for field in fields(Spot))


def test_example_of_the_docstring() -> None:
    onprem, cloud = read(EXAMPLE)
    assert (onprem.num_procs, onprem.memory_bytes_per_node, onprem.is_elastic) == (2048, 64e9, False)
    assert onprem.price_usd_per_hour == 0
    assert onprem.spot is None
    assert (cloud.min_nodes, cloud.gpus_per_node, cloud.speed, cloud.is_elastic) == (0, 1, 1.2, True)
    assert (cloud.billing_s, cloud.provision_s, cloud.idle_shutdown_s) == (60, 90, 300)
    assert (cloud.minimum_s, onprem.minimum_s) == (600, None)
    assert cloud.spot is not None
    assert cloud.spot.hazard_per_hour.tolist() == [0.01, 0.01]
    assert (cloud.spot.bid_usd_per_hour, cloud.spot.checkpoint_s) == (0.14, 600)


def test_json_says_the_same() -> None:
    root = {"pool": [{"name": "a", "num_nodes": 3, "provision": "2min"}]}
    (pool,) = read(json.dumps(root))
    assert same(pool, Pool("a", 3, provision_s=120.0))


positive = st.floats(1e-6, 1e9, allow_nan=False)
spots = st.lists(st.tuples(positive, positive, st.just(0.0) | st.floats(1e-6, 5)), min_size=1, max_size=5).flatmap(
    lambda rows: st.builds(
        lambda bid, checkpoint: Spot(
            np.cumsum([0.0] + [1.0 + row[0] for row in rows[1:]]),
            np.array([row[1] for row in rows]),
            np.array([row[2] for row in rows]),
            bid,
            checkpoint,
        ),
        positive | st.just(math.inf),
        positive | st.just(math.inf),
    )
)
pools = st.builds(
    lambda num, least, **more: Pool(num_nodes=num, min_nodes=None if least is None else min(least, num), **more),
    num=st.integers(1, 10**6),
    least=st.none() | st.integers(0, 10**7),
    name=st.text(min_size=1, max_size=12).filter(str.isprintable),
    procs_per_node=st.integers(1, 512),
    gpus_per_node=st.integers(0, 16),
    memory_bytes_per_node=positive | st.just(math.inf),
    speed=positive,
    price_usd_per_hour=st.just(0.0) | positive,
    billing_s=positive,
    minimum_s=st.none() | positive,
    provision_s=st.just(0.0) | positive,
    idle_shutdown_s=positive | st.just(math.inf),
    spot=st.none() | spots,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(pools, min_size=1, max_size=4, unique_by=lambda pool: pool.name))
def test_written_pools_read_back(written: list[Pool]) -> None:
    found = read_pools(Document("pools.toml", write_pools(written)))
    assert len(found) == len(written)
    assert all(map(same, found, written))


@pytest.mark.parametrize(
    ("text", "pool"),
    [
        ("onprem:128", Pool("onprem", 128)),
        ("cloud:0-64x1.2$0.40", Pool("cloud", 64, min_nodes=0, speed=1.2, price_usd_per_hour=0.4)),
        ("cloud:0-64x1.2@0.40", Pool("cloud", 64, min_nodes=0, speed=1.2, price_usd_per_hour=0.4)),
        ("g:2*8g4~2min", Pool("g", 2, procs_per_node=8, gpus_per_node=4, provision_s=120.0)),
        ("a-b.c:3-3*2x.5~1.5s", Pool("a-b.c", 3, min_nodes=3, procs_per_node=2, speed=0.5, provision_s=1.5)),
    ],
)
def test_shorthand(text: str, pool: Pool) -> None:
    (found,) = parse_pools(text)
    assert same(found, pool)


def test_shorthand_of_several() -> None:
    found = parse_pools("onprem:128, cloud:0-64x1.2$0.40")
    assert [(pool.name, pool.num_nodes) for pool in found] == [("onprem", 128), ("cloud", 64)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "'' is not a pool"),
        ("onprem", "'onprem' is not a pool"),
        ("a:1,,b:2", "'' is not a pool"),
        ("a:1$", "'a:1\\$' is not a pool"),
        ("a:-3", "'a:-3' is not a pool"),
        ("a:1$1x2", "is not a pool"),
        ("a:0", "pool a: a pool needs at least one node"),
        ("a:9-3", "pool a: min_nodes 9 is not in 0..3"),
        ("a:3x0", "pool a: speed 0.0 must be positive"),
        ("a:99999999999999999999999999", "is more than 10,000,000"),
        ("a:3~5parsec", "'5parsec' is not a time"),
        ("a:1,a:2", "two pools are called 'a'"),
    ],
)
def test_wrong_shorthand(text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        parse_pools(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", r"pools\.toml \[pool\]: there is no pool"),
        ("[[pool]]\nname = 'a'", r"pools\.toml \[pool\[0\]\]: 'num_nodes' is missing"),
        ("[[pool]]\nnum_nodes = 1", "'name' is missing"),
        ("[[pool]]\nname = ''\nnum_nodes = 1", r"\[pool\[0\]\.name\]: '' is not a name"),
        (
            "[[pool]]\nname = 'a'\nnum_node = 1",
            r"pool\[0\]\.num_node\]: unknown key 'num_node'; did you mean num_nodes",
        ),
        ("[[pools]]\nname = 'a'", r"\[pools\]: unknown key 'pools'; did you mean pool"),
        ("[[pool]]\nname = 'a'\nnum_nodes = 1.5", r"num_nodes\]: 1\.5 is not a whole number"),
        ("[[pool]]\nname = 'a'\nnum_nodes = true", r"num_nodes\]: True is not a whole number"),
        ("[[pool]]\nname = 'a'\nnum_nodes = 0", r"pools\.toml \[pool a\]: a pool needs at least one node"),
        ("[[pool]]\nname = 'a'\nnum_nodes = 1\nspeed = -1", r"speed\]: -1 must be finite"),
        ("[[pool]]\nname = 'a'\nnum_nodes = 1\nprovision = '3 weeks'", r"provision\]: '3 weeks' is not a time"),
        ("[[pool]]\nname = 'a'\nnum_nodes = 1\nspot = 3", r"spot\]: '3' is not a table"),
        ("[[pool]]\nname = 'a'\nnum_nodes = 1\nspot = {}", r"spot\]: 'price_usd_per_hour' is missing"),
        (
            "[[pool]]\nname = 'a'\nnum_nodes = 1\nspot = {price_usd_per_hour = 1, hazards = 1}",
            "did you mean hazard_per_hour",
        ),
        (
            "[[pool]]\nname = 'a'\nnum_nodes = 1\nspot = {time_s = [0, 0], price_usd_per_hour = [1, 2]}",
            r"pool\[0\]\.spot\]: times must start at zero and ascend",
        ),
        ("[[pool]]\nname = 'a'\nnum_nodes = 1\n[[pool]]\nname = 'a'\nnum_nodes = 2", "two pools are called 'a'"),
        ("[[pool]]\nname = = 'a'\nnum_nodes = 1", r"pools\.toml:2: wrong TOML"),
        ("pool = 3", r"\[pool\]: '3' is not a list"),
    ],
)
def test_wrong_files(text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        read(text)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40) | st.from_regex(r"[a-c]:[0-9]{1,3}[-*gx$@~0-9.]{0,8}", fullmatch=True))
def test_any_shorthand_is_pools_or_a_told_fault(text: str) -> None:
    try:
        found = parse_pools(text)
    except StrettoError:
        return
    assert found
    assert all(pool.num_nodes >= 1 for pool in found)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_files_raise_only_our_errors(data: st.DataObject) -> None:
    content = bytearray(EXAMPLE.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(StrettoError):
        read_pools(Document("pools.toml", bytes(content)))

"""Finding offers, attaching accelerators, and making pools of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from research.readers.accelerators import with_accelerator

from stretto.core.pool import Spot
from stretto.errors import InvalidInput, UnknownName
from stretto.files.prices.catalogue import read_catalogue
from stretto.files.prices.offer import GIB, Offer, find_offers, pool_of


def offer(name: str, **more: object) -> Offer:
    values: dict[str, object] = {
        "provider": "aws",
        "instance_type": name,
        "num_vcpus": 4.0,
        "memory_bytes": 16 * GIB,
        "accelerator": None,
        "num_accelerators": 0.0,
        "region": "us-east-1",
        "zone": "",
        "price_usd_per_hour": 1.0,
        "spot_price_usd_per_hour": None,
    }
    return Offer(**(values | more))  # type: ignore[arg-type]


OFFERS = [
    offer("dear", price_usd_per_hour=3.0),
    offer("cheap", price_usd_per_hour=0.5, spot_price_usd_per_hour=0.4, num_vcpus=2.0),
    offer("gpu", accelerator="A10G", num_accelerators=1.0, price_usd_per_hour=2.0, spot_price_usd_per_hour=0.3),
    offer("far", region="eu-west-1", zone="euw1-az2", price_usd_per_hour=0.6),
    offer("auction", price_usd_per_hour=None, spot_price_usd_per_hour=0.2),
    offer("", num_vcpus=0.0, accelerator="T4", num_accelerators=1.0, price_usd_per_hour=0.35),
]


def names(**wanted: object) -> list[str]:
    return [found.instance_type for found in find_offers(OFFERS, **wanted)]  # type: ignore[arg-type]


def test_the_cheapest_come_first() -> None:
    assert names() == ["cheap", "far", "gpu", "dear"]
    assert names(spot=True) == ["auction", "gpu", "cheap"]
    assert names(min_procs=3) == ["far", "gpu", "dear"]
    assert names(max_price_usd_per_hour=0.6) == ["cheap", "far"]
    assert names(min_memory_bytes=17 * GIB) == []


def test_names_and_places() -> None:
    assert names(gpu="a10g") == ["gpu"]
    assert names(gpu="A10G", min_gpus=2) == []
    assert names(region="eu-*") == names(region="euw1-az2") == ["far"]
    assert names(provider="AWS", region="us-east-1") == ["cheap", "gpu", "dear"]


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"gpu": "A10"}, "unknown accelerator 'A10'; did you mean A10G"),
        ({"region": "us-east-2"}, "unknown region 'us-east-2'; did you mean us-east-1"),
        ({"provider": "awz"}, "unknown provider 'awz'; did you mean aws"),
    ],
)
def test_names_that_nobody_has_are_mistakes(wanted: dict[str, str], told: str) -> None:
    with pytest.raises(UnknownName, match=told):
        names(**wanted)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 5), st.none() | st.integers(1, 9)), max_size=12),
    st.integers(1, 8),
    st.integers(0, 5),
)
def test_finding_is_filtering(rows: list[tuple[int, int, int | None]], min_procs: int, min_memory: int) -> None:
    offers = [
        offer(f"m{number}", num_vcpus=float(procs), memory_bytes=float(memory), price_usd_per_hour=price)
        for number, (procs, memory, price) in enumerate(rows)
    ]
    found = find_offers(offers, min_procs=min_procs, min_memory_bytes=min_memory)
    expected = {
        f"m{number}"
        for number, (procs, memory, price) in enumerate(rows)
        if procs >= min_procs and memory >= min_memory and price is not None
    }
    assert {entry.instance_type for entry in found} == expected
    prices = [entry.price_usd_per_hour for entry in found]
    assert prices == sorted(prices)  # type: ignore[type-var]


def test_accelerators_are_attached_in_one_place() -> None:
    machine, card = OFFERS[0], OFFERS[5]
    both = with_accelerator(machine, card)
    assert (both.accelerator, both.num_accelerators, both.price_usd_per_hour) == ("T4", 1.0, 3.35)
    assert both.spot_price_usd_per_hour is None
    with pytest.raises(InvalidInput, match="cannot be attached to a machine of aws in euw1-az2"):
        with_accelerator(OFFERS[3], card)
    with pytest.raises(InvalidInput, match="gpu and T4 are not a machine without accelerators"):
        with_accelerator(OFFERS[2], card)


def test_pools_of_offers() -> None:
    pool = pool_of(OFFERS[2], 8, min_nodes=0, provision_s=90.0)
    assert (pool.name, pool.num_nodes, pool.procs_per_node, pool.gpus_per_node) == ("aws/gpu@us-east-1", 8, 4, 1)
    assert (pool.price_usd_per_hour, pool.memory_bytes_per_node, pool.is_elastic) == (2.0, 16 * GIB, True)
    spot = Spot(np.array([0.0, 60.0]), np.array([0.3, 0.4]), np.zeros(2))
    market = pool_of(OFFERS[4], 2, spot, name="market")
    assert (market.name, market.price_usd_per_hour, market.spot) == ("market", 0.3, spot)


def test_offers_that_make_no_pool() -> None:
    with pytest.raises(InvalidInput, match="auction: is not offered on demand; give its spot prices"):
        pool_of(OFFERS[4], 2)
    with pytest.raises(InvalidInput, match="T4: 0 processors are not a machine"):
        pool_of(OFFERS[5], 2)
    with pytest.raises(InvalidInput, match="at least one node"):
        pool_of(OFFERS[0], 0)


def test_a_real_question(data_dir: Path) -> None:
    """The cheapest machine with eight A100s in the USA costs what the list says, and nothing is cheaper."""
    offers = read_catalogue(data_dir / "prices" / "skypilot-catalog-2025-12-31.tar.gz")
    found = find_offers(offers, gpu="A100-80GB", min_gpus=8, provider="aws", region="us-*", min_procs=64)
    assert {entry.instance_type for entry in found} == {"p4de.24xlarge"}
    assert pool_of(found[0], 4).gpus_per_node == 8
    host = next(o for o in offers if o.instance_type == "a2-highgpu-1g" and o.zone == "us-central1-a")
    card = next(
        o
        for o in offers
        if not o.instance_type and o.accelerator == "A100" and o.zone == host.zone and o.num_accelerators == 1
    )
    listed = read_catalogue(data_dir / "prices" / "gcp-pricing-2026-01-01.yml.gz")
    whole = next(o for o in listed if o.instance_type == "a2-highgpu-1g" and o.region == "us-central1")
    assert whole.price_usd_per_hour is not None
    # Two independent lists of the same provider agree on a machine with its card.
    assert with_accelerator(host, card).price_usd_per_hour == pytest.approx(whole.price_usd_per_hour, rel=0.02)

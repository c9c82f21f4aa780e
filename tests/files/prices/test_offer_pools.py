"""Pools of the machines in a price list that suit a workflow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import stretto
from real_data import find_data
from stretto.core.graph import TaskGraph
from stretto.errors import InvalidInput
from stretto.files.prices.offer_pools import is_price_list, offer_pools

COLUMNS = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,SpotPrice,AvailabilityZone\n"
ROWS = (
    "small,,,2,8,0.10,east,0.03,east-1",
    "small,,,2,8,0.12,west,0.02,west-1",
    "medium,,,4,16,0.22,east,,east-1",
    "large,,,8,32,0.50,east,0.2,east-1",
    "gpu,T4,1,4,16,0.60,east,0.2,east-1",
)
GRAPH = TaskGraph.from_edges([60.0, 60.0], [0], [1], 0.0)


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "vms.csv"
    path.write_text(COLUMNS + "\n".join(ROWS) + "\n")
    return path


def test_the_region_with_the_cheapest_processor_is_chosen(prices: Path) -> None:
    pools, notes = offer_pools(prices, GRAPH)
    assert [pool.name for pool in pools] == ["small", "medium", "large"]
    assert [pool.price_usd_per_hour for pool in pools] == [0.10, 0.22, 0.50]
    assert [pool.spot is None for pool in pools] == [False, True, False]
    assert sum("assumed" in note for note in notes) == 1
    assert notes[0].startswith("Of 5 offers, 3 of")


def test_only_machines_that_hold_the_largest_task(prices: Path) -> None:
    wide = replace(GRAPH, cores=np.array([1.0, 4.0]))
    assert [pool.name for pool in offer_pools(prices, wide)[0]] == ["medium", "large"]
    learning = replace(GRAPH, gpus=np.array([0.0, 1.0]))
    assert [pool.name for pool in offer_pools(prices, learning)[0]] == ["gpu"]
    huge = replace(GRAPH, cores=np.array([1.0, 400.0]))
    with pytest.raises(InvalidInput, match="no on-demand offer that can hold the largest task"):
        offer_pools(prices, huge)


def test_a_plan_on_a_price_list(prices: Path, tmp_path: Path) -> None:
    found = stretto.plan(GRAPH, pools=stretto.PoolOptions(prices, deadline="10min"))
    assert found.keeps_limits
    assert found.rentals
    assert any("Of 5 offers" in note for note in found.notes)
    pools = tmp_path / "pools.toml"
    pools.write_text('[[pool]]\nname = "own"\nnum_nodes = 1\n')
    assert is_price_list(prices)
    assert not is_price_list(pools)
    assert not is_price_list("own:1,cloud:0-4@0.4")


def test_real_price_lists() -> None:
    data = find_data()
    if data is None:
        pytest.skip("no price lists: set STRETTO_DATA to the folder of real data")
    path = data / "prices" / "ec2instances-2017-11-12.json.gz"
    assert is_price_list(path)
    pools, _ = offer_pools(path, replace(GRAPH, cores=np.array([1.0, 8.0]), memory_bytes=np.array([0.0, 40e9])))
    assert all(pool.procs_per_node >= 8 and pool.memory_bytes_per_node >= 40e9 for pool in pools)

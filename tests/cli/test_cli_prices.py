"""``stretto prices``: offers, and pools made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.files.clusters.pool_toml import read_pools
from stretto.files.document import Document

from .conftest import Run

HEADER = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,AvailabilityZone\n"
OFFERS = """\
small,,,4,16,0.20,0.05,west,west-a
large,,,16,64,0.70,,west,west-a
gpu1,T4,1,8,32,0.50,0.30,west,west-a
gpu1,T4,1,8,32,0.45,0.40,east,east-b
gpu4,T4,4,32,128,2.00,0.90,east,east-b
"""
SERIES = """\
snapshot_utc,InstanceType,Region,AvailabilityZone,SpotPrice
2024-01-01T00:00:00+00:00,gpu1,east,east-b,0.20
2024-01-02T00:00:00+00:00,gpu1,east,east-b,0.30
"""


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    """A price list of one provider."""
    path = tmp_path / "acme" / "vms.csv"
    path.parent.mkdir()
    path.write_text(HEADER + OFFERS)
    return path


def test_offers_are_found_the_cheapest_first(run: Run, catalogue: Path) -> None:
    found = run("prices", "list", catalogue, "--gpu", "t4", "--output", "json").json
    assert [(o["instance_type"], o["region"]) for o in found["offers"]] == [
        *(("gpu1", "east"), ("gpu1", "west"), ("gpu4", "east"))
    ]
    assert found["num_offers"] == 3
    assert found["offers"][0]["price_usd_per_hour"] == 0.45
    spot = run("prices", "list", catalogue, "--gpu", "T4", "--spot", "--output", "quiet").out
    assert spot.splitlines()[0] == "acme/gpu1@west-a"


def test_wishes_narrow_the_list(run: Run, catalogue: Path) -> None:
    def names(*words: str) -> list[str]:
        return run("prices", "list", catalogue, *words, "--output", "quiet").out.split()

    assert len(names()) == 5
    assert names("--procs", "16", "--max-price", "1") == ["acme/large@west-a"]
    assert names("--memory", "100GB") == ["acme/gpu4@east-b"]
    assert names("--region", "we*", "--limit", "1") == ["acme/small@west-a"]
    assert names("--gpu", "T4", "--gpus", "2") == ["acme/gpu4@east-b"]


def test_the_table_says_what_it_leaves_out(run: Run, catalogue: Path) -> None:
    ran = run("prices", "list", catalogue, "--limit", "2")
    assert "small" in ran.out
    assert "gpu4" not in ran.out
    assert "2 of 5 offers" in ran.err


def test_a_pool_file_that_replay_reads(run: Run, catalogue: Path, tmp_path: Path) -> None:
    made = run(
        *("prices", "pool", catalogue, "--gpu", "T4", "--nodes", "0-8", "--provision", "90s", "--billing", "1min"),
        *("--idle-shutdown", "5min", "--name", "cloud", "--speed", "2"),
    )
    assert made.code == 0, made.err
    (pool,) = read_pools(Document("made.toml", made.out.encode()))
    assert (pool.name, pool.num_nodes, pool.min_nodes) == ("cloud", 8, 0)
    assert (pool.procs_per_node, pool.gpus_per_node, pool.price_usd_per_hour) == (8, 1, 0.45)
    assert (pool.provision_s, pool.billing_s, pool.idle_shutdown_s, pool.speed) == (90, 60, 300, 2)
    assert pool.memory_bytes_per_node == 32 * 2**30
    path = tmp_path / "cloud.toml"
    path.write_text(made.out)
    replayed = run("replay", "trace:lublin?num_jobs=50&num_procs=32", "--pools", path, "--output", "json").json
    assert replayed["cost_usd"] > 0


def test_a_pool_on_the_spot_market(run: Run, catalogue: Path, tmp_path: Path) -> None:
    series = tmp_path / "spot.csv"
    series.write_text(SERIES)
    words = ("prices", "pool", catalogue, "--instance", "gpu1", "--spot-series", series)
    made = run(*words, "--bid", "0.25", "--hazard", "0.01", "--checkpoint", "10min")
    assert made.code == 0, made.err
    (pool,) = read_pools(Document("made.toml", made.out.encode()))
    assert pool.spot is not None
    assert pool.spot.price_usd_per_hour.tolist() == [0.20, 0.30]
    assert pool.spot.time_s.tolist() == [0, 86400]
    assert (pool.spot.bid_usd_per_hour, pool.spot.checkpoint_s) == (0.25, 600)
    assert set(pool.spot.hazard_per_hour) == {0.01}


@pytest.mark.parametrize(
    ("words", "reasons"),
    [
        (("list", "--gpu", "T5"), ("unknown accelerator 'T5'", "T4")),
        (("list", "--provider", "acne"), ("did you mean acme",)),
        (("list", "--procs", "99"), ("no offer matches all",)),
        (("list", "--memory", "much"), ("'much' is not a size",)),
        (("pool", "--nodes", "x"), ("--nodes", "'x'")),
        (("pool", "--nodes", "0"), ("at least one node",)),
        (("pool", "--nodes", "9-2"), ("min_nodes 9",)),
        (("pool", "--instance", "gpu2"), ("did you mean gpu",)),
        (("pool", "--provision", "soon"), ("'soon' is not a time",)),
        (("pool", "--spot-series", "nowhere.csv"), ("nowhere.csv",)),
    ],
)
def test_mistakes_are_one_line(run: Run, catalogue: Path, words: tuple[str, ...], reasons: tuple[str, ...]) -> None:
    run("prices", words[0], catalogue, *words[1:]).assert_refused(*reasons)


def test_a_file_that_is_no_price_list(run: Run, diamond: Path) -> None:
    run("prices", "list", diamond).assert_refused("diamond.json", "not a catalogue")


def test_the_real_catalogue_and_series(run: Run, data_dir: Path) -> None:
    folder = data_dir / "prices"
    catalogue = folder / "skypilot-catalog-2025-12-31.tar.gz"
    found = run("prices", "list", catalogue, "--gpu", "A100", "--provider", "aws", "--output", "json").json
    assert found["offers"][0]["num_accelerators"] >= 1
    words = ("--provider", "aws", "--instance", "g4dn.xlarge", "--region", "us-east-1", "--nodes", "0-4")
    series = folder / "aws-spot-daily-2022-12_2025-12.csv.gz"
    made = run("prices", "pool", catalogue, *words, "--spot-series", series)
    assert made.code == 0, made.err
    (pool,) = read_pools(Document("made.toml", made.out.encode()))
    assert pool.spot is not None
    assert len(pool.spot.time_s) > 100

"""Steps over time: spot prices and carbon, real and small."""

from __future__ import annotations

import csv
import gzip
import io
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.errors import InvalidInput, UnknownName
from stretto.files.prices.carbon import read_carbon
from stretto.files.prices.spot_series import spot_prices, spot_series
from stretto.files.prices.step_series import StepSeries

SPOT_FILE = "aws-spot-daily-2022-12_2025-12.csv.gz"
SMALL = """snapshot_utc,commit,catalog,InstanceType,Region,AvailabilityZone,Price,SpotPrice
2024-01-01T00:00:00+00:00,aa,v5,m5.large,us-east-1,az1,0.1,0.05
2024-01-01T00:00:00+00:00,aa,v5,m5.large,us-east-1,az2,0.1,0.04
2024-01-01T00:00:00+00:00,aa,v5,m5.large,eu-west-1,az1,0.1,0.06
2024-01-02T01:00:00+01:00,bb,v5,m5.large,us-east-1,az1,0.1,0.03
2024-01-02T01:00:00+01:00,bb,v5,m5.large,us-east-1,az2,0.1,
2024-01-03T00:00:00+00:00,cc,v5,m5.large,us-east-1,az1,0.1,0.03
2024-01-04T00:00:00+00:00,dd,v5,m5.large,us-east-1,az1,0.1,0.07
2024-01-04T00:00:00+00:00,dd,v5,c5.large,us-east-1,az1,0.1,0.01
"""
CARBON = """Datetime (UTC),Country,Carbon intensity gCO₂eq/kWh (direct),Carbon intensity gCO₂eq/kWh (Life cycle)
2021-01-01 00:00:00,Denmark,80,170
2021-01-01 01:00:00,Denmark,90,180
2021-01-01 02:00:00,Denmark,,
2021-01-01 03:00:00,Denmark,70,160
"""
DAY = 86_400.0


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "spot.csv"
    path.write_text(SMALL)
    return path


def test_a_zone_a_region_and_a_start(small: Path) -> None:
    zone = spot_prices(small, "m5.large", region="us-east-1", zone="az1")
    assert (zone.time_s / DAY).tolist() == [0, 1, 3]
    assert zone.value.tolist() == [0.05, 0.03, 0.07]
    assert zone.origin_unix_s == datetime(2024, 1, 1, tzinfo=UTC).timestamp()
    region = spot_prices(small, "m5.large", region="us-east-1")
    assert region.value.tolist() == [0.04, 0.03, 0.07]
    later = spot_prices(small, "m5.large", region="us-east-1", start="2024-01-03T12:00:00")
    assert ((later.time_s / DAY).tolist(), later.value.tolist()) == ([0, 0.5], [0.03, 0.07])
    assert spot_prices(small, "c5.large").value.tolist() == [0.01]


def test_a_market_has_hazards_and_bids(small: Path) -> None:
    spot = spot_series(small, "m5.large", region="us-east-1", hazard_per_hour=0.02, bid_usd_per_hour=0.05)
    assert spot.hazard_per_hour.tolist() == [0.02] * 3
    assert (spot.bid_usd_per_hour, spot.checkpoint_s) == (0.05, float("inf"))


def test_wrong_questions_are_told(small: Path) -> None:
    with pytest.raises(InvalidInput, match=r"spot\.csv \[region\]: m5\.large is in eu-west-1, us-east-1; say which"):
        spot_prices(small, "m5.large")
    with pytest.raises(UnknownName, match=r"unknown instance type in .*spot\.csv: 'm5\.larg'; did you mean m5\.large"):
        spot_prices(small, "m5.larg")
    with pytest.raises(UnknownName, match="unknown region 'us-east-9'; did you mean us-east-1"):
        spot_prices(small, "m5.large", region="us-east-9")
    with pytest.raises(UnknownName, match="unknown zone 'az7'; did you mean az"):
        spot_prices(small, "m5.large", zone="az7")
    with pytest.raises(InvalidInput, match="'soon' is not an ISO date"):
        spot_prices(small, "m5.large", region="us-east-1", start="soon")
    with pytest.raises(
        InvalidInput, match=r"spot\.csv \[start\]: the series does not begin before 2024-01-01T00:00:00"
    ):
        spot_prices(small, "m5.large", region="us-east-1", start="2023-01-01")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("0.07\n", "dear\n", r"spot\.csv:8 \[SpotPrice\]: 'dear' is not a number"),
        ("2024-01-04T00", "2024-13-04T00", r"spot\.csv:8 \[snapshot_utc\]: '2024-13-04T00:00:00\+00:00' is not an ISO"),
        (",az2,0.1,\n", ",az2,0.1\n", r"spot\.csv:6: 7 fields where the header has 8"),
        ("SpotPrice", "Spot", r"spot\.csv:1 \[SpotPrice\]: unknown column 'SpotPrice'"),
    ],
)
def test_faults_have_their_place(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in SMALL
    path = tmp_path / "spot.csv"
    path.write_text(SMALL.replace(old, new))
    with pytest.raises(InvalidInput, match=told):
        spot_prices(path, "m5.large", region="us-east-1")


def test_real_spot_prices(data_dir: Path) -> None:
    path = data_dir / "prices" / SPOT_FILE
    series = spot_prices(path, "c5.18xlarge", region="eu-central-1")
    text = io.StringIO(gzip.decompress(path.read_bytes()).decode())
    least: dict[float, float] = {}
    for row in csv.DictReader(text):
        if (row["InstanceType"], row["Region"]) == ("c5.18xlarge", "eu-central-1") and row["SpotPrice"]:
            moment = datetime.fromisoformat(row["snapshot_utc"]).timestamp()
            least[moment] = min(float(row["SpotPrice"]), least.get(moment, np.inf))
    moments = np.array(sorted(least))
    assert len(moments) > 900
    assert series.at(moments - series.origin_unix_s).tolist() == [least[moment] for moment in moments]


def test_small_carbon(tmp_path: Path) -> None:
    path = tmp_path / "carbon.csv"
    path.write_text(CARBON, encoding="utf-8")
    series = read_carbon(path)
    assert "Life cycle" in series.column
    assert series.hours(series.start_unix_s, 2).tolist() == [170, 180]
    path.write_text(CARBON.replace("180", "much"), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"carbon\.csv:3 .*'much' is not a number"):
        read_carbon(path)


def test_real_carbon(data_dir: Path) -> None:
    series = read_carbon(data_dir / "prices" / "carbon-DK-DK2-2021-2022.csv.gz")
    assert series.start_unix_s == datetime(2021, 1, 1, tzinfo=UTC).timestamp()
    assert series.hours(series.start_unix_s, 2).tolist() == [175.84, 171.37]


steps = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4)), min_size=1, max_size=12)


@settings(max_examples=150, deadline=None)
@given(rows=steps, begin=st.integers(-5, 60), length=st.integers(0, 30))
def test_steps_keep_their_value(rows: list[tuple[int, int]], begin: int, length: int) -> None:
    series = StepSeries.of_unix([row[0] for row in rows], [row[1] for row in rows])
    last = dict(rows)  # the last of equal times
    first = min(last)

    def value(unix: int) -> int:
        return last[max([moment for moment in last if moment <= unix], default=first)]

    moments = range(begin, begin + length)
    assert series.at([moment - series.origin_unix_s for moment in moments]).tolist() == [value(m) for m in moments]
    if length:
        offset = begin - series.origin_unix_s
        assert series.mean(offset, offset + length) == pytest.approx(np.mean([value(m) for m in moments]))
    if begin >= first:
        assert series.since(begin).at(range(30)).tolist() == [value(begin + k) for k in range(30)]
    assert bool(np.all(np.diff(series.value) != 0))


def test_series_need_steps() -> None:
    with pytest.raises(InvalidInput, match="needs steps"):
        StepSeries.of_unix([], [])

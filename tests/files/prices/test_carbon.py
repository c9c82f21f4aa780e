"""Series of carbon intensities: what is read, and what is refused with its line."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from stretto.errors import InvalidInput
from stretto.files.prices.carbon import parse_moment, read_carbon

HEADER = "Datetime (UTC),Zone,Carbon intensity gCO2eq/kWh (direct),Carbon intensity gCO2eq/kWh (Life cycle)\n"


def written(path: Path, text: str) -> Path:
    file = path / "carbon.csv"
    file.write_text(text)
    return file


def test_rows_in_any_order_with_gaps(tmp_path: Path) -> None:
    rows = "2021-01-01 03:00:00,X,1,30\n2021-01-01 00:00:00,X,2,10\n2021-01-01 01:00:00,X,3,\n"
    found = read_carbon(written(tmp_path, HEADER + rows))
    assert found.start_unix_s == 1609459200.0
    np.testing.assert_array_equal(found.grams_per_kwh, [10.0, np.nan, np.nan, 30.0])
    assert found.column.endswith("(Life cycle)")
    direct = read_carbon(written(tmp_path, HEADER + rows), column="Carbon intensity gCO2eq/kWh (direct)")
    assert direct.hours(1609459200.0, 2).tolist() == [2.0, 3.0]


def test_offsets_are_followed_and_gzip_is_unpacked(tmp_path: Path) -> None:
    file = tmp_path / "carbon.csv.gz"
    file.write_bytes(gzip.compress(b"time,gCO2/kWh\n2021-01-01T01:00:00+01:00,5\n"))
    assert read_carbon(file).start_unix_s == 1609459200.0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("time,gCO2/kWh\n", "has no hours"),
        ("when,gCO2/kWh\n", "no column of times"),
        ("time,grams\n", "no column of gCO2/kWh"),
        ("time,gCO2/kWh a,gCO2/kWh b\n", "both look like intensities"),
        ("time,gCO2/kWh\nnoon,1\n", "'noon' is not an ISO time"),
        ("time,gCO2/kWh\n2021-01-01 00:30:00,1\n", "is not the begin of an hour"),
        ("time,gCO2/kWh\n2021-01-01 00:00:00,x\n", "x"),
        ("time,gCO2/kWh\n2021-01-01 00:00:00,-1\n", "-1"),
        ("time,gCO2/kWh\n2021-01-01 00:00:00,50000\n", "other units"),
        ("time,gCO2/kWh\n2021-01-01 00:00:00,1\n2021-01-01 00:00:00,1\n", "stands in line 2 already"),
        ("Datetime (CET),gCO2/kWh\n2021-01-01 00:00:00,1\n", "has no offset and is in CET"),
        ("time,gCO2/kWh\n0021-01-01 00:00:00,1\n2021-01-01 00:00:00,1\n", "is a year wrong"),
        ("time,gCO2/kWh\n2021-01-01 00:00:00\n", "1 fields where the header has 2"),
    ],
)
def test_faults_have_their_place(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_carbon(written(tmp_path, text))
    assert reason in str(caught.value)
    assert "carbon.csv" in str(caught.value)


def test_moments() -> None:
    assert parse_moment("2021-01-01", field="carbon_start") == 1609459200.0
    with pytest.raises(InvalidInput, match="carbon_start"):
        parse_moment("soon", field="carbon_start")


def test_a_published_series_is_read(data_dir: Path) -> None:
    found = read_carbon(data_dir / "prices" / "carbon-DK-DK2-2021-2022.csv.gz")
    assert len(found.grams_per_kwh) == 2 * 365 * 24
    assert not np.isnan(found.grams_per_kwh).any()
    assert "Life cycle" in found.column

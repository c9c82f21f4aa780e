"""Series of the availability of spot instances."""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.errors import InvalidInput
from stretto.files.prices.availability import read_availability

HEADER = "zone_type,step,seconds,available\n"


def test_two_series(tmp_path: Path) -> None:
    path = tmp_path / "series.csv"
    path.write_text(HEADER + "a,3,1800,0\na,4,2400,1\na,5,3000,1\nb,0,0,1\nb,1,60,0\n")
    first, second = read_availability(path)
    assert (first.name, first.step_s, first.available.tolist()) == ("a", 600.0, [False, True, True])
    assert (second.name, second.step_s, second.available.tolist()) == ("b", 60.0, [True, False])


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ("a,0,0,1\na,1,600,1\na,3,1800,1\n", "1200 s after the row before, not 600"),
        ("a,0,0,1\na,1,0,1\n", "does not come after"),
        ("a,0,0,2\n", "'2' is neither 0 nor 1"),
        ("a,0,0,1\n", "has one row"),
        ("", "there is no row"),
    ],
)
def test_refusals(tmp_path: Path, rows: str, complaint: str) -> None:
    path = tmp_path / "series.csv"
    path.write_text(HEADER + rows)
    with pytest.raises(InvalidInput, match=complaint):
        read_availability(path)

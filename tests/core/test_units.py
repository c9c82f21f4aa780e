"""Quantities in words, at the edges where the unit or the wording changes."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.core import units
from stretto.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("1B", 1), ("1KB", 1e3), ("1kB", 1e3), ("1MB", 1e6), ("1GB", 1e9), ("1TB", 1e12), ("1", 1), (".5", 0.5)),
        *(("1KiB", 1024), ("1MiB", 1024**2), ("1GiB", 1024**3), ("2.5e3", 2500), (1, 1), (0.5, 0.5)),
    ],
)
def test_sizes(text: str | float, value: float) -> None:
    assert units.parse_bytes(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("1B/s", 1), ("1kB/s", 1e3), ("1MB/s", 1e6), ("1GB/s", 1e9), ("1TB/s", 1e12), ("1", 1)),
        *(("1MiB/s", 1024**2), ("8bit/s", 1), ("8Kbit/s", 1e3), ("8Mbit/s", 1e6), ("8Gbit/s", 1e9)),
        *(("8Tbit/s", 1e12), ("8Kibit/s", 1024), ("8Mibit/s", 1024**2), ("8Gibit/s", 1024**3)),
    ],
)
def test_rates(text: str, value: float) -> None:
    assert units.parse_rate(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("1s", 1), ("1ms", 1e-3), ("1us", 1e-6), ("1µs", 1e-6), ("1μs", 1e-6), ("1ns", 1e-9), ("1min", 60),
     ("1h", 3600)],
)  # fmt: skip
def test_times(text: str, value: float) -> None:
    assert units.parse_seconds(text) == value


def test_units_of_one_quantity_are_none_of_another() -> None:
    for parse, wrong, known in (
        (units.parse_bytes, "1B/s", "B, KB, MB, GB, TB, KiB, MiB, GiB, kB"),
        (units.parse_rate, "1s", "B/s, KB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, kB/s, bit/s, Kbit/s"),
        (units.parse_seconds, "1d", "s, ms, us, ns, min, h"),
    ):
        with pytest.raises(InvalidInput) as caught:
            parse(wrong)
        assert f"units: {known}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        *(("0", True), ("9" * 18, True), ("9" * 19, False), ("", False), ("-1", False), ("1.0", False)),
        *(("²", False), ("\u0661", False)),  # digits, but not in ASCII
    ],
)
def test_counts_are_whole_numbers_in_ascii(text: str, is_one: bool) -> None:
    assert units.is_count(text) == is_one


@pytest.mark.parametrize("text", ["5", " 5 ", "5.", ".5", "2.5e9", "1e-3"])
def test_a_bare_number_is_asked_for_its_unit(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        units.stating_unit(text, field="rate", units=("GB/s", "Gbit/s"), place="@")
    number = text.strip()
    assert str(caught.value) == f"rate: @{number} has no unit; did you mean @{number}GB/s or @{number}Gbit/s?"
    with pytest.raises(InvalidInput, match=r"^time: 5 has no unit; did you mean 5s\?$"):
        units.stating_unit("5", field="time", units=("s",))


@pytest.mark.parametrize("text", ["0", "0.0", "5GB/s", "x", "", "1.2.3"])
def test_what_has_a_unit_or_is_zero_or_no_number_stays_as_it_is(text: str) -> None:
    assert units.stating_unit(text, field="rate", units=("GB/s",)) is text


# For people ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([], []),
        ([0.0], ["0 s"]),
        ([1.5, 0.25], ["1.500 s", "0.250 s"]),
        ([15.0, 1.0], ["15.00 s", "1.00 s"]),
        ([1234.5], ["1,234 s"]),
        ([0.0123, 0.0001], ["12.30 ms", "0.10 ms"]),
        ([2e-6, 1e-12], ["2.000 µs", "<0.001 µs"]),
        ([9e-10], ["0.900 ns"]),
        ([1.0, 0.0004, 0.0005], ["1.000 s", "<0.001 s", "0.001 s"]),
        ([1.0, inf, nan], ["1.000 s", "inf s", "nan s"]),
        ([-2.0, 1.0], ["-2.000 s", "1.000 s"]),
        ([123456.0, 1.0], ["123,456 s", "1 s"]),
    ],
)
def test_times_of_a_column_share_unit_and_decimals(values: list[float], told: list[str]) -> None:
    assert units.format_seconds_alike(values) == told


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([], []),
        ([59.9, 0.0], ["59.9 s", "0.0 s"]),
        ([60.0, 6.0, 2.0], ["1.0 min", "0.1 min", "<0.1 min"]),
        ([3599.0], ["60.0 min"]),
        ([3600.0, -7200.0], ["1.0 h", "-2.0 h"]),
        ([86400.0, 43200.0], ["1.0 d", "0.5 d"]),
        ([inf, 60.0], ["inf min", "1.0 min"]),
    ],
)
def test_waits_of_a_column_share_the_unit_of_the_largest(values: list[float], told: list[str]) -> None:
    assert units.format_waits_alike(values) == told


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        *((59.94, "59.9 s"), (60.0, "1.0 min"), (3599.0, "60.0 min"), (3600.0, "1.0 h"), (86399.0, "24.0 h")),
        *(
            (86400.0, "1.0 d"),
            (99.9 * 86400, "99.9 d"),
            (100 * 86400.0, "100 d"),
            (1e9, "11,574 d"),
            (0.1234, "0.123 s"),
        ),
    ],
)
def test_a_wait_is_in_the_largest_unit_that_it_fills(seconds: float, told: str) -> None:
    assert units.format_wait(seconds) == told


@pytest.mark.parametrize(
    ("gap", "told"),
    [
        *((1e-9, "proven optimal"), (-1e-9, "proven optimal"), (1.1e-9, "<0.1 %"), (0.000499, "<0.1 %")),
        *((0.0005, "0.1 %"), (-1.1e-9, "-0.0 %"), (-0.25, "-25.0 %"), (inf, "unknown"), (nan, "unknown")),
        (-inf, "-inf %"),
    ],
)
def test_gaps_at_the_edges_of_their_wording(gap: float, told: str) -> None:
    assert units.format_gap(gap) == told
    assert units.is_zero_gap(gap) == (told == "proven optimal")


def test_shares_counts_and_sizes() -> None:
    assert units.format_percent(0.12345) == "12.3 %"
    assert units.format_percent(0.12345, decimals=0) == "12 %"
    assert units.format_percent(0.12345, is_signed=True) == "+12.3 %"
    assert units.format_percent(-12.0, is_signed=True) == "-1,200.0 %"
    assert [units.format_count(n, "device") for n in (0, 1, 2, 2000)] == [
        "0 devices", "1 device", "2 devices", "2,000 devices",
    ]  # fmt: skip
    sizes = [999.9, 1e3, 999_999.0, 1e6, 1e9 - 1e5, 1e9, 1e12, -1e12, 1234.5]
    assert [units.format_bytes(size) for size in sizes] == [
        "999.9 B", "1 kB", "1000 kB", "1 MB", "999.9 MB", "1 GB", "1 TB", "-1 TB", "1.234 kB",
    ]  # fmt: skip
    assert [units.format_seconds(s) for s in (1e-9, 9.99e-7, 9.99e-4, -1e-7, -20_000.0, nan)] == [
        "1 ns", "999 ns", "999 µs", "-100 ns", "-20,000 s", "nan s",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "usd"),
    [("20USD", 20), ("20 usd", 20), ("$20", 20), (" $ 20.5 ", 20.5), ("20", 20), (7, 7), (0.5, 0.5), ("1e2", 100)],
)
def test_amounts_of_money(text: str | float, usd: float) -> None:
    assert units.parse_usd(text) == usd


@pytest.mark.parametrize("text", ["0", "-5", "$-5", "nan", "EUR 5", "", "$20USD", "y" * 70])
def test_what_is_no_amount_of_money(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        units.parse_usd(text)
    assert str(caught.value) == f"budget: {text[:60]!r} is not an amount of money; write 20USD"


@given(st.floats(1e-12, 1e15))
def test_a_size_that_is_written_and_read_again_is_nearly_the_same(size: float) -> None:
    assert units.parse_bytes(units.format_bytes(size)) == pytest.approx(size, rel=1e-3)

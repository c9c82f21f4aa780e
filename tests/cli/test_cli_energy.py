"""Energy and carbon as figures of ``replay`` and ``compare``, and as what strategies are ranked by."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run

HOUR_KWH = 8 * 5 / 1000  # eight processors that idle at 5 W for an hour
SWF = """\
; MaxProcs: 8
; UnixStartTime: 1768003200
1    0    0 3600 4 -1 -1 4  3600 -1 1 1 1 1 1 1 -1 -1
2    0 3600 3600 8 -1 -1 8  3600 -1 1 2 1 1 1 1 -1 -1
3   60 7140 1800 4 -1 -1 4  1800 -1 1 3 1 1 1 1 -1 -1
"""
CARBON = """\
Datetime (UTC),Carbon intensity gCO2eq/kWh (Life cycle)
2026-01-10 00:00:00,100
2026-01-10 01:00:00,200
2026-01-10 02:00:00,300
2026-01-10 03:00:00,310
"""
SITE = """\
[[node]]
name = "n[1-2]"
cpus = 4
power_w = 80.0
idle_power_w = 20.0
[[partition]]
name = "all"
nodes = "n[1-2]"
"""
POWER = ("--power", "20", "--idle-power", "5")


@pytest.fixture
def night(tmp_path: Path) -> tuple[str, str, str]:
    """A night of three jobs, an hourly series, and a site whose nodes state their power."""
    log, carbon, site = tmp_path / "night.swf", tmp_path / "carbon.csv", tmp_path / "site.toml"
    log.write_text(SWF)
    carbon.write_text(CARBON)
    site.write_text(SITE)
    return str(log), str(carbon), str(site)


def test_replay_counts_kwh_and_carbon_by_hand(run: Run, night: tuple[str, str, str]) -> None:
    log, carbon, _ = night
    told = run("replay", log, "--backfill", "none", *POWER, "--carbon", carbon, "--output", "json").json
    busy = [4 * 15 / 1000, 8 * 15 / 1000, 0.5 * 4 * 15 / 1000]
    assert told["busy_energy_kwh"] == pytest.approx(sum(busy))
    assert told["idle_energy_kwh"] == pytest.approx(2.5 * HOUR_KWH)
    assert told["energy_kwh"] == pytest.approx(told["busy_energy_kwh"] + told["idle_energy_kwh"])
    grams = (busy[0] + HOUR_KWH) * 100 + (busy[1] + HOUR_KWH) * 200 + (busy[2] + HOUR_KWH / 2) * 300
    assert told["carbon_kg"] == pytest.approx(grams / 1000)
    assert told["recorded"]["carbon_kg"] == pytest.approx(told["carbon_kg"])  # the log did the same
    table = run("replay", log, "--backfill", "none", *POWER, "--carbon", carbon).out
    assert "0.3 kWh (idle 0.1, busy 0.2); the log: 0.3 kWh" in " ".join(table.split())


def test_compare_has_columns_and_ranks_by_carbon(run: Run, night: tuple[str, str, str]) -> None:
    log, carbon, _ = night
    asked = ("compare", log, "--strategies", "fcfs,sjf", "--backfill", "none", *POWER, "--carbon", carbon)
    told = run(*asked, "--rank-by", "carbon_kg", "--output", "json").json
    lines = {line["strategy"]: line for line in told["summary"]}
    assert [line["strategy"] for line in told["summary"]] == ["sjf", "fcfs", "recorded"]
    assert lines["sjf"]["carbon_kg"]["median"] < lines["fcfs"]["carbon_kg"]["median"]
    # The same jobs on the same machine up to the same end: the same energy.
    energies = [row["energy_kwh"] for row in told["rows"]]
    assert energies == pytest.approx([energies[0]] * 3)
    header = run(*asked).out
    assert "kWh" in header
    assert "CO2" in header


def test_a_site_that_states_power_needs_no_option(run: Run, night: tuple[str, str, str]) -> None:
    log, _, site = night
    told = run("replay", log, "--site", site, "--backfill", "none", "--output", "json").json
    assert told["busy_energy_kwh"] == pytest.approx((4 + 8 + 0.5 * 4) * 15 / 1000)
    assert told["recorded"]["busy_energy_kwh"] == pytest.approx(told["busy_energy_kwh"])
    assert "carbon_kg" not in told
    run("replay", log, "--site", site, "--power", "3").assert_refused("--power", "states its power_w")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("replay", "--carbon", "CARBON"), "needs the power of nodes"),
        (("compare", "--carbon", "CARBON"), "needs the power of nodes"),
        (("compare", "--rank-by", "energy_kwh"), "needs the power of nodes"),
        (("compare", "--rank-by", "carbon_kg", "--power", "3"), "needs --carbon"),
        (("compare", "--rank-by", "energie"), "did you mean energy_kwh"),
        (("replay", "--idle-power", "3"), "needs --power"),
        (("replay", "--power", "3", "--carbon-start", "2026-01-01"), "needs --carbon"),
        (("replay", "--power", "-3"), "must lie between"),
    ],
)
def test_what_cannot_be_counted_is_refused(
    run: Run, night: tuple[str, str, str], words: tuple[str, ...], said: str
) -> None:
    log, carbon, _ = night
    given = [carbon if word == "CARBON" else word for word in words]
    run(given[0], log, *given[1:]).assert_refused(said)


def test_no_power_no_figures(run: Run, night: tuple[str, str, str]) -> None:
    told = run("replay", night[0], "--output", "json").json
    assert "energy_kwh" not in told

"""One job on the spot market: kernels against slow twins, and a deadline that no availability can break."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
import spot_twin
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from real_data import find_data
from stretto.errors import Infeasible, InvalidInput, UnknownName
from stretto.files.prices.availability import read_availability
from stretto.graphs.rental.kernels.spot_hindsight import hindsight_cost
from stretto.graphs.rental.kernels.spot_values import fill_values
from stretto.graphs.rental.spot import RULES, SpotDecider, SpotJob, SpotParams, SpotTables, hindsight, run_spot

STEP_S = 600.0
SMALL = SpotParams(num_lengths=3, factor=9.0, num_ticks=24)


@functools.cache
def tables_of(job: SpotJob) -> SpotTables:
    return SpotTables(job, SMALL)


def drawn(rng: np.random.Generator, size: int, stay: float) -> NDArray[np.bool_]:
    """Draw a series of availability whose spells last about ``1 / (1 - stay)`` steps."""
    return np.cumsum(rng.random(size) > stay) % 2 == rng.integers(2)


@pytest.mark.parametrize(("lost", "found", "d"), [(0.3, 0.1, 0.25), (0.05, 0.4, 1.0), (0.5, 0.5, 2.4), (0.2, 0.3, 0.0)])
def test_values_satisfy_bellmans_equation(lost: float, found: float, d: float) -> None:
    value = np.empty((9, 8, 3, 2))
    fill_values(value, lost, found, d, 0.3)
    twin = spot_twin.expected_cost(lost, found, d, 0.3, 7)
    for i, j in np.ndindex(9, 8):
        for m, market in enumerate(spot_twin.MARKETS):
            for z in (0, 1):
                assert value[i, j, m, z] == pytest.approx(twin(i, j, market, bool(z)), abs=1e-12), (i, j, market, z)


@pytest.mark.parametrize("rule", ["greedy", "uniform-progress"])
def test_published_rules_run_as_second_by_second(rule: str) -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        work, slack, d = int(rng.integers(40, 200)), int(rng.integers(0, 120)), int(rng.integers(0, 25))
        available = drawn(rng, 60, float(rng.choice([0.5, 0.8, 0.95])))
        deadline = work + d + slack
        job = SpotJob(float(work), float(deadline), float(d), 0.3)
        found = run_spot(tables_of(job), available, 10.0, rule=rule)
        cost, end, spot_s, on_demand_s = spot_twin.run_by_seconds(rule, available.tolist(), 10, work, deadline, d, 0.3)
        got = (found.cost_s[0], found.end_s[0], found.spot_s[0], found.on_demand_s[0])
        assert got == pytest.approx((cost, end, spot_s, on_demand_s), abs=1e-6), job


def test_hindsight_is_the_least_over_all_sequences() -> None:
    rng = np.random.default_rng(2)
    for _ in range(12):
        work, d = int(rng.integers(2, 5)), int(rng.integers(0, 3))
        size = work + d + int(rng.integers(0, 3))
        available = rng.random(size) < 0.5
        space = np.empty((2, size - work + 1, 3))
        found = hindsight_cost(available, work, d, 0.3, space[0], space[1])
        assert found == pytest.approx(spot_twin.least_cost(available.tolist(), work, d, 0.3)), (available, work, d)


@settings(deadline=None, max_examples=150)
@given(
    rule=st.sampled_from(sorted(RULES)),
    seed=st.integers(0, 2**32 - 1),
    stay=st.sampled_from([0.0, 0.5, 0.9, 0.99]),
    reserve_s=st.sampled_from([0.0, 1.0, 599.0, 7200.0, 60000.0]),
    changeover_s=st.sampled_from([0.0, 72.0, 601.0, 1440.0]),
)
@example(rule="certified", seed=0, stay=0.0, reserve_s=1440.0, changeover_s=1440.0)
def test_no_availability_breaks_the_deadline(
    rule: str, seed: int, stay: float, reserve_s: float, changeover_s: float
) -> None:
    job = SpotJob(36000.0, 36000.0 + changeover_s + reserve_s, changeover_s, 0.3)
    available = drawn(np.random.default_rng(seed), 200, stay)
    found = run_spot(tables_of(job), available, STEP_S, rule=rule)
    assert found.end_s[0] <= job.deadline_s + 1e-3
    assert found.least_reserve_s[0] >= -1e-3
    assert found.spot_s[0] + found.on_demand_s[0] >= job.work_s - 1e-3
    assert found.cost_s[0] == pytest.approx(0.3 * found.spot_s[0] + found.on_demand_s[0])


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("changeover_s", [300.0, 1500.0])
def test_an_adversary_who_takes_back_what_is_taken_does_not_break_the_deadline(rule: str, changeover_s: float) -> None:
    job = SpotJob(36000.0, 50400.0, changeover_s, 0.3)
    tables, series, away = tables_of(job), [], 0
    for _ in range(84):
        offered, refused = (np.array([*series, one]) for one in (True, False))
        taken = run_spot(tables, offered, STEP_S, rule=rule).spot_s[0]
        if away:
            series, away = [*series, False], away - 1
        else:
            series.append(True)
            away = 1 if taken > run_spot(tables, refused, STEP_S, rule=rule).spot_s[0] else 0
    found = run_spot(tables, np.array(series), STEP_S, rule=rule)
    assert found.num_changeovers[0] > 2
    assert found.end_s[0] <= job.deadline_s + 1e-3
    assert found.least_reserve_s[0] >= -1e-3


def test_always_spot_is_used_from_the_start_and_never_spot_costs_as_on_demand() -> None:
    job = SpotJob(36000.0, 50400.0, 300.0, 0.25)
    always = run_spot(tables_of(job), np.ones(84, bool), STEP_S)
    assert always.cost_s[0] == pytest.approx(0.25 * 36300.0)
    never = run_spot(tables_of(job), np.zeros(84, bool), STEP_S)
    assert never.cost_s[0] == pytest.approx(36300.0)


def test_the_decider_of_a_real_job_does_what_the_simulation_does() -> None:
    rng = np.random.default_rng(8)
    for changeover_s, stay in itertools.product((300.0, 900.0), (0.5, 0.9)):
        job = SpotJob(18000.0, 28800.0, changeover_s, 0.3)
        available = drawn(rng, 48, stay)
        decider = SpotDecider(tables_of(job), STEP_S)
        market, left, elapsed, starting, cost = "idle", job.work_s, 0.0, 0.0, 0.0
        for here in available.tolist():
            if left <= 0:
                break
            if market == "spot" and not here:
                market, starting = "idle", 0.0
            wanted = decider.decide(
                is_available=here, market=market, work_left_s=left, elapsed_s=elapsed, starting_s=starting
            )
            waited = min(STEP_S, decider.may_wait_s(left, elapsed)) if wanted == "idle" else 0.0
            elapsed, rest = elapsed + waited, STEP_S - waited
            if wanted == "idle" and rest > 0:
                market, wanted = "idle", "on demand"
            if wanted != market:
                market, starting = wanted, 0.0 if wanted == "idle" else changeover_s
            if market != "idle":
                begun = min(starting, rest)
                ran = min(left, rest - begun)
                starting, left, elapsed = starting - begun, left - ran, elapsed + begun + ran
                cost += (begun + ran) * (0.3 if market == "spot" else 1.0)
        assert left == pytest.approx(0.0, abs=1e-6)
        assert cost == pytest.approx(run_spot(tables_of(job), available, STEP_S).cost_s[0])


def test_hindsight_is_below_every_rule() -> None:
    job = SpotJob(36000.0, 46800.0, 600.0, 0.3)
    rng = np.random.default_rng(3)
    for stay in (0.5, 0.8, 0.95):
        available = drawn(rng, 78, stay)
        best = hindsight(job, available, STEP_S, 300.0)
        for rule in RULES:
            assert run_spot(tables_of(job), available, STEP_S, rule=rule).cost_s[0] >= best - 300.0


def test_refusals() -> None:
    with pytest.raises(Infeasible, match="even on demand; give at least 3700 s"):
        SpotJob(3600.0, 3650.0, 100.0, 0.3)
    with pytest.raises(InvalidInput, match="must be positive"):
        SpotJob(0.0, 10.0, 1.0, 0.3)
    job = SpotJob(36000.0, 50400.0, 300.0, 0.25)
    with pytest.raises(UnknownName):
        run_spot(tables_of(job), np.ones(3, bool), STEP_S, rule="eager")
    with pytest.raises(UnknownName):
        SpotDecider(tables_of(job), STEP_S).decide(is_available=True, market="on", work_left_s=1.0, elapsed_s=0.0)
    with pytest.raises(InvalidInput, match="does not divide"):
        hindsight(job, np.ones(3, bool), STEP_S, 70.0)


def test_on_the_measured_series_the_rule_is_cheaper_than_both_others() -> None:
    data = find_data()
    if data is None or not (data / "spot").is_dir():
        pytest.skip("no measured series: set STRETTO_DATA to the folder of real data")
    tables = SpotTables(SpotJob(48 * 3600.0, 52 * 3600.0, 0.05 * 3600, 1 / 3))
    for path in sorted((data / "spot").glob("*.csv*")):
        for series in read_availability(path):
            starts = range(0, len(series.available) - 312, 60)
            costs = {}
            for rule in RULES:
                found = run_spot(tables, series.available, series.step_s, rule=rule, starts=starts)
                assert found.end_s.max() <= tables.job.deadline_s + 1e-3
                costs[rule] = found.cost_s.mean()
            assert costs["certified"] < min(costs["greedy"], costs["uniform-progress"]), series.name

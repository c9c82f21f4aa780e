"""Forecasts: against a slow twin, exact where estimates are, calibrated, and at home without any column."""

from __future__ import annotations

import time

import numpy as np
import pytest

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays, Trace
from stretto.queues.forecasts.kernels.online import (
    NUM_LEVELS,
    NUM_QUANTILES,
    QUANTILES,
    ForecastState,
    forecast_all,
    foresee,
    remember,
)
from stretto.queues.forecasts.parameters import FORECAST_PARAMETERS as P
from stretto.queues.forecasts.state import new_forecasts


def make_trace(num_jobs: int, seed: int, *, spread: float = 1.0) -> Trace:
    """Draw users who repeat their jobs; each kind of job has run times of its own around its share of the estimate."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, 6, num_jobs)
    kind = rng.integers(0, 3, num_jobs)
    estimate = np.array([600.0, 3600.0, 36000.0])[kind]
    share = 0.05 + 0.9 * ((7 * user + 3 * kind) % 10) / 10.0
    run = np.clip(estimate * share * np.exp(spread * rng.normal(size=num_jobs)), 1.0, estimate)
    submit = np.cumsum(rng.exponential(300.0, num_jobs))
    return Trace.of(submit - submit[0], run, 1 + kind, estimate, user=user.astype(np.int32))


def slow_quantiles(past: list[list[float]], shift: Floats, square: float, log_limit: float) -> list[float]:
    """Return the forecast from the log ratios of each group of a job, the latest last."""
    weighted: list[tuple[float, float]] = []
    left = 1.0
    for k, ratios in enumerate(past):
        recent = ratios[::-1][: P.ring_jobs]
        if not recent:
            continue
        weights = [P.fade**back for back in range(len(recent))]
        share = left if k == NUM_LEVELS - 1 else left * sum(weights) / (sum(weights) + P.lean_jobs)
        weighted += [(ratio, share * weight / sum(weights)) for ratio, weight in zip(recent, weights, strict=True)]
        left -= share
    weighted.sort()
    found: list[float] = []
    for k, level in enumerate(QUANTILES):
        value, reached = np.log(level), 0.0
        for ratio, weight in weighted:
            value = ratio
            reached += weight
            if reached >= level * sum(w for _, w in weighted) - 1e-12:
                break
        certain = min(1.0, np.sqrt(square) / P.exact_spread)
        value = certain * min(0.0, max(np.log(P.least_s) - log_limit, value + shift[k]))
        found.append(max([value, *found]))
    return found


def test_forecasts_equal_their_slow_twin() -> None:
    trace = make_trace(300, 1)
    jobs = trace.arrays()
    f = new_forecasts(jobs, trace)
    groups: dict[int, list[float]] = {}
    ratio = np.float32(np.log(np.maximum(P.least_s, jobs.run)) - f.log_limit)
    for job in range(300):
        foresee(f, job, 0.0, 2)
        past = [groups.get(int(g), []) for g in f.level[job]]
        square = f.tally[2] / f.tally[1] if f.tally[1] else 1.0
        narrowest = next((k for k, ratios in enumerate(past) if ratios), NUM_LEVELS)
        slow = slow_quantiles(past, f.shift[narrowest], square, f.log_limit[job])
        assert f.quantile == pytest.approx(slow, abs=1e-5), job
        remember(f, job, jobs.run[job], 0.0)
        for g in f.level[job]:
            groups.setdefault(int(g), []).append(float(ratio[job]))


def forecasts_of(trace: Trace) -> tuple[QueueArrays, ForecastState, Floats]:
    jobs = trace.arrays()
    f = new_forecasts(jobs, trace)
    quantiles = np.zeros((trace.num_jobs, NUM_QUANTILES))
    forecast_all(f, jobs.submit, jobs.run, jobs.submit, quantiles)
    return jobs, f, quantiles


def test_quantiles_are_ordered_within_the_limit_and_cover_what_they_should() -> None:
    jobs, _, quantiles = forecasts_of(make_trace(6000, 2))
    assert np.all(np.diff(quantiles, axis=1) >= -1e-9)
    assert np.all(quantiles <= jobs.estimate[:, None] * (1 + 1e-9))
    late = slice(1000, None)
    inside = (jobs.run[late] >= quantiles[late, 0]) & (jobs.run[late] <= quantiles[late, -1] * (1 + 1e-5))
    assert 0.88 <= inside.mean() <= 0.95


def test_a_median_forecast_beats_the_estimate_by_far() -> None:
    jobs, _, quantiles = forecasts_of(make_trace(3000, 3, spread=0.3))
    error = np.abs(np.log(quantiles[500:, 2] / np.maximum(P.least_s, jobs.run[500:])))
    assert np.median(error) < 0.35 * np.median(np.log(jobs.estimate[500:] / np.maximum(P.least_s, jobs.run[500:])))


def test_exact_estimates_are_believed() -> None:
    trace = make_trace(400, 4)
    exact = Trace.of(trace.submit_s, trace.run_s, trace.num_procs, trace.run_s, user=trace.user)
    jobs, _, quantiles = forecasts_of(exact)
    after = int(np.searchsorted(jobs.submit, jobs.submit[0] + jobs.run[0])) + 1
    assert np.allclose(quantiles[after:], np.maximum(P.least_s, jobs.run[after:, None]))


def test_columns_may_be_absent_or_unknown() -> None:
    trace = make_trace(100, 5)
    bare = Trace.of(trace.submit_s, trace.run_s, trace.num_procs, trace.estimate_s)
    unknown = np.full(100, -1, np.int32)
    odd = Trace.of(
        trace.submit_s, trace.run_s, trace.num_procs, trace.estimate_s, user=unknown, queue=unknown, account=unknown
    )
    for one in (bare, odd):
        assert np.all(np.isfinite(forecasts_of(one)[2]))


def test_a_hundred_thousand_forecasts_take_two_seconds() -> None:
    trace = make_trace(20_000, 6)
    forecasts_of(trace.window(0, 50))
    begin = time.process_time()
    forecasts_of(trace)
    assert time.process_time() - begin < 0.4

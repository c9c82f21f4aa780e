"""The Lublin–Feitelson model against its published formulas and a log made by its authors' program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import gamma, ks_2samp

from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.files.traces import load_trace
from stretto.queues.workloads.lublin import ALL_JOBS, BATCH, INTERACTIVE, cycle_weights, lublin


def offered(trace: Trace) -> float:
    assert trace.max_procs is not None
    return float(trace.run_s @ trace.num_procs) / (trace.max_procs * float(np.ptp(trace.submit_s)))


def test_same_seed_same_trace() -> None:
    first, second, other = lublin(500, seed=3), lublin(500, seed=3), lublin(500, seed=4)
    np.testing.assert_array_equal(first.run_s, second.run_s)
    np.testing.assert_array_equal(first.submit_s, second.submit_s)
    assert not np.array_equal(first.run_s, other.run_s)


def test_like_the_authors_program(data_dir: Path) -> None:
    """The published file has one kind of jobs on 256 processors."""
    theirs = load_trace(data_dir / "swf" / "lublin_256.swf.gz")
    ours = lublin(20_000, seed=5)
    for left, right in (
        (theirs.run_s, ours.run_s),
        (theirs.num_procs, ours.num_procs),
        (np.diff(theirs.submit_s), np.diff(ours.submit_s)),
    ):
        assert ks_2samp(left, right).statistic < 0.025
    wide_theirs, wide_ours = theirs.num_procs >= 64, ours.num_procs >= 64
    assert ks_2samp(theirs.run_s[wide_theirs], ours.run_s[wide_ours]).statistic < 0.06


def test_shares_of_sizes() -> None:
    trace = lublin(40_000, seed=1)
    size = trace.num_procs
    assert (size == 1).mean() > ALL_JOBS.serial_share - 0.01
    power = (size & (size - 1)) == 0
    assert power.mean() > ALL_JOBS.serial_share + ALL_JOBS.power_of_two_share - 0.01
    assert size.max() <= 256
    assert lublin(2000, seed=1, num_procs=100).num_procs.max() <= 100


def test_run_times_are_hyper_gamma_given_the_size() -> None:
    trace = lublin(60_000, seed=2)
    serial = np.log(trace.run_s[trace.num_procs == 1])
    share = ALL_JOBS.share_slope + ALL_JOBS.share_at_zero
    points = np.array([3.0, 5.0, 7.0, 9.0, 10.0])
    short = gamma(ALL_JOBS.short[0], scale=ALL_JOBS.short[1])
    long = gamma(ALL_JOBS.long[0], scale=ALL_JOBS.long[1])
    whole = share * short.cdf(12.0) + (1 - share) * long.cdf(12.0)
    expected = (share * short.cdf(points) + (1 - share) * long.cdf(points)) / whole
    found = [(serial <= point).mean() for point in points]
    np.testing.assert_allclose(found, expected, atol=0.02)


def test_days_have_the_published_cycle() -> None:
    weights = cycle_weights(ALL_JOBS)
    assert weights.mean() == pytest.approx(1.0)
    assert 24 <= int(np.argmax(weights)) <= 32  # early afternoon
    trace = lublin(60_000, seed=3)
    found = np.bincount(((trace.submit_s // 1800) % 48).astype(int), minlength=48)
    assert np.corrcoef(found, weights)[0, 1] > 0.97


@pytest.mark.parametrize("load", [0.4, 0.9, 1.3])
@pytest.mark.parametrize("classes", [(ALL_JOBS,), (INTERACTIVE, BATCH)])
def test_load_is_reached_with_whole_days(load: float, classes: tuple[object, ...]) -> None:
    trace = lublin(5000, seed=4, load=load, classes=classes)  # type: ignore[arg-type]
    assert offered(trace) == pytest.approx(load, rel=0.01)
    hours = np.bincount(((trace.submit_s // 3600) % 24).astype(int), minlength=24)
    assert hours[13:18].sum() > 2 * hours[2:7].sum()


def test_two_kinds_arrive_on_their_own() -> None:
    trace = lublin(5000, seed=6, classes=(INTERACTIVE, BATCH))
    assert trace.queue is not None
    share = float((trace.queue == 0).mean())
    assert 0.1 < share < 0.9
    assert trace.num_procs[trace.queue == 0].max() <= 45


@pytest.mark.parametrize(
    "arguments", [{"num_jobs": 0}, {"num_procs": 1}, {"load": 0.0}, {"load": float("nan")}, {"classes": ()}]
)
def test_wrong_arguments(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        lublin(**{"num_jobs": 10, "seed": 1, **arguments})  # type: ignore[arg-type]


def test_one_job_is_a_trace() -> None:
    assert lublin(1, seed=1, load=0.5).num_jobs == 1

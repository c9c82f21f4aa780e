"""Samples are like their source: sizes, run times, load, hours of the day; and they are new."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ks_2samp

from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.files.traces import load_trace
from stretto.queues.workloads.fitted_trace import FittedTrace, fit_trace, fitted
from stretto.queues.workloads.lublin import lublin


def offered(trace: Trace, num_procs: int) -> float:
    return float(trace.run_s @ trace.num_procs) / (num_procs * float(np.ptp(trace.submit_s)))


def hours(trace: Trace) -> np.ndarray:
    return np.bincount(((trace.submit_s // 3600) % 24).astype(int), minlength=24)


@pytest.fixture(scope="module", params=["SDSC-SP2-1998-4.2-cln", "HPC2N-2002-2.2-cln"])
def recorded(request: pytest.FixtureRequest, data_dir: Path) -> tuple[Trace, FittedTrace]:
    trace = load_trace(data_dir / "swf" / f"{request.param}.swf.gz")
    return trace.take(np.flatnonzero(trace.run_s > 0)), fit_trace(trace)


def test_marginals_load_and_cycle_are_kept(recorded: tuple[Trace, FittedTrace]) -> None:
    trace, model = recorded
    sample = model.sample(trace.num_jobs, seed=1)
    assert ks_2samp(trace.run_s, sample.run_s).statistic < 0.05
    assert ks_2samp(trace.num_procs, sample.num_procs).statistic < 0.02
    assert ks_2samp(trace.estimate_s[trace.estimate_s > 0], sample.estimate_s[sample.estimate_s > 0]).statistic < 0.03
    assert offered(sample, model.num_procs) == pytest.approx(model.load, rel=0.1)
    assert np.corrcoef(hours(trace), hours(sample))[0, 1] > 0.9
    assert trace.user is not None
    assert sample.user is not None
    per_user = [np.bincount(user, minlength=int(trace.user.max()) + 1) for user in (trace.user, sample.user)]
    assert np.corrcoef(*per_user)[0, 1] > 0.99


def test_smaller_samples_at_another_load(recorded: tuple[Trace, FittedTrace]) -> None:
    trace, model = recorded
    sample = model.sample(10_000, seed=2, load_factor=1.4)
    assert sample.num_jobs == 10_000
    assert offered(sample, model.num_procs) == pytest.approx(1.4 * model.load, rel=0.1)
    assert ks_2samp(trace.run_s, sample.run_s).statistic < 0.1


def test_samples_are_new_and_repeatable(recorded: tuple[Trace, FittedTrace]) -> None:
    trace, model = recorded
    first, again, other = model.sample(5000, 7), model.sample(5000, 7), model.sample(5000, 8)
    np.testing.assert_array_equal(first.submit_s, again.submit_s)
    np.testing.assert_array_equal(first.run_s, again.run_s)
    assert not np.array_equal(first.run_s, other.run_s)
    old = set(zip(trace.num_procs.tolist(), trace.run_s.tolist(), trace.estimate_s.tolist()))
    long = first.take(np.flatnonzero(first.run_s > 3600))
    repeated = [job in old for job in zip(long.num_procs.tolist(), long.run_s.tolist(), long.estimate_s.tolist())]
    assert np.mean(repeated) < 0.5


def test_jobs_keep_their_estimates(recorded: tuple[Trace, FittedTrace]) -> None:
    trace, model = recorded
    sample = model.sample(trace.num_jobs, 3)
    within = [float(np.mean(part.run_s <= part.estimate_s)) for part in (trace, sample)]
    assert abs(within[0] - within[1]) < 0.02


def test_more_jobs_than_were_recorded() -> None:
    source = lublin(300, seed=1)
    sample = fitted(source, 1000, seed=2)
    assert sample.num_jobs == 1000
    assert set(sample.num_procs.tolist()) <= set(source.num_procs.tolist())
    assert offered(sample, 256) == pytest.approx(offered(source, 256), rel=0.1)


def test_one_sample_job() -> None:
    assert fit_trace(lublin(50, seed=1)).sample(1, 1).num_jobs == 1


def test_nothing_to_learn_from() -> None:
    with pytest.raises(InvalidInput, match="two jobs"):
        fit_trace(Trace.of([5, 5], [1, 1], [1, 1]))
    with pytest.raises(InvalidInput, match="two jobs"):
        fit_trace(Trace.of([0, 5], [0, 1], [1, 1]))
    with pytest.raises(InvalidInput, match="load_factor"):
        fit_trace(lublin(50, seed=1)).sample(10, 1, load_factor=0)


def test_the_size_of_the_machine_is_not_guessed() -> None:
    source = Trace.of([0, 500, 900], [60, 60, 60], [1, 4, 2])
    with pytest.raises(InvalidInput, match=r"does not say on how many processors it ran .*num_procs=N"):
        fit_trace(source)
    assert fitted(source, 5, seed=1, num_procs=16).max_procs == 16

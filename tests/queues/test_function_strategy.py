"""Strategies that are Python functions or objects: the same starts as a kernel where there is one, and errors."""

from __future__ import annotations

import numpy as np
import pytest

from stretto.core.csr import Floats
from stretto.core.pool import Pool
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.replay import replay
from stretto.queues.strategies import SAF, Submitted

PROCS = 8


def crowded(num_jobs: int = 120) -> Trace:
    rng = np.random.default_rng(3)
    run = rng.integers(1, 60, num_jobs)
    submit = np.cumsum(rng.integers(0, 9, num_jobs))
    return Trace.of(submit, run, rng.integers(1, PROCS, num_jobs), run + rng.integers(0, 40, num_jobs))


def smallest_area(jobs: Submitted) -> Floats:
    return jobs.estimate_s * jobs.num_procs


def wfp3(jobs: Submitted, wait_s: Floats) -> Floats:
    ratio = wait_s / jobs.estimate_s
    return -(ratio * ratio * ratio * jobs.num_procs)


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
@pytest.mark.parametrize(("function", "name"), [(smallest_area, "saf"), (wfp3, "wfp3")])
def test_a_function_starts_what_the_kernel_of_the_same_formula_starts(function, name: str, backfill: str) -> None:
    found = replay(crowded(), PROCS, strategy=function, backfill=backfill)
    np.testing.assert_array_equal(found.start_s, replay(crowded(), PROCS, strategy=name, backfill=backfill).start_s)
    assert found.spec["strategy"] == function.__name__


def test_functions_work_in_pools_too() -> None:
    pools = (Pool("own", 4), Pool("cloud", 4, price_usd_per_hour=1.0, min_nodes=0, provision_s=5.0))
    for function in (smallest_area, lambda jobs, wait_s: smallest_area(jobs)):
        found = replay(crowded(40), pools, strategy=function)
        np.testing.assert_array_equal(found.start_s, replay(crowded(40), pools, strategy="saf").start_s)


def test_objects_are_strategies_too() -> None:
    class Widest:
        def key(self, jobs: Submitted) -> Floats:
            return -jobs.num_procs.astype(np.float64)

    trace = crowded()
    saf = replay(trace, PROCS, strategy=SAF)
    np.testing.assert_array_equal(saf.start_s, replay(trace, PROCS, strategy="saf").start_s)
    assert saf.spec["strategy"] == "saf"
    widest = replay(trace, PROCS, strategy=Widest())
    np.testing.assert_array_equal(widest.start_s, replay(trace, PROCS, strategy="largest").start_s)
    assert widest.spec["strategy"] == "Widest"


@pytest.mark.parametrize("key", [[1.0], [[1.0]], [np.nan] * 8])
def test_wrong_keys_are_told(key: list[float]) -> None:
    trace = Trace.of([0] * 8, [5] * 8, [PROCS] * 8)
    for function in (lambda jobs: key, lambda jobs, wait_s: key):
        with pytest.raises(InvalidInput, match=r"<lambda>.*one per job"):
            replay(trace, PROCS, strategy=function)


def test_what_is_no_strategy_is_told() -> None:
    with pytest.raises(InvalidInput, match="a function or an object with a key"):
        replay(crowded(5), PROCS, strategy=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="takes 3 parameters"):
        replay(crowded(5), PROCS, strategy=lambda jobs, wait_s, more: wait_s)  # type: ignore[arg-type]

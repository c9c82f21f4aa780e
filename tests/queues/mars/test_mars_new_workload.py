"""A replaced workload is noticed; a bad day or a new user is not one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.core.trace import Trace
from stretto.queues.mars.evidence import is_new_workload
from stretto.queues.mars.parameters import MARS_PARAMETERS as P


def workload(n: int, seed: int, *, first_user: int, length_s: float, width: int) -> Trace:
    rng = np.random.default_rng(seed)
    estimate = np.round(length_s * np.exp(rng.normal(0, 0.5, n))) + 1
    user = (first_user + rng.integers(0, 20, n)).astype(np.int32)
    procs = rng.integers(1, width + 1, n)
    return Trace.of(np.arange(n, dtype=float), 0.5 * estimate, procs, estimate, user=user)


def joined(one: Trace, two: Trace) -> Trace:
    def both(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(one, name), getattr(two, name)])

    submit = np.r_[one.submit_s, two.submit_s + one.num_jobs]
    return Trace.of(submit, both("run_s"), both("num_procs"), both("estimate_s"), user=both("user"))


def seen_at(trace: Trace) -> list[int]:
    jobs = trace.arrays()
    return [k for k in range(50, trace.num_jobs, 50) if is_new_workload(jobs, k)]


def test_other_people_with_other_jobs_are_a_new_workload() -> None:
    old = workload(4000, 1, first_user=0, length_s=100.0, width=4)
    new = workload(3000, 2, first_user=100, length_s=20_000.0, width=64)
    found = seen_at(joined(old, new))
    assert found, "the change must be noticed"
    assert min(found) == 4000 + P.latest_jobs, "as soon as the latest jobs are all new"
    assert max(found) <= 4000 + P.latest_jobs + P.between_jobs + P.before_jobs


def test_one_sign_alone_is_not_enough() -> None:
    old = workload(4000, 1, first_user=0, length_s=100.0, width=4)
    assert not seen_at(joined(old, workload(3000, 2, first_user=100, length_s=100.0, width=4))), "only the people"
    assert not seen_at(joined(old, workload(3000, 2, first_user=0, length_s=20_000.0, width=64))), "only the jobs"


def test_too_little_says_nothing() -> None:
    jobs = workload(P.latest_jobs + P.between_jobs + P.before_jobs, 1, first_user=0, length_s=9.0, width=2).arrays()
    assert not is_new_workload(jobs, P.latest_jobs)

"""Small queues on which times often coincide, and the program that says what should happen to them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays, Trace
from stretto.queues.kernels.keys import FIRST_DYNAMIC, dynamic_key, static_key
from stretto.queues.promises.queue import BY_LENGTH, GIVEN, NO_RESERVATION, WEIGHTED, Preference
from stretto.queues.promises.reference import PromiseReference


class Case(NamedTuple):
    """A queue, its machine, and what is promised."""

    jobs: QueueArrays
    num_procs: int
    slack_s: Floats
    key: Floats
    length: Floats


def make_case(seed: int, num_jobs: int = 24, *, outlive: bool = False) -> Case:
    """Draw a busy queue; with ``outlive`` some jobs run longer than their estimate."""
    rng = np.random.default_rng(seed)
    num_procs = int(rng.integers(1, 9))
    submit = np.cumsum(rng.choice([0, 0, 1, 3, 10], num_jobs)).astype(float)
    run = rng.integers(1, 40, num_jobs).astype(float)
    factor = rng.choice([1.0, 1.0, 1.5, 3.0, 10.0] + ([0.3, 0.7] if outlive else []), num_jobs)
    estimate = run * factor if seed % 2 else np.ceil(run * factor)
    procs = rng.integers(1, num_procs + 1, num_jobs)
    user = rng.integers(0, 3, num_jobs)
    trace = Trace.of(submit - submit[0], run, procs, estimate, user=user.astype(np.int32))
    kinds = ([0.0], [np.inf], [20.0], [0.0, 5.0, 50.0], [0.0, 30.0, np.inf])
    slack = rng.choice(kinds[seed % len(kinds)], num_jobs) + rng.choice([0, 1, 2]) * estimate
    if seed % 3 == 0:
        slack = np.stack([slack, rng.choice([0.0, 0.5, 1.0, 3.0], num_jobs)], axis=-1)
    key = rng.integers(0, 6, num_jobs).astype(float)
    return Case(trace.arrays(), num_procs, slack, key, estimate * rng.choice([0.1, 0.5, 1.0], num_jobs))


def expected_of(case: Case, order: Preference) -> PromiseReference:
    """Replay a case slowly."""
    found = reference_of(case, order)
    found.run()
    return found


def reference_of(case: Case, order: Preference) -> PromiseReference:
    """Return the slow program for a given key, a code of ``keys``, and lengths where the order wants them."""
    q = case.jobs

    def key(job: int, now: float) -> float:
        length = float(case.length[job] if order.by_length else q.estimate[job])
        if order.code == GIVEN:
            return float(case.key[job])
        if order.code == WEIGHTED:
            wait = now - float(q.submit[job])
            return float(
                np.log(max(10.0, length))
                + order.procs_power * np.log(q.procs[job])
                - order.wait_power * np.log(1 + wait)
            )
        if order.code >= FIRST_DYNAMIC:
            return float(dynamic_key(order.code, now, q.submit[job], length, q.procs[job]))
        return float(static_key(order.code, job, q.submit[job], length, q.procs[job], q.deadline[job]))

    return PromiseReference(
        q,
        case.num_procs,
        case.slack_s,
        key,
        reserves=order.reservation != NO_RESERVATION,
        length=case.length if order.reservation == BY_LENGTH else None,
        max_tests=order.max_tests,
    )

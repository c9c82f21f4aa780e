"""Logs whose past is known: generated jobs, with the waits that planted conditions gave them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stretto.core.trace import Trace
from stretto.queues.kernels.keys import FCFS
from stretto.queues.recorded.kernels.conditions import DONE, ConditionArrays, PolicyCode
from stretto.queues.recorded.kernels.limited import run_limited
from stretto.queues.workloads.lublin import lublin

PROCS = 64
DAY_S = 86400.0


def jobs(num_jobs: int = 3000, load: float = 0.7, seed: int = 1) -> Trace:
    """Return generated jobs of eight users that fit the machine."""
    trace = lublin(num_jobs=num_jobs, num_procs=PROCS, load=load, seed=seed).fitting(PROCS)[0]
    user = np.random.default_rng(seed).integers(0, 8, trace.num_jobs).astype(np.int32)
    return replace(trace, user=user, max_procs=PROCS)


def conditions(trace: Trace) -> ConditionArrays:
    """Return a machine that never changes, without limits."""
    whole = np.array([PROCS], np.int64)
    return ConditionArrays(np.zeros(1), whole, whole)


def log_under(trace: Trace, planted: ConditionArrays) -> Trace:
    """Return the jobs with the waits that FCFS with EASY backfilling gives them under planted conditions."""
    start = np.empty(trace.num_jobs)
    assert run_limited(trace.arrays(), planted, PolicyCode(FCFS, True), start) == DONE
    return replace(trace, wait_s=start - trace.submit_s)

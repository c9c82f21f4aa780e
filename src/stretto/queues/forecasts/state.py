"""Make the state of a forecaster from a trace: which jobs are like which."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Ints
from stretto.core.trace import QueueArrays, Trace
from stretto.queues.forecasts.kernels.online import (
    LEAST_S,
    NUM_LEVELS,
    NUM_QUANTILES,
    RING,
    ForecastState,
)


def new_forecasts(jobs: QueueArrays, trace: Trace | None = None, least_s: float = LEAST_S) -> ForecastState:
    """Return a forecaster that has seen nothing.

    Parameters
    ----------
    trace
        The same jobs with what else is known of them: queue, partition, account; columns that are absent are left out.
    least_s
        Run times and estimates below this count as this.
    """
    n = len(jobs.submit)
    level, num_groups = _levels(jobs, trace)
    value = np.zeros(NUM_LEVELS * RING)
    return ForecastState(
        user=jobs.user.astype(np.int64),
        level=level,
        log_limit=np.log(np.maximum(least_s, jobs.estimate)),
        least=np.full(1, least_s),
        ring=np.zeros((num_groups, RING), np.float32),
        ended=np.zeros(num_groups, np.int64),
        learned=np.zeros(int(jobs.user.max()) + 1, np.int64),
        told=np.full(n, -1, np.int64),
        said=np.zeros((n, NUM_QUANTILES), np.float32),
        narrowest=np.zeros(n, np.int64),
        shift=np.zeros((NUM_LEVELS + 1, NUM_QUANTILES)),
        tally=np.zeros(3),
        value=value,
        weight=value.copy(),
        quantile=np.zeros(NUM_QUANTILES),
    )


def nothing_foreseen() -> ForecastState:
    """Return what replays are given that forecast nothing."""
    one, zero = np.ones(1), np.zeros(1, np.int32)
    jobs = QueueArrays(one, one, one, zero, zero, one, zero, one, zero, zero, zero)
    return new_forecasts(jobs)


def _levels(jobs: QueueArrays, trace: Trace | None) -> tuple[NDArray[np.int64], int]:
    """Return the groups of each job, the narrowest first, and how many groups there are."""
    user, limit = _codes(jobs.user), _codes(jobs.estimate)
    kind = np.zeros(len(user), np.int64)
    for name in ("queue", "partition", "account", "qos", "group"):
        column: Ints | None = None if trace is None else getattr(trace, name)
        if column is not None:
            kind = _pairs(kind, _codes(column))
    octave = _codes(np.floor(np.log2(np.maximum(LEAST_S, jobs.estimate))))
    mine = _pairs(user, kind)
    levels = (
        _pairs(_pairs(mine, limit), _codes(jobs.procs)),
        _pairs(mine, limit),
        _pairs(user, octave),
        user,
        np.zeros(len(user), np.int64),
    )
    level = np.empty((len(user), NUM_LEVELS), np.int64)
    first = 0
    for k, codes in enumerate(levels):
        level[:, k] = first + codes
        first += int(codes.max()) + 1
    return level, first


def _codes(column: NDArray[np.generic]) -> NDArray[np.int64]:
    """Return equal numbers for equal values."""
    codes: NDArray[np.int64] = np.unique(column, return_inverse=True)[1].astype(np.int64)
    return codes


def _pairs(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return equal numbers for equal pairs."""
    return _codes(one * (int(other.max()) + 1) + other)

"""What plain machines and pools tell of a job's wait: processors, free and held."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stretto.core.csr import Floats
from stretto.core.pool_fit import pool_widths
from stretto.core.units import format_count
from stretto.queues.explain.order import Rows
from stretto.queues.explain.stretches import Cause
from stretto.queues.explain.wait import Lack
from stretto.queues.result import QueueResult
from stretto.queues.steps import Changes, changes

PROCESSORS = "processors"


class ProcessorView:
    """One machine of plain processors, or pools of them.

    Parameters
    ----------
    expected_s
        How long the scheduler expects each job to run, where that decides about reservations; None = not known.
    """

    def __init__(self, result: QueueResult, index: int, expected_s: Floats | None) -> None:
        self._result, self._index = result, index
        self._width = pool_widths(result.trace, result.pools)
        self._taken = self._width[np.arange(len(result.pool)), result.pool].astype(np.float64)
        self._used = [self._use_of(k) for k in range(len(result.pools))]
        self._expected = expected_s if len(result.pools) == 1 and not result.pools[0].is_elastic else None
        begin, end = float(result.ready_s[index]), float(result.start_s[index])
        self._around = np.flatnonzero((result.start_s < end) & (result.end_s > begin))

    def _use_of(self, pool: int) -> Changes:
        here = (self._result.pool == pool) & (self._result.end_s > self._result.start_s)
        if not np.any(here):
            return Changes(np.zeros(1), np.zeros(1))
        return changes(self._result.start_s[here], self._result.end_s[here], self._taken[here])

    @property
    def needs(self) -> str:
        return format_count(int(self._result.trace.num_procs[self._index]), "processor")

    @property
    def rivals(self) -> Rows:
        return np.arange(self._result.trace.num_jobs)

    @property
    def tier(self) -> Floats:
        return np.zeros(self._result.trace.num_jobs)

    def moments(self, begin_s: float, end_s: float) -> Sequence[float]:
        return ()

    def _free(self, pool: int, now: float) -> int:
        curve = self._used[pool]
        at = int(np.searchsorted(curve.time_s, now, side="right")) - 1
        return self._result.pools[pool].num_procs - (round(float(curve.value[at])) if at >= 0 else 0)

    def lack(self, now: float) -> Lack | None:
        pools = self._result.pools
        able = [k for k in range(len(pools)) if self._width[self._index, k] >= 0]
        room = {k: self._free(k, now) for k in able}
        fits = [k for k in able if self._width[self._index, k] <= room[k]]
        if not fits:
            # The pool that comes nearest stands for all.
            near = min(able, key=lambda k: (int(self._width[self._index, k]) - room[k], k))
            return Lack(Cause.RESOURCE, (PROCESSORS,), int(self._width[self._index, near]), max(0, room[near]))
        if all(pools[k].is_elastic or pools[k].spot is not None for k in fits):
            return Lack(Cause.POOL, names=tuple(pools[k].name for k in fits))
        return None

    def held(self, begin_s: float, end_s: float, resources: tuple[str, ...]) -> tuple[Rows, Floats]:
        start, end = self._result.start_s[self._around], self._result.end_s[self._around]
        able = self._width[self._index, self._result.pool[self._around]] >= 0
        seconds = np.where(able, np.minimum(end, end_s) - np.maximum(start, begin_s), 0.0)
        some = seconds > 0
        return self._around[some], seconds[some] * self._taken[self._around[some]]

    def reserved(self, head: int, now: float) -> float | None:
        """Return when enough processors are expected to be free for the head, by the limits of running jobs."""
        if self._expected is None:
            return None
        result = self._result
        running = np.flatnonzero((result.start_s <= now) & (result.end_s > now))
        limit = np.maximum(result.start_s[running] + self._expected[running], now)
        order = np.argsort(limit, kind="stable")
        free = self._free(0, now) + np.cumsum(self._taken[running[order]])
        enough = np.flatnonzero(free >= self._taken[head])
        return float(limit[order[enough[0]]]) if len(enough) else None

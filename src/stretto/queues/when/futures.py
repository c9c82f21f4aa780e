"""Play futures of a known queue at moments in order of time."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.kernels.rng import seeded
from stretto.queues.forecasts.state import new_forecasts
from stretto.queues.when.kernels.future import new_stage
from stretto.queues.when.kernels.moment import MAX_ARRIVALS, fill_moment, new_moment
from stretto.queues.when.kernels.sweep import ACTIVE, ARRIVED, go_to, play_futures
from stretto.queues.when.known import KnownQueue
from stretto.queues.when.learner import Outlook
from stretto.queues.when.parameters import WHEN_PARAMETERS

Rows = NDArray[np.int64]
#: Shorter run times count as this; futures of many jobs that end at once must not last longer.
_LEAST_RUN_S = 1.0


class Futures(Protocol):
    """Who can say what may become of a queue."""

    def outlooks(self, now_s: float, rows: Rows) -> list[Outlook]:
        """Return what is known of waiting jobs at a moment, no earlier than the last one."""
        ...

    def due_s(self, row: int) -> float | None:
        """Return the latest start that a job was promised by the last moment; None where nothing is."""
        ...


class PlainFutures:
    """Futures of an order whose keys do not change, with EASY or without backfilling: the fast loop."""

    def __init__(self, queue: KnownQueue, seed: int = 0, num_futures: int = WHEN_PARAMETERS.num_futures) -> None:
        self.queue, self.num_futures = queue, num_futures
        self.known = queue.known()
        self.forecasts = new_forecasts(queue.jobs, queue.trace, _LEAST_RUN_S)
        ended = np.flatnonzero(np.isfinite(queue.end_s))
        self._by_end = ended[np.argsort(queue.end_s[ended], kind="stable")]
        self._place = np.zeros(3, np.int64)
        self._active = np.zeros(queue.num_jobs, np.int64)
        self.random = seeded(seed)
        self._room(256)

    def _room(self, num_active: int) -> None:
        self._most = num_active + MAX_ARRIVALS
        self.moment, self._stage = new_moment(self._most), new_stage(self._most)

    @property
    def num_arrived(self) -> int:
        """How many jobs had been submitted by the last moment."""
        return int(self._place[ARRIVED])

    def look(self, now_s: float, asked: int = -1) -> None:
        """Go to a moment and note who runs and who waits; ``asked`` waits even if it starts at this very moment."""
        go_to(self.known, self.forecasts, self._by_end, self._place, self._active, now_s)
        num_active = int(self._place[ACTIVE])
        if num_active + MAX_ARRIVALS > self._most:
            self._room(2 * num_active)
        fill_moment(self.known, self.forecasts, self._active[:num_active], now_s, asked, self.moment)

    def outlooks(self, now_s: float, rows: Rows) -> list[Outlook]:
        """Return what is known of waiting jobs at a moment, no earlier than the last one."""
        self.look(now_s, int(rows[0]) if len(rows) == 1 else -1)
        m = self.moment
        begin, end = int(m.num[0]), int(m.num[0] + m.num[1])
        place = begin + np.searchsorted(m.job[begin:end], rows)
        first, last = int(place.min()), int(place.max()) + 1
        wait = np.empty((1 + self.num_futures, last - first))
        rules, arrived = self.queue.rules, self.num_arrived
        play_futures(
            self.known,
            self.forecasts,
            self.queue.num_procs,
            rules.code,
            rules.easy,
            arrived,
            now_s,
            m,
            self._stage,
            first,
            last,
            self.random,
            wait,
        )
        share = float(m.procs[begin:end].sum()) / self.queue.num_procs
        return outlooks_of(self.queue, now_s, rows, wait[:, place - first], share)

    def due_s(self, row: int) -> float | None:
        """Return the latest start that a job was promised; None where nothing is."""
        due = None if self.queue.due_s is None else float(self.queue.due_s[row])
        return due if due is not None and np.isfinite(due) else None


def outlooks_of(queue: KnownQueue, now_s: float, rows: Rows, wait_s: Floats, waiting_share: float) -> list[Outlook]:
    """Return outlooks from waits by estimates (row 0) and of futures; a column per job."""
    return [
        Outlook(
            moment_s=now_s,
            by_estimates_s=float(wait_s[0, k]),
            futures_s=wait_s[1:, k],
            procs_share=float(queue.jobs.procs[row]) / queue.num_procs,
            estimate_s=max(1.0, float(queue.jobs.estimate[row])),
            waiting_share=waiting_share,
        )
        for k, row in enumerate(rows)
    ]


def futures_of(queue: KnownQueue, seed: int = 0, num_futures: int = WHEN_PARAMETERS.num_futures) -> Futures:
    """Return what plays the futures of a queue, by its rules."""
    if queue.site is not None or queue.rules.needs_nodes:
        from stretto.queues.when.on_site import SiteFutures

        return SiteFutures(queue, seed, num_futures)
    if queue.rules.is_plain:
        return PlainFutures(queue, seed, num_futures)
    from stretto.queues.when.promised import PromisedFutures

    return PromisedFutures(queue, seed, num_futures)

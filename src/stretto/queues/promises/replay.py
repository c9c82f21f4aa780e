"""Replay jobs with promises in one order, and tell what was promised and kept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.queues.forecasts.kernels.online import ForecastState
from stretto.queues.promises.kernels.state import PromiseState
from stretto.queues.promises.queue import Preference, PromiseQueue


@dataclass(frozen=True)
class PromiseFigures:
    """What became of promises.

    Attributes
    ----------
    given, broken
        Jobs that were promised a latest start, and those that started after it.
    margin_p01_s
        How long before the promised time jobs started: all but one in a hundred at least so long; NaN without any.
    """

    given: int
    broken: int
    margin_p01_s: float

    @staticmethod
    def of(start_s: Floats, due_s: Floats) -> PromiseFigures:
        """Count promises; jobs that were promised nothing are due at infinity."""
        return PromiseFigures.of_margins(due_s - start_s)

    @staticmethod
    def of_margins(margin_s: Floats) -> PromiseFigures:
        """Count promises by how long before them jobs started; inf = nothing was promised."""
        margin = margin_s[np.isfinite(margin_s)]
        lowest = float(np.percentile(margin, 1)) if len(margin) else float("nan")
        return PromiseFigures(len(margin), int(np.count_nonzero(margin < 0)), lowest)

    def to_json(self) -> dict[str, float]:
        """Return the figures by the names that programs read."""
        return {
            "promises_given": self.given,
            "promises_broken": self.broken,
            "promise_margin_p01_s": self.margin_p01_s,
        }


@dataclass(frozen=True, eq=False)
class PromiseReplay:
    """A replay that has come to its end.

    Attributes
    ----------
    state
        What it left behind; ``num_tests``, ``num_refused``, ``num_forced`` and ``num_raised`` of its moment count
        tested plans, refused starts, starts without a proposal, and estimates that were outlived.
    """

    state: PromiseState

    @property
    def start_s(self) -> Floats:
        return self.state.start

    @property
    def due_s(self) -> Floats:
        return self.state.due

    @cached_property
    def figures(self) -> PromiseFigures:
        return PromiseFigures.of(self.start_s, self.due_s)


def promise_replay(
    jobs: QueueArrays,
    num_procs: int,
    order: Preference,
    slack_s: Floats | float,
    forecasts: ForecastState | None = None,
) -> PromiseReplay:
    """Replay all jobs in one order.

    Parameters
    ----------
    jobs
        All must fit the machine. A job that runs longer than its estimate can break promises; they are counted.
    slack_s
        In seconds, one for all or one per job; inf = no promise.
    """
    queue = PromiseQueue.of(jobs, num_procs, slack_s, forecasts)
    queue.advance(order)
    return PromiseReplay(queue.state)

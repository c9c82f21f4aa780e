"""A queue at a moment, as a scheduler knows it: who has ended, who runs, who waits.

Run times are known of jobs that have ended, and of no others; that is what makes a decision honest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats, Ints
from stretto.core.trace import QueueArrays
from stretto.errors import InvalidInput

#: Shortest time that any job is taken to run.
_LEAST_S = 1.0


@dataclass(frozen=True, eq=False)
class QueueView:
    """Jobs in order of submission; times in seconds since the first of them.

    Attributes
    ----------
    job_id
        The source's own numbers.
    start_s, end_s
        NaN where that has not happened yet.
    is_ready
        Whether a job that waits could start if there were room; the others wait for something else.
    """

    now_s: float
    num_procs: int
    job_id: NDArray[np.int64]  # [n]
    submit_s: Floats  # [n]
    estimate_s: Floats  # [n]
    procs: Ints  # [n]
    user: Ints  # [n]
    start_s: Floats  # [n]
    end_s: Floats  # [n]
    is_ready: NDArray[np.bool_]  # [n]

    def __post_init__(self) -> None:
        n = len(self.job_id)
        for name in ("submit_s", "estimate_s", "procs", "user", "start_s", "end_s", "is_ready"):
            if getattr(self, name).shape != (n,):
                raise InvalidInput(f"{name} has shape {getattr(self, name).shape}, expected ({n},)", field=name)
        if n and bool(np.any(np.diff(self.submit_s) < 0)):
            raise InvalidInput("jobs must stand in order of submission", field="submit_s")
        if n and not (bool(np.all(self.estimate_s > 0)) and bool(np.all(np.isfinite(self.estimate_s)))):
            raise InvalidInput("estimates must be positive and finite", field="estimate_s")

    @property
    def num_jobs(self) -> int:
        return len(self.job_id)

    @property
    def ended(self) -> NDArray[np.int64]:
        """Jobs that have run to their end, in the order in which they ended."""
        found = np.flatnonzero(~np.isnan(self.end_s) & ~np.isnan(self.start_s))
        return found[np.argsort(self.end_s[found], kind="stable")]

    @property
    def running(self) -> NDArray[np.int64]:
        return np.flatnonzero(~np.isnan(self.start_s) & np.isnan(self.end_s))

    @property
    def waiting(self) -> NDArray[np.int64]:
        """Jobs that wait for nothing but their turn, in order of submission."""
        return np.flatnonzero(np.isnan(self.start_s) & np.isnan(self.end_s) & self.is_ready)

    def latest(self, most: int) -> QueueView:
        """Return the last arrivals only."""
        if self.num_jobs <= most:
            return self
        columns = {name: column[-most:] for name, column in vars(self).items() if isinstance(column, np.ndarray)}
        return replace(self, **columns)  # type: ignore[arg-type]

    def arrays(self) -> QueueArrays:
        """Return what kernels read; the run time of a job that has not ended is its estimate."""
        n = self.num_jobs
        run = np.maximum(self.end_s - self.start_s, _LEAST_S)
        estimate = np.maximum(self.estimate_s, _LEAST_S)
        nobody = np.zeros(0, dtype=np.int32)
        return QueueArrays(
            submit=self.submit_s,
            run=np.where(np.isnan(run), estimate, run),
            estimate=estimate,
            procs=self.procs,
            user=self.user,
            deadline=np.full(n, np.inf),
            gpus=np.zeros(n, dtype=np.int32),
            memory=np.zeros(n),
            num_parents=np.zeros(n, dtype=np.int32),
            child_ptr=np.zeros(n + 1, dtype=np.int32),
            child=nobody,
        )


@dataclass(frozen=True)
class QueueDecision:
    """An order of the waiting jobs.

    Attributes
    ----------
    order
        Indices of the view, first to last.
    chosen
        Whose order it is.
    costs
        What was expected of each candidate; empty where there was nothing to choose.
    due_s
        Promised latest starts of waiting jobs, by index of the view; empty where nothing is promised.
    at_risk
        Jobs that come first because they would miss their promise otherwise.
    """

    order: tuple[int, ...]
    chosen: str
    costs: Mapping[str, float] = field(default_factory=dict)
    due_s: Mapping[int, float] = field(default_factory=dict)
    at_risk: tuple[int, ...] = ()


class QueueOrder(Protocol):
    """Somebody who orders live queues."""

    def decide(self, view: QueueView) -> QueueDecision:
        """Return the order of all jobs that wait for their turn."""
        ...


@runtime_checkable
class KeptOrder(QueueOrder, Protocol):
    """One whose decisions also depend on earlier ones: that can be put away, and taken up after a restart."""

    def state(self) -> dict[str, Any]:
        """Return what the next decision depends on beside the queue, as JSON."""
        ...

    def restore(self, state: dict[str, Any]) -> bool:
        """Go on from such a state; return False where it is somebody else's, and begin anew."""
        ...

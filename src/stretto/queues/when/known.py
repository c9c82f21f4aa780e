"""A queue whose starts are predicted: its jobs, when they started and ended as far as that is known, and its rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays, Trace
from stretto.errors import InvalidInput
from stretto.queues.kernels import codes, keys
from stretto.queues.promises.queue import GIVEN
from stretto.queues.when.kernels.moment import Known

if TYPE_CHECKING:
    from stretto.queues.when.on_site import PlacedQueue


@dataclass(frozen=True)
class FutureRules:
    """How jobs are started in the futures.

    Attributes
    ----------
    code
        The order: a code of ``queues.kernels.keys``, ``MULTIFACTOR``, or ``GIVEN`` for keys that come with the jobs.
    promises
        Whether latest starts are promised.
    rules
        Weights of ``MULTIFACTOR``, and whether jobs end at their limit.
    """

    code: int
    easy: bool = True
    promises: bool = False
    rules: codes.RuleCodes | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the fast loop can play it: keys that do not change, and no promises."""
        return not self.promises and self.code < keys.FIRST_DYNAMIC

    @property
    def needs_nodes(self) -> bool:
        """Whether only the loop over nodes plays it fast: keys that change with the wait, and no promises."""
        return not self.promises and keys.FIRST_DYNAMIC <= self.code < codes.MULTIFACTOR


@dataclass(frozen=True, eq=False)
class KnownQueue:
    """Jobs in order of submission.

    Attributes
    ----------
    trace
        The jobs with all that is known of them at submission, for the forecaster.
    jobs
        The same as arrays.
    start_s, end_s
        inf where that is not known.
    slack_s
        Of each job, where latest starts are promised.
    due_s
        The promised latest starts, where there are any; inf = none.
    given
        The keys of the jobs where the rules say so: the lowest comes first.
    site
        The same jobs on the nodes of a site; None = one machine of equal processors.
    """

    trace: Trace
    jobs: QueueArrays
    num_procs: int
    start_s: Floats  # [n]
    end_s: Floats  # [n]
    rules: FutureRules
    slack_s: Floats | None = None
    due_s: Floats | None = None
    given: Floats | None = None
    site: PlacedQueue | None = None

    def __post_init__(self) -> None:
        if int(self.jobs.procs.max(initial=0)) > self.num_procs:
            raise InvalidInput(f"a job takes more than the {self.num_procs:,} processors", field="machine")
        if bool(np.any(self.start_s < self.jobs.submit)):
            job = int(np.argmax(self.start_s < self.jobs.submit))
            raise InvalidInput(f"job {job} starts before it is submitted", field="start_s")

    @property
    def num_jobs(self) -> int:
        return len(self.start_s)

    def waiting_at(self, now_s: float) -> NDArray[np.int64]:
        """Return the jobs that wait at a moment, by submission."""
        return np.flatnonzero((self.jobs.submit <= now_s) & (self.start_s > now_s))

    def known(self) -> Known:
        """Return what the kernels read; keys that do not change are computed here."""
        jobs, code = self.jobs, self.rules.code
        key = np.arange(self.num_jobs, dtype=np.float64)
        if code == GIVEN and self.given is not None:
            key = self.given
        elif code == keys.DEADLINE:
            key = jobs.deadline
        elif keys.FCFS < code < keys.FIRST_DYNAMIC:
            for job in range(self.num_jobs):
                key[job] = keys.static_key(
                    code, job, jobs.submit[job], jobs.estimate[job], jobs.procs[job], jobs.deadline[job]
                )
        return Known(jobs.submit, self.start_s, self.end_s, jobs.estimate, jobs.procs.astype(np.int32), key)

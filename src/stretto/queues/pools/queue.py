"""A queue in pools that a caller leads from arrival to arrival, under any order and pool rule: for selectors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.errors import Infeasible
from stretto.queues.kernels.codes import STUCK, PoolArrays, RuleCodes
from stretto.queues.kernels.outcome import ReplayOutcome, new_outcome
from stretto.queues.kernels.state import ENDS, IS_INTERRUPTED, QueueState, new_state
from stretto.queues.pools.kernels.loop import advance_pools
from stretto.queues.pools.kernels.state import PoolPlan, new_pool_plan
from stretto.queues.promises.slack import parts_of_slack
from stretto.queues.setup import ReplaySetup


@dataclass(frozen=True, eq=False)
class PoolQueue:
    """A queue in pools that has come to a moment.

    Attributes
    ----------
    jobs
        All jobs; run times of jobs that have not started may be changed in place, for counterfactual replays.
    limit, draws
        As in ``ReplaySetup``.
    state, plan, out
        Everything that changes, in arrays; ``plan`` has the promises.
    name
        Of the trace, for messages.
    """

    jobs: QueueArrays
    pools: PoolArrays
    limit: Floats
    draws: Floats
    state: QueueState
    plan: PoolPlan
    out: ReplayOutcome
    roots: NDArray[np.int64]
    name: str

    @staticmethod
    def of(setup: ReplaySetup, slack_s: Floats | float = np.inf, jobs: QueueArrays | None = None) -> PoolQueue:
        """Return a queue before its first moment.

        Parameters
        ----------
        slack_s
            In seconds, one for all or one per job; inf = nothing is promised.
        jobs
            In place of those of the set-up.
        """
        own, pools = setup.jobs if jobs is None else jobs, setup.pool_arrays()
        n = len(own.submit)
        counted = np.array([pool.keeps_promises for pool in setup.pools])
        most = int(pools.pool["nodes"].max())
        return PoolQueue(
            own,
            pools,
            setup.limit,
            setup.draws,
            new_state(own, pools, setup.rules),
            new_pool_plan(n, counted, most, *parts_of_slack(slack_s, n)),
            new_outcome(n, len(setup.pools)),
            np.flatnonzero(own.num_parents == 0),
            setup.trace.name,
        )

    def copy(self, jobs: QueueArrays | None = None) -> PoolQueue:
        """Return a queue that goes its own way from here on; the jobs are shared unless others are given."""
        return replace(
            self,
            jobs=self.jobs if jobs is None else jobs,
            state=QueueState._make(array.copy() for array in self.state),
            plan=PoolPlan._make(array.copy() for array in self.plan),
            out=ReplayOutcome._make(array.copy() for array in self.out),
        )

    def advance(self, rules: RuleCodes, num_jobs: int | None = None, until_s: float = np.inf) -> int:
        """Replay until so many jobs have arrived or a time has come, by some rules; return DONE or PAUSED."""
        most = len(self.jobs.submit) + 1 if num_jobs is None else num_jobs
        status: int = advance_pools(
            *(self.jobs, self.pools, rules, self.limit, self.draws),
            *(self.state, self.out, self.plan, self.roots, most, float(until_s)),
        )
        if status == STUCK:
            job = int(np.argmax(self.out.end < 0))
            raise Infeasible(f"job {job} of {self.name!r} waits for ever: the pools that it fits stay closed")
        return status

    @property
    def now_s(self) -> float:
        return float(self.state.moment["now"][0])

    @property
    def start_s(self) -> Floats:
        """Start of the last attempt of each job, -1 = it has not started or waits again; [n]."""
        start: Floats = self.out.start.copy()
        running = self.state.running[: int(self.state.moment["num_running"][0])]
        start[running] = self.state.job["began"][running]
        return start

    def first(self, num_jobs: int) -> PoolQueue:
        """Return the queue as if only the first jobs existed; it shares everything. Jobs must not depend on others."""
        jobs, n = self.jobs, len(self.jobs.submit)
        part = {name: column[:num_jobs] for name, column in jobs._asdict().items() if len(column) == n}
        return replace(self, jobs=jobs._replace(**part), roots=self.roots[:num_jobs])

    @property
    def num_arrived(self) -> int:
        return int(self.plan.moment["num_arrived"][0])

    @property
    def waiting(self) -> NDArray[np.int32]:
        """Jobs that wait; a view."""
        return self.state.waiting[: int(self.state.moment["num_waiting"][0])]

    @property
    def usd(self) -> float:
        """What rented nodes have cost so far."""
        return float(self.plan.moment["accrued"][0])

    def correct_ends(self) -> None:
        """Let running jobs end by the present run times; an interruption that was to come before stays.

        One that a longer run would meet is not drawn.
        """
        job = self.state.running[: int(self.state.moment["num_running"][0])]
        rows = self.state.job
        speed = self.pools.pool["speed"][rows["place"][job]]
        end = np.maximum(rows["began"][job] + (self.jobs.run[job] - rows["kept"][job]) / speed, self.now_s)
        stays = (rows["ending"][job] == IS_INTERRUPTED) & (rows["stop"][job] < end)
        rows["stop"][job[~stays]] = end[~stays]
        rows["ending"][job[~stays]] = ENDS

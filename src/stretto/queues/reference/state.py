"""What the reference replay knows at a moment."""

from __future__ import annotations

import math

from stretto.queues.kernels.outcome import ReplayOutcome, new_outcome
from stretto.queues.reference.pool import PoolState
from stretto.queues.setup import ReplaySetup, base_nodes


class ReferenceState:
    """A replay in progress; each part of the reference adds what it does to it."""

    def __init__(self, setup: ReplaySetup) -> None:
        self.setup, self.rules, self.q = setup, setup.rules, setup.jobs
        n = setup.trace.num_jobs
        self.n = n
        self.out: ReplayOutcome = new_outcome(n, len(setup.pools))
        self.pools = [PoolState(pool) for pool in setup.pools]
        for state in self.pools:
            state.closed = state.is_closed(state.price(0.0))
            if not state.closed:
                state.began = [0.0] * base_nodes(state.pool)
                state.free = len(state.began) * state.per_node
        self.missing = self.q.num_parents.tolist()
        self.arrival = {j: float(self.q.submit[j]) for j in range(n) if self.missing[j] == 0}
        self.waiting: list[int] = []
        self.running: dict[int, float] = {}  # job -> when the attempt stops; in order of start
        self.place: dict[int, int] = {}
        self.began: dict[int, float] = {}
        self.expected: dict[int, float] = {}
        self.raised: dict[int, int] = {}
        self.ending: dict[int, str] = {}
        self.kept = [0.0] * n
        self.predicted = [0.0] * n
        self.promised = [math.nan] * n
        self.history: dict[int, list[tuple[float, float]]] = {}
        self.usage: dict[int, tuple[float, float]] = {}
        self.total: tuple[float, float] = (0.0, 0.0)
        self.num_done = 0
        self.now = 0.0
        self.keep: dict[int, int] = {}  # processors of pools whose nodes must not go
        self.backlog = 0.0

    def believed(self, job: int) -> float:
        return max(self.predicted[job] - self.kept[job], 0.0)

    def span(self, job: int, k: int) -> float:
        return self.believed(job) / self.pools[k].pool.speed

    def nodes(self, job: int, k: int) -> int:
        return -(-int(self.setup.width[job, k]) // self.pools[k].per_node)

    def expects(self, job: int) -> float:
        if self.rules.one_event and self.expected[job] <= self.now:
            return self.now + 1.0
        return max(self.expected[job], self.now)

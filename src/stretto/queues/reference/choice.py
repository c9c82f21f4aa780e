"""Which pool a job of the reference replay prefers."""

from __future__ import annotations

from stretto.queues.kernels import codes
from stretto.queues.reference.jobs import Jobs
from stretto.queues.reference.pool import HOUR_S


class PoolChoice(Jobs):
    """The rules of choice among pools."""

    def usd(self, job: int, k: int) -> float:
        state, width = self.pools[k], int(self.setup.width[job, k])
        nodes, seconds = float(self.nodes(job, k)), self.span(job, k)
        if self.rules.pool_rule == codes.PACK:
            if width <= state.free:
                nodes = width / state.per_node
            else:
                seconds += min(state.pool.idle_shutdown_s, HOUR_S)
        return state.price(self.now) * nodes * seconds / HOUR_S

    def score(self, job: int, k: int) -> tuple[float, float, int]:
        """Return how much a job dislikes a pool."""
        if self.rules.pool_rule == codes.FIRST_FIT:
            return (0.0, 0.0, k)
        if self.rules.pool_rule == codes.FASTEST:
            return (self.span(job, k), self.usd(job, k), k)
        return (self.usd(job, k), self.span(job, k), k)

    def can_ever(self, job: int, k: int) -> bool:
        return not self.pools[k].closed and bool(self.setup.width[job, k] >= 0)

    def usable(self, job: int, ahead: float) -> list[int]:
        """Return the open pools that the rule lets a job use, when it cannot start in pool 0 now."""
        able = [k for k in range(len(self.pools)) if self.can_ever(job, k)]
        if self.rules.pool_rule < codes.BURST or 0 not in able:
            return able
        if self.rules.pool_rule == codes.OWNED:
            return [0]
        return [k for k in able if k == 0 or self.is_worth(job, k, ahead)]

    def is_worth(self, job: int, k: int, ahead: float) -> bool:
        here = (self.backlog + ahead) / self.pools[0].pool.num_procs + self.span(job, 0)
        fits = self.setup.width[job, k] <= self.pools[k].free
        there = (0.0 if fits else self.pools[k].pool.provision_s) + self.span(job, k)
        deadline = float(self.q.deadline[job])
        if self.now + here > deadline and self.now + there <= deadline:
            return True
        gain = self.rules.wait_usd_per_hour * (here - there) / HOUR_S
        return gain > self.usd(job, k) - self.usd(job, 0)

    def prefer(self, job: int, room: dict[int, int], ahead: float) -> int | None:
        """Return the best pool in whose room a job fits."""
        width = self.setup.width[job]
        fits = [k for k in room if self.can_ever(job, k) and width[k] <= room[k]]
        if self.rules.pool_rule >= codes.BURST and 0 not in fits:
            fits = [k for k in fits if k in self.usable(job, ahead)]
        elif self.rules.pool_rule >= codes.BURST:
            return 0
        return min(fits, key=lambda k: self.score(job, k), default=None)

    def work_in_first_pool(self, job: int) -> float:
        width = int(self.setup.width[job, 0])
        return self.span(job, 0) * width if width >= 0 else 0.0

    def count_backlog(self) -> None:
        self.backlog = 0.0
        for job in self.running:
            if self.place[job] == 0:
                self.backlog += (self.expects(job) - self.now) * int(self.setup.width[job, 0])

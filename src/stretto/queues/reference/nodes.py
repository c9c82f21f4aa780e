"""How nodes of the reference replay are ordered, come up, go, and are paid."""

from __future__ import annotations

from stretto.queues.kernels import codes
from stretto.queues.reference.choice import PoolChoice
from stretto.queues.setup import base_nodes


class Nodes(PoolChoice):
    """The nodes of elastic and spot pools."""

    def order_nodes(self, queue: list[int], ahead: list[float]) -> None:
        room = {k: s.free + s.per_node * len(s.pending) for k, s in enumerate(self.pools)}
        for i, job in enumerate(queue):
            k = self.prefer(job, room, ahead[i])
            if k is None:
                could = {k: room[k] + s.headroom * s.per_node for k, s in enumerate(self.pools) if s.headroom > 0}
                k = self.prefer(job, could, ahead[i])
                if k is None:
                    may_wait = self.rules.pool_rule >= codes.BURST and self.rules.backfill != codes.NONE
                    if may_wait and self.can_ever(job, 0):
                        continue
                    break
                room[k] += self.order(k, int(self.setup.width[job, k]) - room[k])
            room[k] -= int(self.setup.width[job, k])
        able = [k for k in range(len(self.pools)) if self.can_ever(queue[0], k)]
        if able and all(self.setup.width[queue[0], k] > self.pools[k].capacity for k in able):
            grows = [k for k in able if self.pools[k].pool.is_elastic]
            k = min(grows, key=lambda k: self.score(queue[0], k), default=None)
            if k is not None:
                self.order(k, int(self.setup.width[queue[0], k]) - self.pools[k].capacity)
        for k, state in enumerate(self.pools):
            self.keep[k] = state.capacity - room[k]

    def order(self, k: int, procs: int) -> int:
        state = self.pools[k]
        count = -(-procs // state.per_node)
        state.pending += [self.now + state.pool.provision_s] * count
        return count * state.per_node

    def flip(self, k: int) -> None:
        state = self.pools[k]
        if state.next_flip() != self.now:
            return
        state.closed = not state.closed
        state.seen = sum(1 for time, _, _ in state.steps() if time <= self.now)
        if not state.closed:
            state.pending = [self.now + state.pool.provision_s] * base_nodes(state.pool)
            return
        for job in sorted(j for j in self.running if self.place[j] == k):
            self.interrupt(job)
        for begin in state.began:
            state.pay(begin, self.now)
        state.began, state.pending, state.idle, state.free = [], [], [], 0

    def come_up(self, k: int) -> None:
        state = self.pools[k]
        for _ in [time for time in state.pending if time <= self.now]:
            state.pending.pop(0)
            state.began.append(self.now)
            state.free += state.per_node

    def sync_idle(self) -> None:
        for state in self.pools:
            count = state.free // state.per_node
            state.idle = state.idle[:count] + [self.now] * (count - len(state.idle))

    def expire_idle(self, then: float) -> None:
        for k, state in enumerate(self.pools):
            if not state.pool.is_elastic:
                continue
            wanted = self.keep.get(k, 0)
            while state.idle and state.idle[0] + state.pool.idle_shutdown_s <= then:
                if len(state.began) <= base_nodes(state.pool) or state.capacity - state.per_node < wanted:
                    break
                since = state.idle.pop(0)
                state.pay(state.began.pop(0), max(since + state.pool.idle_shutdown_s, self.now))
                state.free -= state.per_node

    def close_accounts(self) -> None:
        last = self.now
        for k, state in enumerate(self.pools):
            for begin in state.began:
                state.pay(begin, last)
            self.out.node_s[k], self.out.usd[k] = state.node_s, state.usd

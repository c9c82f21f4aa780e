"""How jobs of the reference replay arrive, start and stop."""

from __future__ import annotations

import math

from stretto.queues.kernels import codes
from stretto.queues.reference.order import Order
from stretto.queues.reference.pool import HOUR_S


class Jobs(Order):
    """The life of a job: one attempt, or more where it is interrupted."""

    def arrive(self, job: int) -> None:
        self.out.ready[job] = self.arrival.pop(job)
        self.predicted[job] = self.predict(job)
        self.waiting.append(job)

    def start(self, job: int, k: int) -> None:
        state = self.pools[k]
        self.waiting.remove(job)
        state.free -= int(self.setup.width[job, k])
        left = float(self.q.run[job]) - self.kept[job]
        limit = max(float(self.setup.limit[job]) - self.kept[job], 0.0)
        self.ending[job] = "done"
        if self.rules.kill and left > limit:
            left, self.ending[job] = limit, "killed"
        end = self.now + left / state.pool.speed
        interruption = self.interruption(job, k)
        if interruption < end:
            end, self.ending[job] = interruption, "interrupted"
        self.running[job], self.place[job], self.began[job] = end, k, self.now
        self.expected[job] = self.now + self.span(job, k)
        self.raised[job] = 0

    def interruption(self, job: int, k: int) -> float:
        count = int(self.out.interruptions[job])
        if self.pools[k].pool.spot is None or not len(self.setup.draws) or count >= codes.NUM_DRAWS:
            return math.inf
        left = float(self.setup.draws[job, count])
        steps = self.pools[k].steps()
        for i, (time, _, hazard) in enumerate(steps):
            until = steps[i + 1][0] if i + 1 < len(steps) else math.inf
            begin = max(time, self.now)
            rate = hazard * self.nodes(job, k) / HOUR_S
            if until <= begin or rate == 0:
                continue
            if begin + left / rate < until:
                return begin + left / rate
            left -= (until - begin) * rate
        return math.inf

    def stop(self, job: int) -> None:
        ending = self.ending[job]
        if ending == "interrupted":
            self.interrupt(job)
            return
        self.leave(job)
        self.num_done += 1
        self.out.start[job], self.out.end[job], self.out.pool[job] = self.began[job], self.now, self.place[job]
        self.out.killed[job] = ending == "killed"
        self.remember(job)
        for child in self.q.child[self.q.child_ptr[job] : self.q.child_ptr[job + 1]].tolist():
            self.missing[child] -= 1
            if self.missing[child] == 0:
                self.arrival[child] = max(self.now, float(self.q.submit[child]))

    def interrupt(self, job: int) -> None:
        self.leave(job)
        self.out.interruptions[job] += 1
        spot = self.pools[self.place[job]].pool.spot
        assert spot is not None
        if math.isfinite(spot.checkpoint_s):
            done = math.floor((self.now - self.began[job]) / spot.checkpoint_s) * spot.checkpoint_s
            self.kept[job] += done * self.pools[self.place[job]].pool.speed
        self.waiting.append(job)

    def leave(self, job: int) -> None:
        k = self.place[job]
        width = int(self.setup.width[job, k])
        self.pools[k].free += width
        del self.running[job]
        self.charge(int(self.q.user[job]), width * (self.now - self.began[job]))

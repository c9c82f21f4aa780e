"""The order of the queue in the reference replay."""

from __future__ import annotations

import math

from stretto.queues.kernels import codes, keys
from stretto.queues.reference.estimates import ReferenceEstimates


class Order(ReferenceEstimates):
    """Keys, and the fair share that one of them needs."""

    def decayed(self, entry: tuple[float, float]) -> float:
        value, since = entry
        return value * math.exp(-math.log(2.0) * ((self.now - since) / self.rules.half_life))

    def charge(self, user: int, proc_s: float) -> None:
        self.usage[user] = (self.decayed(self.usage.get(user, (0.0, 0.0))) + proc_s, self.now)
        self.total = (self.decayed(self.total) + proc_s, self.now)

    def fair_share(self, user: int) -> float:
        total = self.decayed(self.total)
        if total <= 0:
            return 1.0
        num_users = int(self.q.user.max()) + 1
        share = self.decayed(self.usage.get(user, (0.0, 0.0))) / total
        return math.exp(-math.log(2.0) * (share * num_users))

    def key(self, job: int) -> float:
        estimate, procs, code = self.believed(job), int(self.q.procs[job]), self.rules.strategy
        wait = self.now - float(self.out.ready[job])
        at_least_1 = max(1.0, estimate)
        s = math.log10(max(1.0, float(self.q.submit[job])))
        if code == codes.MULTIFACTOR:
            return -self.priority(job, wait)
        table = {
            keys.FCFS: lambda: float(job),
            keys.SHORTEST: lambda: estimate,
            keys.LONGEST: lambda: -estimate,
            keys.SMALLEST_AREA: lambda: estimate * procs,
            keys.LARGEST_AREA: lambda: -estimate * procs,
            keys.FEWEST_PROCS: lambda: float(procs),
            keys.MOST_PROCS: lambda: -float(procs),
            keys.DEADLINE: lambda: float(self.q.deadline[job]),
            keys.F1: lambda: math.log10(at_least_1) * procs + 870.0 * s,
            keys.F2: lambda: math.sqrt(estimate) * procs + 25600.0 * s,
            keys.F3: lambda: estimate * procs + 6.86e6 * s,
            keys.F4: lambda: estimate * math.sqrt(procs) + 5.3e5 * s,
            keys.EXPANSION: lambda: -(wait + at_least_1) / at_least_1,
            keys.WFP3: lambda: -(wait / at_least_1) * (wait / at_least_1) * (wait / at_least_1) * procs,
            keys.UNICEP: lambda: -wait / (max(1e-12, math.log2(procs)) * at_least_1),
        }
        return table[code]()

    def priority(self, job: int, wait: float) -> float:
        rules = self.rules
        all_procs = sum(state.pool.num_procs for state in self.pools)
        return (
            rules.age * min(1.0, wait / rules.max_age)
            + rules.size * (int(self.q.procs[job]) / all_procs)
            + rules.fair_share * self.fair_share(int(self.q.user[job]))
        )

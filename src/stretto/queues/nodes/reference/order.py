"""The order of the queue in the reference replay on nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stretto.queues.kernels.codes import MULTIFACTOR
from stretto.queues.kernels.keys import FIRST_DYNAMIC, dynamic_key, static_key
from stretto.queues.nodes.kernels.arrays import NodeRules
from stretto.queues.nodes.kernels.priority import STEPS
from stretto.queues.nodes.reference.nodes import Components, NodeChoice, TaskPlace
from stretto.queues.nodes.setup import NodeSetup


class NodeOrder(NodeChoice):
    """Keys, and the fair share that one of them needs."""

    def __init__(self, setup: NodeSetup, rules: NodeRules) -> None:
        super().__init__(setup.site_arrays, setup.shapes)
        self.q, self.rules = setup.arrays, rules
        self.now = -math.inf
        n = len(self.q.submit)
        self.start, self.end = [math.nan] * n, [math.nan] * n
        self.ready = [math.nan] * n
        self.places: list[list[TaskPlace]] = [[] for _ in range(n)]
        #: What ended jobs have used: the member, when, and processor-seconds.
        self.past: list[tuple[int, float, float]] = []

    def components(self, job: int) -> Components:
        """Return the shapes of a job by component and alternative."""
        kind = int(self.q.kind[job])
        bounds = range(int(self.q.component_ptr[kind]), int(self.q.component_ptr[kind + 1]))
        first = self.q.alternative_ptr
        return tuple(tuple(self.q.alternative[first[i] : first[i + 1]].tolist()) for i in bounds)

    def in_order(self, jobs: Sequence[int]) -> list[int]:
        """Return jobs by tier, key and index."""
        return sorted(jobs, key=lambda job: (-int(self.q.tier[self.q.kind[job]]), self.key(job), job))

    def key(self, job: int) -> float:
        estimate, procs = float(self.q.estimate[job]), int(self.q.procs[job])
        if self.rules.strategy == MULTIFACTOR:
            return -math.floor(self.priority(job) * STEPS + 0.5)
        if self.rules.strategy >= FIRST_DYNAMIC:
            return float(dynamic_key(self.rules.strategy, self.now, self.ready[job], estimate, procs))
        submit, deadline = float(self.q.submit[job]), float(self.q.deadline[job])
        return float(static_key(self.rules.strategy, job, submit, estimate, procs, deadline))

    def charge(self, job: int) -> None:
        """Remember what a job has used."""
        if len(self.rules.member):
            used = int(self.q.procs[job]) * float(self.q.run[job])
            self.past.append((int(self.rules.member[job]), self.now, used))

    def usage(self, member: int | None) -> float:
        """Return what a member and all below it have used, as it counts now; None = everyone."""
        total = 0.0
        for who, when, used in self.past:
            above = [who]
            while above[-1] >= 0:
                above.append(int(self.rules.above[above[-1]]))
            if member is None or member in above:
                total += used * math.exp(-math.log(2.0) * (self.now - when) / self.rules.half_life)
        return total

    def effective(self, member: int, everyone: float) -> float:
        """Return U_E of Slurm's classic fair share."""
        actual = self.usage(member) / everyone
        parent = int(self.rules.above[member])
        if parent < 0:
            return actual
        return actual + (self.effective(parent, everyone) - actual) * float(self.rules.among[member])

    def fair_share(self, member: int) -> float:
        everyone = self.usage(None)
        if everyone <= 0:
            return 1.0
        used, share = self.effective(member, everyone), float(self.rules.share[member])
        if used <= 0:
            return 1.0
        return 2.0 ** (-used / share) if share > 0 else 0.0

    def priority(self, job: int) -> float:
        rules = self.rules
        age = min(1.0, (self.now - self.ready[job]) / rules.max_age)
        found = rules.age * age + float(rules.fixed[job])
        return found + (rules.fair_share * self.fair_share(int(rules.member[job])) if rules.fair_share else 0.0)

"""The fair-share factor as Slurm's controller keeps it: usage grows while jobs run, and fades at every computation.

The factor is the classic one, 2^(-U/S), with the effective usage of users within accounts, as ``multifactor`` has it
(``queues.nodes.fair_share``). The controller charges running jobs and lets usage fade when it computes all priorities
(``PriorityCalcPeriod``), and charges a job's last stretch when it ends.
"""

from __future__ import annotations

import math

from stretto.queues.nodes.fair_share import fair_share_tree
from stretto.queues.nodes.setup import NodeSetup


class AccountUsage:
    """What each member of the fair-share tree has used, in processor-seconds."""

    def __init__(self, setup: NodeSetup, half_life_s: float) -> None:
        tree = fair_share_tree(setup.site, setup.trace)
        self.member: list[int] = tree.member.tolist()
        self.above: list[int] = tree.above.tolist()
        self.share: list[float] = tree.share.tolist()
        self.among: list[float] = tree.among.tolist()
        self.procs: list[int] = setup.arrays.procs.tolist()
        self.half_life_s = half_life_s
        self.used = [0.0] * len(self.above)
        self.total = 0.0
        self.faded_at = 0.0
        #: From when on each running job is still to be charged.
        self.since: dict[int, float] = {}

    def start(self, job: int, now: float) -> None:
        """Begin to charge a job."""
        self.since[job] = now

    def end(self, job: int, now: float) -> None:
        """Charge the last stretch of a job."""
        self._charge(job, now)
        del self.since[job]

    def decay(self, now: float) -> None:
        """Let usage fade, and charge running jobs."""
        left = 0.5 ** ((now - self.faded_at) / self.half_life_s)
        self.used = [used * left for used in self.used]
        self.total *= left
        self.faded_at = now
        for job in self.since:
            self._charge(job, now)

    def _charge(self, job: int, now: float) -> None:
        amount = self.procs[job] * max(0.0, now - self.since[job])
        self.since[job] = max(now, self.since[job])
        self.total += amount
        member = self.member[job]
        while member >= 0:
            self.used[member] += amount
            member = self.above[member]

    def factor(self, job: int) -> float:
        """Return the fair-share factor of a job: one without usage, a half at the fair share."""
        if self.total <= 0:
            return 1.0
        member = self.member[job]
        used, share = self._effective(member), self.share[member]
        if used <= 0:
            return 1.0
        return math.pow(2.0, -used / share) if share > 0 else 0.0

    def _effective(self, member: int) -> float:
        """Return the effective usage of a member: a part of what its account uses counts as its own."""
        actual = self.used[member] / self.total
        parent = self.above[member]
        if parent < 0:
            return actual
        return actual + (self._effective(parent) - actual) * self.among[member]

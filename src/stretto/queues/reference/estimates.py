"""What the reference replay believes about run times."""

from __future__ import annotations

import math

from stretto.queues.kernels import codes
from stretto.queues.reference.state import ReferenceState

#: Seconds by which an outlived prediction is raised, one after the other.
RAISES_S = (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000)
#: Ended jobs of a user that predictions look at.
WINDOW = 32


class ReferenceEstimates(ReferenceState):
    """Predictions: made on arrival, raised when outlived."""

    def predict(self, job: int) -> float:
        estimate = float(self.q.estimate[job])
        ended = self.history.get(int(self.q.user[job]), [])
        if self.rules.estimates == codes.LAST_TWO and len(ended) >= 2:
            return min(estimate, (ended[-2][0] + ended[-1][0]) / 2)
        if self.rules.estimates == codes.QUANTILE and len(ended) >= 2:
            ratios = sorted(ratio for _, ratio in ended[-WINDOW:])
            return min(estimate, estimate * ratios[max(0, math.ceil(self.rules.quantile * len(ratios)) - 1)])
        return estimate

    def remember(self, job: int) -> None:
        ran = float(self.setup.limit[job]) if self.out.killed[job] else float(self.q.run[job])
        estimate = float(self.q.estimate[job])
        ratio = ran / estimate if estimate > 0 else 1.0
        self.history.setdefault(int(self.q.user[job]), []).append((ran, ratio))

    def raise_predictions(self) -> None:
        if self.rules.estimates < codes.LAST_TWO:
            return
        for job in self.running:
            speed = self.pools[self.place[job]].pool.speed
            most = max(float(self.q.estimate[job]) - self.kept[job], 0.0)
            while self.expected[job] <= self.now and self.raised[job] < len(RAISES_S):
                raised = min(self.believed(job) + RAISES_S[self.raised[job]], most)
                self.expected[job] = self.began[job] + raised / speed
                self.raised[job] += 1

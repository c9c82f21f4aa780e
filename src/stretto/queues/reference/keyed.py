"""Replays in the order of a key that depends on the wait: the documented slow path for strategies without a kernel.

It is exact, and takes a millisecond or more per job. For a formula that is needed often, add a kernel code in
``queues.kernels.keys``.
"""

from __future__ import annotations

import numpy as np

from stretto.queues.reference.replay import Reference
from stretto.queues.setup import ReplaySetup
from stretto.queues.strategies import Submitted, WaitKey, checked_key, submitted


class KeyedReplay(Reference):
    """The reference replay with keys that a function returns at every pass.

    Parameters
    ----------
    origin_s
        When the first job was submitted, which is zero in the set-up.
    """

    def __init__(self, setup: ReplaySetup, key: WaitKey, name: str, origin_s: float = 0.0) -> None:
        super().__init__(setup)
        self._own_key, self._name, self._jobs = key, name, submitted(setup.trace)
        self._jobs.submit_s[:] += origin_s
        self._keys: dict[int, float] = {}

    def schedule(self) -> None:
        rows = np.array(self.waiting)
        believed = np.array([self.believed(job) for job in self.waiting])
        jobs = Submitted(*(column[rows] for column in self._jobs))._replace(estimate_s=believed)
        found = checked_key(self._own_key(jobs, self.now - self.out.ready[rows]), len(rows), self._name)
        self._keys = dict(zip(self.waiting, found.tolist(), strict=True))
        super().schedule()

    def key(self, job: int) -> float:
        return self._keys[job]

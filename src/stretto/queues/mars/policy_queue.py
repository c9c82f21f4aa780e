"""The same arrivals under the operator's policy, to know who would be running by now."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.trace import QueueArrays
from stretto.queues.kernels import keys
from stretto.queues.mars.candidates import Candidate
from stretto.queues.promises.queue import Preference, PromiseQueue, preference


@dataclass(frozen=True, eq=False)
class PolicyQueue:
    """A queue without promises beside the real one.

    Attributes
    ----------
    queue
        Its run times are what is known or forecast in the real queue.
    policy
        The operator's order; first come, first served where the operator follows a network.
    """

    queue: PromiseQueue
    policy: Preference

    @staticmethod
    def of(jobs: QueueArrays, num_procs: int, policy: Candidate) -> PolicyQueue:
        """Return the queue of a policy before its first event."""
        believed = jobs._replace(run=np.maximum(1.0, jobs.estimate))
        code = keys.FCFS if policy.is_network else policy.code
        return PolicyQueue(PromiseQueue.of(believed, num_procs, np.inf), preference(code))

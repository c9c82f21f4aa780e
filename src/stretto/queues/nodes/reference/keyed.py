"""Replays on nodes in the order of a key that depends on the wait: exact, and slow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stretto.queues.kernels.keys import FCFS
from stretto.queues.nodes.reference.replay import NodeReference
from stretto.queues.nodes.rules import node_rules
from stretto.queues.nodes.run import NodeRun
from stretto.queues.nodes.setup import NodeSetup
from stretto.queues.strategies import Submitted, WaitKey, checked_key, submitted


class KeyedNodeReplay(NodeReference):
    """The reference replay with keys that a function returns at every pass."""

    def __init__(self, setup: NodeSetup, key: WaitKey, name: str, backfill: int) -> None:
        super().__init__(setup, node_rules(setup, FCFS, backfill))
        self._own_key, self._name, self._jobs = key, name, submitted(setup.trace)
        self._jobs.submit_s[:] += setup.shift_s
        self._jobs.estimate_s[:] = setup.arrays.estimate

    def in_order(self, jobs: Sequence[int]) -> list[int]:
        if not jobs:
            return []
        rows = np.array(jobs)
        part = Submitted(*(column[rows] for column in self._jobs))
        found = checked_key(self._own_key(part, self.now - np.array(self.ready)[rows]), len(rows), self._name)
        keys = dict(zip(jobs, found.tolist(), strict=True))
        return sorted(jobs, key=lambda job: (-int(self.q.tier[self.q.kind[job]]), keys[job], job))


def run_keyed(setup: NodeSetup, key: WaitKey, name: str, backfill: int) -> NodeRun:
    """Replay by a key that depends on the wait."""
    slow = KeyedNodeReplay(setup, key, name, backfill)
    slow.run()
    places = [place for job in slow.places for place in job]
    order = setup.site_arrays.order
    return NodeRun(
        np.array(slow.start),
        np.array(slow.end),
        np.array(slow.ready),
        np.concatenate(([0], np.cumsum([len(job) for job in slow.places]))).astype(np.int64),
        order[[place.node for place in places]],
        np.array([place.tasks for place in places], np.int32),
        np.array([place.shape for place in places], np.int32),
    )

"""A task whose parent must run again gives its device back, or a dispatcher that waits for idle ones waits for ever."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import View
from stretto.engines.driver.events import DeviceLost
from stretto.engines.engine import RunOptions
from stretto.engines.simulated import SimulatedEngine
from stretto.engines.work import Work


class OneEach:
    """Gives a device a task when it has none, the first to the first device and the second to the second."""

    def choose(self, view: View) -> Sequence[tuple[int, int]]:
        idle = [device for device, tasks in enumerate(view.issued) if view.is_alive[device] and not tasks]
        wanted = {0: 0, 1: 1}
        return [(task, device) for task in view.ready[:1] for device in sorted(idle, key=lambda d: d != wanted[task])][
            :1
        ]


def test_a_lost_parent_gets_the_device_of_its_child() -> None:
    graph = TaskGraph.from_edges([1.0, 1.0], [0], [1], [1.0])
    links = np.array([[np.inf, 1.0], [1.0, np.inf]])
    cluster = Cluster((Device("a"), Device("b")), np.zeros((2, 2)), links)
    problem = Problem.of(graph, cluster)
    # The parent ends at 1 on a; its output is on the way to b, where the child is placed, when a is lost.
    engine = SimulatedEngine(faults=(DeviceLost(0, 1.5, "gone"),))
    found = engine.play(problem, OneEach(), Work.timed(graph), RunOptions())
    assert found.status == "done"
    assert found.device.tolist() == [1, 1]
    assert found.end_s.tolist() == [2.5, 3.5]
    assert found.attempts.tolist() == [2, 1]

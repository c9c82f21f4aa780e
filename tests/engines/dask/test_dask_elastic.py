"""An elastic run on Dask: workers come for the burst, go for the chain, and take no data with them."""

from __future__ import annotations

import numpy as np
import pytest

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.dask.engine import DaskEngine
from stretto.engines.driver.dispatch import Dispatcher, GreedyDispatcher
from stretto.engines.driver.events import DeviceJoined, DeviceLost, Event
from stretto.engines.engine import RunOptions
from stretto.engines.simulated import SimulatedEngine
from stretto.engines.work import Work
from stretto.errors import InvalidInput

THREE = Cluster.parse("cpu:3")
NUM_WIDE, LENGTH = 12, 12


def burst_and_chain() -> TaskGraph:
    """Twelve tasks at once, and a chain whose tasks read all of them: their data must outlive their workers."""
    wide, chain = np.arange(NUM_WIDE), np.arange(NUM_WIDE, NUM_WIDE + LENGTH)
    source = np.concatenate([np.tile(wide, LENGTH), chain[:-1]])
    target = np.concatenate([np.repeat(chain, NUM_WIDE), chain[1:]])
    return TaskGraph.from_edges(np.ones(NUM_WIDE + LENGTH), source, target)


# With processes only by plan: there tasks wait for their worker, however long it takes to start.
@pytest.mark.parametrize(("is_planned", "processes"), [(False, False), (True, False), (True, True)])
def test_workers_come_and_go_with_the_work(is_planned: bool, processes: bool) -> None:
    graph = burst_and_chain()
    work, problem = Work.timed(graph, 0.2), Problem.of(graph, THREE)
    order = np.arange(graph.num_tasks, dtype=np.int32)
    plan = Plan(np.where(order < NUM_WIDE, order % 3, 0).astype(np.int32), order, "work-conserving")
    decider: Plan | Dispatcher = plan if is_planned else GreedyDispatcher()
    events: list[Event] = []
    engine = DaskEngine(processes=processes, num_queued=0, is_elastic=True, backlog_s=1.0, idle_s=2.0)
    found = engine.play(problem, decider, work, RunOptions(on_event=events.append)).check()
    joined = {event.device for event in events if isinstance(event, DeviceJoined)}
    left = {event.device for event in events if isinstance(event, DeviceLost)}
    assert joined == {1, 2}
    assert left
    assert all(event.is_data_safe for event in events if isinstance(event, DeviceLost))
    assert not found.failures
    assert found.digests == SimulatedEngine().run(work, plan, THREE, RunOptions()).digests
    if is_planned:
        assert found.device.tolist() == plan.assignment.tolist()


def test_an_address_is_not_ours_to_scale() -> None:
    with pytest.raises(InvalidInput, match="leave out address"):
        DaskEngine(address="tcp://127.0.0.1:1", is_elastic=True)

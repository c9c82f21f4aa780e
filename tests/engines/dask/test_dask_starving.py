"""Data that Dask lost without our hearing of it: who waits for it is given up, and it is made again."""

from __future__ import annotations

import queue

import numpy as np

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.background import wait_until
from stretto.engines.dask.engine import _own_cluster
from stretto.engines.dask.run import DaskRun
from stretto.engines.driver.driver import Driver, DriverRules
from stretto.engines.driver.events import Event, TaskFailed, TaskFinished
from stretto.engines.engine import RunOptions
from stretto.engines.recorder import Recorder
from stretto.engines.work import Call, Work

TWO = Cluster.parse("cpu:2")


def test_an_attempt_that_waits_for_lost_data_is_given_up() -> None:
    from distributed import Client

    graph = TaskGraph.from_edges([1.0, 1.0], [0], [1], 1.0)
    work, problem = Work(graph, (Call(int, (20,)), Call(float))), Problem.of(graph, TWO)
    plan = Plan(np.array([0, 1], dtype=np.int32), np.arange(2, dtype=np.int32))
    names = [device.name for device in TWO.devices]
    with _own_cluster(problem, names, processes=False) as (own, _), Client(own, set_as_default=False) as client:
        client.wait_for_workers(2)
        driver, options = Driver(problem, plan, DriverRules(keeps_data=False)), RunOptions(keep="none")
        run = DaskRun(client, Recorder(work, driver, options))
        client.subscribe_topic(run.topic, lambda event: run.inbox.put(event[1]))
        run._execute(driver.begin())
        finished: list[Event] = []
        while not finished:
            finished = [event for event in run._next_events() if isinstance(event, TaskFinished)]
        # The worker goes, with its output, and nobody tells us.
        own.sync(own.workers[names[0]].close)
        assert wait_until(lambda: len(client.scheduler_info(n_workers=-1)["workers"]) == 1, timeout_s=60.0)
        run.inbox = queue.SimpleQueue()
        run._execute(driver.handle(finished))
        assert not list(run._lost_inputs())  # not yet: there was news a moment ago
        run.heard_s = -1e9
        (found,) = list(run._lost_inputs())
        assert isinstance(found, TaskFailed)
        assert (found.task, found.blame, found.lost) == (1, "input", (0,))
        assert 0 not in run.attempts.output
        (again, *_) = driver.handle([found])
        assert again.task == 0  # type: ignore[union-attr]
        run.attempts.close()

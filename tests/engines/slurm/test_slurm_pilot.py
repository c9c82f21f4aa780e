"""Dask workers in jobs of Slurm, for tasks that are too small for jobs of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.engines.driver.events import DeviceJoined, DeviceLost, Event
from stretto.engines.engine import RunOptions
from stretto.engines.simulated import SimulatedEngine
from stretto.engines.slurm.client.client import SlurmClient
from stretto.engines.slurm.engine.pilot import SlurmDaskEngine
from stretto.engines.slurm.testbed.testbed import Testbed
from stretto.engines.work import Work

pytest.importorskip("distributed", reason="the extra dask is not installed")

NODES = Cluster.uniform([Device("first", machine="n1"), Device("second", machine="n2")])


def test_many_small_tasks_share_a_few_jobs(bed: Testbed, client: SlurmClient, tmp_path: Path) -> None:
    graph = TaskGraph.from_edges([1.0] * 40, list(range(0, 38)), list(range(2, 40)))
    plan = Plan(np.arange(40, dtype=np.int32) % 2, np.arange(40, dtype=np.int32))
    work = Work.timed(graph, 0.001)
    engine = SlurmDaskEngine(conf=str(bed.conf), folder=str(tmp_path / "run"), host="127.0.0.1")
    assert engine.available() is None
    before = {job.job_id for job in client.queue()}
    result = engine.run(work, plan, NODES, RunOptions(keep="all")).check()
    assert result.device.tolist() == plan.assignment.tolist()
    assert result.outputs == SimulatedEngine().run(work, plan, NODES, RunOptions(keep="all")).outputs
    jobs = [job for job in client.queue() if job.job_id not in before]
    assert len(jobs) == 2
    assert {job.nodes for job in jobs} == {"n1", "n2"}
    assert all(job.is_ended or job.state == "COMPLETING" for job in jobs)


def test_a_job_is_submitted_when_its_device_has_work_and_ends_when_it_has_none(
    bed: Testbed, client: SlurmClient, tmp_path: Path
) -> None:
    """A chain whose second task runs elsewhere; the rest of the chain is long enough for that job to end."""
    graph = TaskGraph.from_edges([1.0] * 20, list(range(19)), list(range(1, 20)))
    plan = Plan((np.arange(20) == 1).astype(np.int32), np.arange(20, dtype=np.int32))
    work = Work.timed(graph, 0.3)
    events: list[Event] = []
    options = RunOptions(keep="all", on_event=events.append)
    engine = SlurmDaskEngine(
        conf=str(bed.conf), folder=str(tmp_path / "run"), host="127.0.0.1", is_elastic=True, idle_s=1.0
    )
    before = {job.job_id for job in client.queue()}
    result = engine.run(work, plan, NODES, options).check()
    assert result.outputs == SimulatedEngine().run(work, plan, NODES, RunOptions(keep="all")).outputs
    assert result.device.tolist() == plan.assignment.tolist()
    assert [type(event) for event in events if isinstance(event, (DeviceJoined, DeviceLost))] == [
        DeviceJoined,
        DeviceLost,
    ]
    first, second = sorted((job for job in client.queue() if job.job_id not in before), key=lambda job: job.job_id)
    assert (first.nodes, second.nodes) == ("n1", "n2")
    assert second.submit_s >= first.start_s
    assert second.state == "COMPLETED"  # by itself: nobody had to cancel it

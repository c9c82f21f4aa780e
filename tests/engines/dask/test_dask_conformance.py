"""The suite that every engine passes, on Dask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import stretto
from real_data import small_workflows
from stretto.core.cluster import Cluster
from stretto.engines.dask.engine import DaskEngine
from stretto.engines.engine import RunOptions
from stretto.engines.work import Work
from stretto.testing import check_engine
from stretto.testing.engine_checks import EngineTrial, check_run, random_plan


def test_workers_in_one_process() -> None:
    passed = check_engine(DaskEngine(processes=False), EngineTrial(num_tasks=200, num_graphs=2))
    assert len(passed) == 7


def test_workers_in_processes(processes: tuple[Any, Any]) -> None:
    cluster, _ = processes
    named = Cluster.uniform([stretto.Device("a", "cpu", 1.0), stretto.Device("b", "gpu", 2.0)])
    passed = check_engine(DaskEngine(cluster.scheduler_address), EngineTrial(num_tasks=200, cluster=named))
    assert len(passed) == 5


def test_real_workflows(data_dir: Path) -> None:
    cluster = Cluster.parse("cpu:2,gpu:2x3.0")
    for number, graph in enumerate(small_workflows(data_dir)):
        work = Work.timed(graph, 1.0 / max(float(graph.work_s.sum()), 1e-9))
        plan = random_plan(np.random.default_rng(number), graph, cluster)
        check_run(DaskEngine(processes=False), work, plan, cluster, RunOptions(discipline="sequence"))

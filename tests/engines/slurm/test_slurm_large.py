"""Large graphs and real workflows on Slurm: placement and order exactly as planned, every task once, data right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from real_data import small_workflows
from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.problem import merge
from stretto.core.workload import Workload
from stretto.engines.engine import RunOptions
from stretto.engines.slurm.engine.engine import SlurmEngine
from stretto.engines.slurm.testbed.conf import TestbedSpec
from stretto.engines.slurm.testbed.testbed import Testbed
from stretto.engines.work import Work
from stretto.graphs.workloads.random_dag import random_dag
from stretto.testing.engine_checks import check_run, random_plan

NUM_NODES = 8


@pytest.fixture(scope="module")
def wide_bed(slurm_place: Path) -> Iterator[Testbed]:
    """Eight nodes of one processor: what takes time is Slurm's second between a task and the next on its node."""
    found = Testbed.up(slurm_place / "wide", TestbedSpec(num_nodes=NUM_NODES, cpus_per_node=1, gpus_per_node=0))
    try:
        yield found
    finally:
        assert found.down() == []


def run(bed: Testbed, folder: Path, graph: TaskGraph) -> None:
    nodes = Cluster.uniform([Device(f"n{number}") for number in range(1, NUM_NODES + 1)])
    work = Work.timed(graph, 1e-3 / max(float(graph.work_s.max()), 1e-9))
    plan = random_plan(np.random.default_rng(graph.num_tasks), graph, nodes)
    engine = SlurmEngine(conf=str(bed.conf), folder=str(folder), queue_s=1.0)
    check_run(engine, work, plan, nodes, RunOptions(discipline="sequence"), latency_s=5.0)


def test_two_hundred_tasks_run_exactly_as_planned(wide_bed: Testbed, tmp_path: Path) -> None:
    run(wide_bed, tmp_path / "run", random_dag(num_tasks=200, seed=5))


def test_twenty_real_workflows_run_exactly_as_planned(wide_bed: Testbed, data_dir: Path, tmp_path: Path) -> None:
    together, _, _ = merge(Workload.of(small_workflows(data_dir)))
    assert together.num_tasks > 500
    run(wide_bed, tmp_path / "run", together)

"""The run that ``test_slurm_crash`` kills: ``python slurm_crash_run.py CONF FOLDER BOOK``."""

from __future__ import annotations

import sys
from pathlib import Path

from stretto.core.cluster import Cluster, Device
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.slurm.engine.engine import SlurmEngine
from stretto.engines.work import Command, Work
from stretto.graphs.planners.heft import Heft
from stretto.graphs.workloads.random_dag import random_dag

NUM_TASKS = 100
NODES = Cluster.uniform([Device(f"n{number}") for number in range(1, 5)])
GRAPH = random_dag(num_tasks=NUM_TASKS, seed=1)


def make_plan() -> Plan:
    return Heft().plan(Problem.of(GRAPH, NODES), Budget(0, None, 1, None))


def follow(conf: str, folder: Path, book: Path) -> RunResult:
    """Run, or go on with, the hundred tasks; each writes a line when it begins and when it ends."""
    work = Work(
        GRAPH,
        tuple(
            Command.shell(f"echo begin {task} >> {book}; sleep 0.05; echo end {task} >> {book}")
            for task in range(NUM_TASKS)
        ),
    )
    engine = SlurmEngine(conf=conf, folder=str(folder), queue_s=1.0, launch_s=5.0, is_resuming_nodes=True)
    return engine.run(work, make_plan(), NODES, RunOptions())


if __name__ == "__main__":
    follow(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))

"""The run that ``test_crash_slurm`` kills: ``python crash_slurm_run.py CONF FOLDER NUM_KILLS SEED`` prints JSON."""

from __future__ import annotations

import json
import random
import sys
from functools import partial
from pathlib import Path
from typing import Any

from kill_points import killed_at_random

from stretto.core.cluster import Cluster, Device
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.engines.engine import RunOptions
from stretto.engines.slurm.engine.engine import SlurmEngine
from stretto.engines.work import Command, Work
from stretto.graphs.planners.heft import Heft
from stretto.graphs.workloads.random_dag import random_dag

NUM_TASKS = 24
NODES = Cluster.uniform([Device(f"n{number}") for number in range(1, 5)])
GRAPH = random_dag(num_tasks=NUM_TASKS, seed=1)
_MAX_BYTES = 60  # of new lines until a kill, some four tasks


def follow(conf: str, folder: Path) -> None:
    """Run, or go on with, the tasks; each writes a line when it begins and when it ends."""
    book = folder / "book"
    lines = [f"echo begin {task} >> {book}; echo end {task} >> {book}" for task in range(NUM_TASKS)]
    work = Work(GRAPH, tuple(map(Command.shell, lines)))
    plan = Heft().plan(Problem.of(GRAPH, NODES), Budget())
    engine = SlurmEngine(conf=conf, folder=str(folder / "run"), queue_s=1.0)
    engine.run(work, plan, NODES, RunOptions()).check()


def main(conf: str, folder: Path, num_kills: int, seed: int) -> None:
    rng = random.Random(seed)
    Heft().plan(Problem.of(GRAPH, NODES), Budget())  # compiled before the forks
    runs: list[dict[str, Any]] = []
    while sum(run["num_kills"] for run in runs) < num_kills:
        place, killed = folder / f"r{len(runs)}", 0
        place.mkdir()
        while killed_at_random(partial(follow, conf, place), place / "book", _MAX_BYTES, rng):
            killed += 1
        runs.append({"num_kills": killed, "lines": (place / "book").read_text().splitlines()})
    print(json.dumps(runs))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))

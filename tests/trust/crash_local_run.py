"""The run that ``test_crash_local`` kills: ``python crash_local_run.py FOLDER WORKERS NUM_KILLS SEED`` prints JSON."""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from kill_points import killed_at_random

from stretto.core.cluster import Cluster
from stretto.core.problem import Problem
from stretto.engines.completion_log import completion_log_path, read_completions
from stretto.engines.engine import RunOptions
from stretto.engines.local.engine import LocalEngine
from stretto.engines.session import run_recorded, saved_plan
from stretto.engines.work import Call, Work
from stretto.graphs.evaluate import planner_named
from stretto.runlog import RunLog
from stretto.testing.engine_checks import random_graph

NUM_TASKS = 40
CLUSTER = Cluster.parse("cpu:3")
GRAPH = random_graph(np.random.default_rng(4), NUM_TASKS)
_TASK_S = 0.003
#: A kill comes after at most so many bytes of new lines: some ten of them.
_MAX_BYTES = 100


def append(book: Path, line: str) -> None:
    """Add a line in one write, so that lines of several processes stay whole."""
    handle = os.open(book, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


def make_work(book: Path) -> Work:
    """Return tasks that say in a file when they begin and end, and add up their inputs."""

    def run(task: int, *inputs: int) -> int:
        append(book, f"begin {task}")
        time.sleep(_TASK_S)
        append(book, f"end {task}")
        return task + sum(inputs)

    return Work(GRAPH, tuple(Call(_first(run, task)) for task in range(NUM_TASKS)))


def _first(function: Callable[..., int], task: int) -> Callable[..., int]:
    return lambda *inputs: function(task, *inputs)


def part(folder: Path, workers: Any) -> None:
    """Begin the run, or go on with it as ``stretto run --resume latest`` does."""
    work, problem = make_work(folder / "book"), Problem.of(GRAPH, CLUSTER)
    with RunLog.open(folder / "runs.db") as log:
        begun = log.runs()
        resume = begun[0].id if begun else None
        if resume is None:
            plan = planner_named("heft", {}).plan(problem, _budget())
        else:
            plan = saved_plan(log, resume, problem)
        engine = LocalEngine(workers=workers)
        run_recorded(log, engine, work, plan, CLUSTER, RunOptions(), settings={}, resume=resume).result.check()


def _budget() -> Any:
    from stretto.core.planner import Budget

    return Budget()


def one_run(folder: Path, workers: str, rng: random.Random) -> dict[str, Any]:
    """Kill and resume until the run is through, and tell what was on record and in the file each time."""
    folder.mkdir()
    book = folder / "book"
    kills = []
    while killed_at_random(partial(part, folder, workers), book, _MAX_BYTES, rng):
        kills.append({"recorded": recorded(folder), "num_lines": len(lines(book))})
    with RunLog.open(folder / "runs.db") as log:
        events = log.events(log.runs()[0].id, kinds=["task-finished"])
        statuses = [info.status for info in log.runs()]
    ends = [[event.subject, event.fields["digest"]] for event in events]
    return {"kills": kills, "lines": lines(book), "ends": ends, "statuses": statuses}


def recorded(folder: Path) -> list[str]:
    """Return the tasks whose end is on record, in the log or in the book of ends beside it."""
    with RunLog.open(folder / "runs.db") as log:
        runs = log.runs()
        if not runs:
            return []
        logged = [event.subject for event in log.events(runs[0].id, kinds=["task-finished"])]
        book = {end.task for end in read_completions(completion_log_path(log, runs[0].id))}
        return [*logged, *sorted(book - set(logged))]


def lines(book: Path) -> list[str]:
    return book.read_text().splitlines() if book.exists() else []


def main(folder: Path, workers: str, num_kills: int, seed: int) -> None:
    rng = random.Random(seed)
    planner_named("heft", {}).plan(Problem.of(GRAPH, CLUSTER), _budget())  # compiled before the forks
    runs: list[dict[str, Any]] = []
    while sum(len(run["kills"]) for run in runs) < num_kills:
        runs.append(one_run(folder / f"run-{len(runs)}", workers, rng))
    print(json.dumps(runs))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))

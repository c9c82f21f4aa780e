"""How far it goes: a graph with a million tasks through the whole of Stretto, within bounded memory.

    python benchmarks/scale.py --tasks 100000 --devices 32
    python benchmarks/scale.py --tasks 1000000 --devices 32

Each step is timed apart: make, save, load, compile the problem, plan with HEFT, simulate under both
disciplines, bound. Kernels are compiled on a small graph first.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from stretto.core.graph import TaskGraph
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.files.load import load, save
from stretto.graphs.bounds.bound import bound
from stretto.graphs.evaluate import planner_named
from stretto.graphs.simulator import simulate
from stretto.graphs.workloads.random_cluster import random_cluster
from stretto.graphs.workloads.random_dag import random_dag

Result = TypeVar("Result")


def peak_gb() -> float:
    """Return the largest memory this process has held."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1e6
    return float("nan")


def timed(label: str, action: Callable[[], Result]) -> Result:
    begin = time.perf_counter()
    result = action()
    print(f"{label:<28} {time.perf_counter() - begin:8.2f} s   peak {peak_gb():6.2f} GB", flush=True)
    return result


def run(num_tasks: int, num_devices: int, *, quiet: bool = False) -> None:
    def step(label: str, action: Callable[[], Any]) -> Any:
        return action() if quiet else timed(label, action)

    made = step("make", lambda: random_dag(num_tasks=num_tasks, seed=1))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.json"
        step("save", lambda: save(made, path))
        graph = step("load", lambda: load(path))
    assert isinstance(graph, TaskGraph)
    problem = step("compile problem", lambda: Problem.of(graph, random_cluster(num_devices, seed=1)))
    plan = step("plan (heft)", lambda: planner_named("heft").plan(problem, Budget()))
    schedule = step("simulate, sequence", lambda: simulate(problem, plan))
    step("simulate, work-conserving", lambda: simulate(problem, plan, discipline="work-conserving"))
    limit = step("bound", lambda: bound(problem))
    if not quiet:
        print(f"makespan {schedule.makespan_s:.6g} s, bound {limit.value_s:.6g} s ({limit.method})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--devices", type=int, default=32)
    args = parser.parse_args()
    run(200, args.devices, quiet=True)
    run(args.tasks, args.devices)


if __name__ == "__main__":
    main()

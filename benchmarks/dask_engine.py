"""Stretto inside Dask: what its plugin costs, and what its plans are worth against Dask's own scheduling.

    python benchmarks/dask_engine.py hook [--tasks 1000 5000]
    python benchmarks/dask_engine.py makespan [--tasks 1000] [--seeds 0 1 2] [--scale 1.0] [--cases ...]
    python benchmarks/dask_engine.py hop

``hook`` is the time inside ``update_graph``, per task: with planning by HEFT, and of it the planner alone. ``makespan``
runs one unmodified Dask graph of timed tasks (they sleep, and move no data to speak of) on four workers in processes:
two of kind cpu, a gpu and an old one. How long a task sleeps depends on its category and on the worker's kind, give or
take 20 %. All rows of one seed run one after the other, each on a fresh cluster:

- ``dask``: as it comes, learning each category's running average as it goes
- ``dask, averages``: told each category's mean over the workers before (default-task-durations)
- ``heft``, ``portfolio``, ``late``: ours, told each category's mean on each kind before; nobody knows the 20 %
- ``heft, captured``: ours, knowing only what ``stretto.dask.capture`` saw of one earlier run under Dask

``hop`` is the time from the end of a task to the start of the next in a chain over two workers, by the Dask engine.
Sleeping tasks measure scheduling, not machines.
"""

from __future__ import annotations

import argparse
import logging
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import stretto
from stretto.core.cluster import Cluster, Device
from stretto.core.csr import Floats, Ints
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem

KINDS = ("cpu", "gpu", "old")
WORKERS = {"cpu0": "cpu", "cpu1": "cpu", "gpu0": "gpu", "old0": "old"}
NUM_CATEGORIES = 12


@dataclass(frozen=True)
class Instance:
    """A graph of categories; seconds by category and kind as everybody is told, and by task as they come true."""

    shape: TaskGraph
    category: Ints  # [n]
    told_s: Floats  # [categories, kinds]
    true_s: Floats  # [n, kinds]

    def key(self, task: int) -> str:
        return f"op{chr(97 + self.category[task])}-{task}"

    @property
    def told_by_kind(self) -> dict[str, dict[str, float]]:
        return {
            f"op{chr(97 + number)}": dict(zip(KINDS, row, strict=True))
            for number, row in enumerate(self.told_s.tolist())
        }

    @property
    def told_averages(self) -> dict[str, str]:
        column = [KINDS.index(kind) for kind in WORKERS.values()]
        return {f"op{chr(97 + n)}": f"{row[column].mean():.4f}s" for n, row in enumerate(self.told_s)}

    def dask_graph(self) -> dict[str, Any]:
        from dask._task_spec import Task, TaskRef

        parents: list[set[int]] = [set() for _ in range(self.shape.num_tasks)]
        source, target, _ = self.shape.edges
        for u, v in zip(source.tolist(), target.tolist(), strict=True):
            parents[v].add(u)
        return {
            self.key(task): Task(
                self.key(task),
                sleep,
                self.true_s[task].tolist(),
                *(TaskRef(self.key(u)) for u in sorted(parents[task])),
            )
            for task in range(self.shape.num_tasks)
        }

    def bound_s(self) -> float:
        """Return a lower bound on the makespan with the true seconds, for whoever knows everything."""
        graph = TaskGraph.from_edges(
            self.true_s[:, 0], *self.shape.edges[:2], 0.0, kinds=KINDS, kind_duration_s=self.true_s
        )
        return stretto.bound(graph, machines()).value_s


def sleep(seconds: list[float], *inputs: Any) -> tuple[float, float]:
    """Sleep as long as this worker's kind takes."""
    from distributed import get_worker

    start = time.time()
    time.sleep(seconds[KINDS.index(WORKERS[str(get_worker().name)])])
    return start, time.time()


def machines() -> Cluster:
    return Cluster.uniform([Device(name, kind) for name, kind in WORKERS.items()], bandwidth=1e8, latency_s=1e-3)


def make_instance(num_tasks: int, seed: int, scale: float) -> Instance:
    rng = np.random.default_rng(seed)
    shape = stretto.workloads.random_dag(num_tasks, seed=seed, width=24, ccr=0.0)
    base = np.exp(rng.uniform(np.log(0.02), np.log(0.15), NUM_CATEGORIES)) * scale
    factor = np.stack(
        [np.ones(NUM_CATEGORIES), np.exp(rng.uniform(np.log(0.15), np.log(2.0), NUM_CATEGORIES)),
         rng.uniform(1.5, 3.0, NUM_CATEGORIES)],
        axis=1,
    )  # fmt: skip
    told = base[:, None] * factor
    category = rng.integers(0, NUM_CATEGORIES, num_tasks).astype(np.int32)
    true = told[category] * rng.uniform(0.8, 1.2, (num_tasks, 1))
    return Instance(shape, category, told, true)


@contextmanager
def four_workers() -> Iterator[Any]:
    """Start a scheduler here and four workers in processes."""
    from distributed import Client, Nanny, Scheduler, SpecCluster

    host = {"host": "127.0.0.1", "dashboard": False}
    options = {"nthreads": 1, "memory_limit": 0, "silence_logs": logging.CRITICAL, **host}
    workers = {name: {"cls": Nanny, "options": options} for name in WORKERS}
    scheduler = {"cls": Scheduler, "options": {"dashboard_address": ":0", "port": 0, **host}}
    with (
        SpecCluster(scheduler=scheduler, workers=workers, silence_logs=logging.CRITICAL) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(len(WORKERS))
        client.run(time.sleep, 0)  # connections are made
        yield client


def run_graph(client: Any, instance: Instance) -> float:
    """Run everything and return the seconds from the first start to the last end."""
    graph = instance.dask_graph()
    spans = client.get(graph, list(graph))
    return max(end for _, end in spans) - min(start for start, _ in spans)


def run_case(case: str, instance: Instance) -> float:
    import dask

    config = {"distributed.scheduler.default-task-durations": instance.told_averages} if "averages" in case else {}
    told: dict[str, Any] = {"cluster": machines(), "durations": instance.told_by_kind}
    with dask.config.set(config), four_workers() as client:
        if case in ("heft", "portfolio"):
            with stretto.dask.schedule(client, case, **told):
                return run_graph(client, instance)
        if case == "heft, sequence":
            with stretto.dask.schedule(client, "heft", discipline="sequence", **told):
                return run_graph(client, instance)
        if case == "late":
            with stretto.dask.dispatch(client, **told):
                return run_graph(client, instance)
        if case == "heft, captured":
            with stretto.dask.capture(client, kinds=WORKERS) as seen:
                run_graph(client, instance)
            with stretto.dask.schedule(client, "heft", durations=seen.graph, cluster=seen.cluster):
                return run_graph(client, instance)
        return run_graph(client, instance)


CASES = ("dask", "dask, averages", "heft", "portfolio", "heft, sequence", "late", "heft, captured")


def measure_makespan(options: argparse.Namespace) -> None:
    print(f"{options.tasks} tasks on {', '.join(WORKERS)}; {platform.machine()}, Python {platform.python_version()}")
    rows: dict[str, list[float]] = {case: [] for case in options.cases}
    bounds = []
    for seed in options.seeds:
        instance = make_instance(options.tasks, seed, options.scale)
        bounds.append(instance.bound_s())
        for case in options.cases:
            rows[case].append(run_case(case, instance))
            print(f"  seed {seed}  {case:16} {rows[case][-1]:8.2f} s   bound {bounds[-1]:.2f} s", flush=True)
    print(f"{'case':16} {'median s':>9} {'vs dask':>9} {'vs averages':>12} {'over bound':>11}")
    for case, values in rows.items():
        times = np.array(values)
        against = [1 - np.median(times / np.array(rows[other])) for other in CASES[:2]]
        gap = np.median(times / np.array(bounds)) - 1
        print(f"{case:16} {np.median(times):9.2f} {-against[0]:+9.1%} {-against[1]:+12.1%} {gap:+11.1%}")


def measure_hook(options: argparse.Namespace) -> None:
    """Time the plugin inside the scheduler; the graph is released before it runs far."""
    print(f"{'tasks':>7} {'hook us/task':>13} {'of it planner':>14}")
    with four_workers() as client:
        for num_tasks in options.tasks:
            best = (float("inf"), 0.0)
            for seed in range(options.repeats):
                graph = make_instance(num_tasks, seed, 1e-4).dask_graph()
                with stretto.dask.schedule(client, "heft", cluster=machines()) as report:
                    client.gather(client.get(graph, list(graph)[-1:], sync=False))
                best = min(best, (report.hook_us_per_task, 1e6 * report.plan_s / report.num_tasks))
            print(f"{num_tasks:>7,} {best[0]:>13.2f} {best[1]:>14.2f}", flush=True)


def measure_hop(options: argparse.Namespace) -> None:
    from stretto.engines.dask.engine import DaskEngine
    from stretto.engines.engine import RunOptions
    from stretto.engines.work import Work

    num = 200
    graph = TaskGraph.from_edges(np.full(num, 1e-6), range(num - 1), range(1, num), 1.0)
    cluster = Cluster.parse("cpu:2")
    assert Problem.of(graph, cluster).num_tasks == num
    for processes in (False, True):
        for name, assignment in (("same worker", np.zeros(num)), ("alternating", np.arange(num) % 2)):
            plan = Plan(assignment.astype(np.int32), np.arange(num, dtype=np.int32))
            result = DaskEngine(processes=processes).run(Work.timed(graph), plan, cluster, RunOptions(digests=False))
            gaps = result.start_s[1:] - result.end_s[:-1]
            print(f"processes={processes!s:5} {name:12} median hop {1e3 * np.median(gaps):6.2f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    hook = commands.add_parser("hook")
    hook.add_argument("--tasks", type=int, nargs="+", default=[1000, 5000])
    hook.add_argument("--repeats", type=int, default=3)
    hook.set_defaults(run=measure_hook)
    makespan = commands.add_parser("makespan")
    makespan.add_argument("--tasks", type=int, default=1000)
    makespan.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    makespan.add_argument("--scale", type=float, default=1.0)
    makespan.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES, help="with both of Dask's own")
    makespan.set_defaults(run=measure_makespan)
    commands.add_parser("hop").set_defaults(run=measure_hop)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()

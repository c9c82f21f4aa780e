"""The local engine: how far apart tasks are, how busy cores get, how well the simulator knows it, and who plans best.

    python benchmarks/local_engine.py
    python benchmarks/local_engine.py --parts hop,utilization --repeats 5
    python benchmarks/local_engine.py --parts calibration --plot calibration.png

Everything is measured in one go on two pinned devices with one BLAS thread each; contenders take turns, and of the
repeats the best counts, because the machine may be shared. Rows go to benchmarks/results/local-engine.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from measure import print_table
from queue_logs import commit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from research.engines.prediction import judge

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.engines.calibrate import calibrate, measure_hop
from stretto.engines.engine import EngineExecutor, RunOptions
from stretto.engines.kernels.llama_block import llama_block_work
from stretto.engines.kernels.tiled_matmul import tiled_matmul_work
from stretto.engines.local.engine import LocalEngine
from stretto.engines.work import Call, Work
from stretto.graphs.evaluate import planner_named

HERE = Path(__file__).resolve().parent
CLUSTER = Cluster.parse("cpu:2@10GB/s")
QUIET = RunOptions(digests=False, keep="none")
PARTS = ("hop", "rate", "utilization", "calibration", "planners")
ENGINES = {name: LocalEngine(workers=name) for name in ("thread", "process")}  # type: ignore[arg-type]
#: What is wanted on a machine that does nothing else: microseconds per hop, tasks per second.
HOP_US = {"thread": 20.0, "process": 60.0}
RATE = 18_000.0


def main() -> None:
    """Run the parts, print tables, keep every row."""
    options = _options()
    rows: list[dict[str, Any]] = []
    for part in options.parts:
        print(f"\n{part} (load average {os.getloadavg()[0]:.1f})")
        rows += PART[part](options)
    stamp = {"commit": commit(), "date": datetime.now(UTC).isoformat(timespec="seconds"), "load": os.getloadavg()[0]}
    with (HERE / "results" / "local-engine.jsonl").open("a") as file:
        for row in rows:
            file.write(json.dumps(row | stamp) + "\n")


def hop(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Time from the end of a task to the start of its child, on the same device and on the other."""
    rows, lines = [], [("workers", "way", "hop us", "wanted")]
    for name, engine in ENGINES.items():
        for is_cross in (False, True):
            best = min(measure_hop(engine, CLUSTER, is_cross=is_cross, length=500) for _ in range(options.repeats))
            way = "to the other device" if is_cross else "on the same device"
            lines.append((name, way, f"{1e6 * best:.1f}", f"{HOP_US[name]:.0f}"))
            rows.append({"part": "hop", "workers": name, "is_cross": is_cross, "seconds": best})
    print_table(lines)
    return rows


def rate(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Tasks per second when tasks do nothing and depend on nothing."""
    num_tasks = 10_000
    graph = TaskGraph.from_edges(np.full(num_tasks, 1e-6), [], [])
    work = Work(graph, (Call(_nothing),) * num_tasks)
    order = np.arange(num_tasks, dtype=np.int32)
    plan = Plan(order % 2, order, "work-conserving")
    rows, lines = [], [("workers", "tasks/s", "wanted")]
    for name, engine in ENGINES.items():
        best = max(
            num_tasks / engine.run(work, plan, CLUSTER, QUIET).check().makespan_s for _ in range(options.repeats)
        )
        lines.append((name, f"{best:,.0f}", f"{RATE:,.0f}"))
        rows.append({"part": "rate", "workers": name, "tasks_per_s": best})
    print_table(lines)
    return rows


def utilization(options: argparse.Namespace) -> list[dict[str, Any]]:
    """How busy two cores are with 64 products of tiles of 512, and what that makes of one core's time."""
    work = tiled_matmul_work(num_tiles=4, tile=512)
    rows, lines = [], [("workers", "1 device ms", "2 devices ms", "speed-up", "utilization")]
    for name, engine in ENGINES.items():
        alone, both = [], []
        for _ in range(options.repeats):
            alone.append(engine.run(work, _heft(work, Cluster.parse("cpu:1")), Cluster.parse("cpu:1"), QUIET).check())
            both.append(engine.run(work, _heft(work, CLUSTER), CLUSTER, QUIET).check())
        one, two = (min(found, key=lambda r: r.makespan_s) for found in (alone, both))
        busy = float(np.sum(two.end_s - two.start_s)) / (2 * two.makespan_s)
        gain = one.makespan_s / two.makespan_s
        lines.append((name, f"{1e3 * one.makespan_s:.0f}", f"{1e3 * two.makespan_s:.0f}", f"{gain:.2f}", f"{busy:.1%}"))
        rows.append(
            {"part": "utilization", "workers": name, "one_s": one.makespan_s, "two_s": two.makespan_s, "busy": busy}
        )
    print_table(lines)
    return rows


def calibration(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Predicted against measured makespans of thirty random placements."""
    rows, lines = [], [("work", "workers", "plans", "rank correlation", "median error", "predicted/measured")]
    for name, engine in ENGINES.items():
        for title, work in _works().items():
            found = calibrate(engine, work, CLUSTER, repeats=options.repeats)
            judgement = judge(engine, work, CLUSTER, found, num_plans=30, repeats=options.repeats)
            figures = (judgement.rank_correlation, judgement.median_error, judgement.median_ratio)
            lines.append((title, name, "30", f"{figures[0]:.3f}", f"{figures[1]:.1%}", f"{figures[2]:.2f}"))
            rows.append(
                {
                    "part": "calibration",
                    "workers": name,
                    "work": title,
                    "rank_correlation": figures[0],
                    "median_error": figures[1],
                    "predicted_s": judgement.predicted_s.tolist(),
                    "measured_s": judgement.measured_s.tolist(),
                    "same_s": found.same_s,
                    "cross_s": found.cross_s,
                    "latency_s": found.latency_s,
                    "bandwidth": found.bandwidth,
                }
            )
            if options.plot is not None:
                from research.engines.prediction import draw_calibration

                path = options.plot.with_stem(f"{options.plot.stem}-{title}-{name}")
                draw_calibration(judgement, path, title=f"{title} on two {name} devices")
    print_table(lines)
    return rows


def planners(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The same kernels planned by HEFT on calibrated times, by Doppler after its stage III, and by Dask itself."""
    from dask_contender import DaskContender

    rows, lines = [], [("work", "contender", "best ms", "median ms", "over the best")]
    for title, work in _works().items():
        plans = {
            (policy, workers): plan
            for workers, engine in ENGINES.items()
            for policy, plan in _plans(work, engine, options).items()
        }
        times: dict[str, list[float]] = {f"{policy}, {workers}": [] for policy, workers in plans} | {"dask": []}
        with DaskContender(work) as dask:
            for _ in range(3 * options.repeats):
                for (policy, workers), plan in plans.items():
                    seconds = ENGINES[workers].run(work, plan, CLUSTER, QUIET).check().makespan_s
                    times[f"{policy}, {workers}"].append(seconds)
                times["dask"].append(dask.run())
        least = min(min(values) for values in times.values())
        for name, values in times.items():
            best, middle = min(values), float(np.median(values))
            lines.append((title, name, f"{1e3 * best:.1f}", f"{1e3 * middle:.1f}", f"{best / least:.2f}"))
            rows.append({"part": "planners", "work": title, "contender": name, "seconds": values})
    print_table(lines)
    return rows


PART = {"hop": hop, "rate": rate, "utilization": utilization, "calibration": calibration, "planners": planners}


def _plans(work: Work, engine: LocalEngine, options: argparse.Namespace) -> dict[str, Plan]:
    found = calibrate(engine, work, CLUSTER, repeats=options.repeats)
    problem = Problem.of(found.graph(work.graph), found.cluster(CLUSTER))
    heft = planner_named("heft", {}).plan(problem, Budget())
    return {"heft": heft, "doppler": _after_stage_three(work, engine, problem, options)}


def _after_stage_three(work: Work, engine: LocalEngine, problem: Problem, options: argparse.Namespace) -> Plan:
    """Plan in the simulator, learn from measured plans, and return what was the fastest when measured in turns."""
    from stretto.graphs.doppler.run import DopplerRun
    from stretto.graphs.doppler.stages import ImitatePlanner, ReinforceOnEngine
    from stretto.learning.trainer import TrainingSpec

    thought = planner_named("doppler", {}).plan(problem, Budget(time_limit_s=options.think, num_threads=2))
    executor = EngineExecutor(engine, work, CLUSTER)
    stages = (ImitatePlanner(episodes=1), ReinforceOnEngine(executor, episodes=options.measure))
    run = DopplerRun(problem, TrainingSpec(), stages=stages)
    run.step()
    run.trainer.add_plan(thought.order, thought.assignment)
    while executor.runs < options.measure:
        run.step()
    plan = run.best_plan()
    assert plan is not None
    return plan


def _works() -> dict[str, Work]:
    return {"64-mm512": tiled_matmul_work(num_tiles=4, tile=512), "llama-block": llama_block_work()}


def _heft(work: Work, cluster: Cluster) -> Plan:
    return planner_named("heft", {}).plan(Problem.of(work.graph, cluster), Budget())


def _nothing() -> None:
    return None


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(PARTS), help=",".join(PARTS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--think", type=float, default=20.0, help="seconds that doppler may plan")
    parser.add_argument("--measure", type=int, default=128, help="plans that stage III runs on the engine")
    parser.add_argument("--plot", type=Path, default=None, help="a .png for the scatter plots of the calibration")
    return parser.parse_args()


if __name__ == "__main__":
    main()

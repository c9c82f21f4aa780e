"""A run log with every kind of run and state that pages show, for screenshots and the accessibility check."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from stretto import workloads
from stretto.api import compare, plan
from stretto.api.run import run as run_work
from stretto.core.graph import TaskGraph
from stretto.core.machine_presets import preset
from stretto.core.trace import Trace
from stretto.queues.evaluate import evaluate_replay
from stretto.queues.workloads.lublin import lublin
from stretto.racks.machine_work import rack_model
from stretto.racks.workloads.kernels import PAPER_KERNELS
from stretto.reports.racks.belief import BeliefSample, record_sample
from stretto.reports.racks.topology import TOPOLOGY, rack_topology
from stretto.reports.record import Rows, record_comparison, record_plan, recording
from stretto.reports.replay import record_replay
from stretto.reports.strict_json import packed, plain
from stretto.runlog import RunLog

CLUSTER = "cpu:6x1.0,gpu:2x5.0"
FLOW = """
name = "variant-calling"

[[task]]
name = "align"
run = "echo 12 reads aligned; touch align.txt"
writes = ["align.txt"]
seconds = 1.0

[[task]]
name = "sort"
run = "echo reading align.txt; echo no space left on device >&2; exit 3"
reads = ["align.txt"]
writes = ["sort.txt"]
seconds = 2.0

[[task]]
name = "call"
run = "true"
reads = ["sort.txt"]
seconds = 1.0
"""


def large_graph(num_tasks: int) -> TaskGraph:
    """A graph with categories and long names that begin alike."""
    graph = workloads.random_dag(num_tasks=num_tasks, seed=1)
    kinds = ("align", "sort", "deduplicate", "call", "merge")
    names = [f"sample_{task // 5:05d}.{kinds[task % 5]}_reads_of_lane_{task % 8}" for task in range(num_tasks)]
    category = np.arange(num_tasks, dtype=np.int32) % len(kinds)
    return replace(graph, name="cohort", task_names=tuple(names), category=category, categories=kinds)


def named_trace(num_jobs: int = 2000, num_procs: int = 128) -> Trace:
    """Generated jobs with partitions, users and recorded waits, as a site's accounting has them."""
    made = lublin(num_jobs, seed=3, num_procs=num_procs)
    draw = np.random.default_rng(5)
    user = draw.choice(6, size=num_jobs, p=[0.4, 0.25, 0.15, 0.1, 0.06, 0.04]).astype(np.int32)
    names = {
        "user_names": ["amelie", "bjorn", "chioma", "dmitri", "elif", "farid"],
        "partition_names": ["short", "wide", "long"],
    }
    return replace(
        made,
        name="site-2026",
        user=user,
        partition=(made.num_procs > 16).astype(np.int32) + (draw.random(num_jobs) < 0.1).astype(np.int32),
        job_id=np.arange(num_jobs, dtype=np.int32) + 880_000,
        wait_s=draw.exponential(5400.0, num_jobs).round(),
        meta=names,
    )


def fill(path: Path, *, num_large: int = 10_000) -> dict[str, str]:
    """Write all sample runs; return their ids by name."""
    ids: dict[str, str] = {}
    with RunLog.open(path) as log:
        _plans(log, ids, num_large)
        _queues(log, ids)
        _trainings(log, ids)
        _racks(log, ids)
        _steered(log, ids)
        _comparison(log, ids)
    _executed(path, ids)
    return ids


def _plans(log: RunLog, ids: dict[str, str], num_large: int) -> None:
    for policy in ("heft", "cpop", "round-robin"):
        settings = {
            "policy": policy,
            "cluster": CLUSTER,
            "command": f"stretto plan workload:cholesky --policy {policy}",
        }
        with recording(log, "plan", "cholesky", settings) as run:
            record_plan(run, plan("workload:cholesky?num_tiles=6", CLUSTER, policy=policy))
        ids[f"plan-{policy}"] = run.id
    with recording(
        log, "plan", "cohort", {"policy": "heft", "cluster": CLUSTER, "command": "stretto plan cohort.json"}
    ) as run:
        record_plan(run, plan(large_graph(num_large), CLUSTER))
    ids["large"] = run.id


def _queues(log: RunLog, ids: dict[str, str]) -> None:
    rules = {"backfill": "easy", "estimates": "user", "pool_rule": "cheapest", "kill": False, "tie": "batch"}
    for strategy in ("saf", "mars"):
        with recording(log, "replay", "site-2026", {"strategy": strategy, "procs": 128}) as run:
            record_replay(run, evaluate_replay(named_trace(), 128, timed=False, run=run, strategy=strategy, **rules))
        ids[f"queue-{strategy}"] = run.id


def _trainings(log: RunLog, ids: dict[str, str]) -> None:
    draw = np.random.default_rng(2)
    for seed, floor in enumerate((2.0, 2.2)):
        with recording(log, "train", "cholesky", {"algorithm": "doppler", "cluster": CLUSTER, "seed": seed}) as run:
            with Rows(run, "row") as rows:
                best = 9.0
                for step in range(160):
                    mean = floor + 2.5 * np.exp(-step / 40) + draw.normal(0, 0.12)
                    best = min(best, mean)
                    stage = "imitation" if step < 40 else "reinforcement"
                    rows.add(episode=8 * step, seconds=0.4 * step, best_s=best, mean_s=mean, stage=stage)
            run.finish("done", {"makespan_s": best, "opponents": {"heft": 2.6}, "train_seconds": 64.0})
        ids[f"train-{seed}"] = run.id
    settings = {"algorithm": "mars", "procs": 128, "budget_s": 60.0}
    live = log.start("train", "site-2026", settings)
    for generation in range(1, 25):
        row = {
            "train": 1.3 - generation / 60,
            "validation": 1.25 - generation / 80,
            "best_validation": 1.25 - generation / 80,
        }
        live.record("row", generation=generation, seconds=1.0 * generation, jobs_per_s=9e3, **row)
    ids["train-live"] = live.id


def _racks(log: RunLog, ids: dict[str, str]) -> None:
    model = rack_model(preset("small-rack"), PAPER_KERNELS)
    num, draw = len(model.resources), np.random.default_rng(4)
    run = log.start("rack", "small-rack", {"policy": "symphony", "cluster": "small-rack"})
    run.attach(TOPOLOGY, packed(rack_topology(model)))
    busy = ["smith-waterman", *[None] * (len(model.processors) - 1)]
    for second in range(20):
        mean = np.clip(draw.normal(0.45, 0.2, num), 0.02, 0.97)
        record_sample(run, BeliefSample(float(second), mean, np.full(num, 0.06), running=busy))
    ids["rack"] = run.id


def _steered(log: RunLog, ids: dict[str, str]) -> None:
    """A live queue, with decisions as the steering layer writes them down."""
    run = log.start("steer", "slurm by saf", {"strategy": "saf", "mode": "sitefactor", "apply": True})
    jobs = [[4100 + k, 60.0 * k, 3600.0 * (1 + (7 * k) % 5), 2 ** ((3 * k) % 6)] for k in range(14)]
    order = [job[0] for job in sorted(jobs[3:], key=lambda job: job[2] * job[3])]
    for step in range(4):
        inputs = {
            "num_procs": 128,
            "running": [job[0] for job in jobs[:3]],
            "jobs": jobs[: 10 + step],
            "num_ended": step,
        }
        known = {job[0] for job in jobs[: 10 + step]}
        chosen = [job for job in order if job in known]
        fields = {"chosen": "saf", "costs": {"saf": 3.1, "fcfs": 4.9}, "fallback": "", "is_applied": True}
        promises = {"given": 14, "kept": 9, "broken": 1, "at_risk": 0}
        run.record("decision", str(step + 1), **fields, order=chosen, inputs=inputs, decide_s=0.01, promises=promises)
    ids["steered"] = run.id


def _comparison(log: RunLog, ids: dict[str, str]) -> None:
    found = compare(["workload:random-dag?num_tasks=60"], CLUSTER, ["heft", "cpop", "random"], seeds=range(7))
    with recording(log, "compare", "random-dag", {"cluster": CLUSTER}) as run:
        record_comparison(run, plain(found.to_json()), "heft")
    ids["compare"] = run.id


def _executed(path: Path, ids: dict[str, str]) -> None:
    """Run a workflow that fails, and leave another one half done, as the log shows it while it runs."""
    from stretto.api.options import Record
    from stretto.errors import StrettoError

    folder = path.parent / "flow"
    folder.mkdir(exist_ok=True)
    (folder / "flow.toml").write_text(FLOW)
    before = os.getcwd()
    os.chdir(folder)
    try:
        run_work("flow.toml", "cpu:2", record=Record(runs=path))
    except StrettoError:
        pass
    finally:
        os.chdir(before)
    with RunLog.open(path) as log:
        ids["failed"] = log.run("latest").id
        ids["live"] = _live(log)


def _live(log: RunLog) -> str:
    from stretto.core.problem import Problem
    from stretto.engines.session import keep_problem

    result = plan("workload:cholesky?num_tiles=7", "cpu:6")
    graph, schedule = result.problem.graph, result.schedule
    run = log.start(
        "run", "cholesky", {"policy": "heft", "cluster": "cpu:6", "engine": "local", "num_tasks": graph.num_tasks}
    )
    keep_problem(run, Problem.of(graph, result.problem.cluster))
    devices = [device.name for device in result.problem.cluster.devices]
    now = 0.8 * schedule.makespan_s
    for task in np.argsort(schedule.start_s, kind="stable").tolist():
        if schedule.start_s[task] > now:
            break
        where, begin, end = (
            devices[schedule.device[task]],
            float(schedule.start_s[task]),
            float(schedule.finish_s[task]),
        )
        run.record("task-started", graph.task_name(task), device=where, attempt=1, at_s=begin)
        if end <= now:
            run.record("task-finished", graph.task_name(task), device=where, attempt=1, start_s=begin, end_s=end)
    return run.id


if __name__ == "__main__":
    import sys

    began = time.perf_counter()
    for name, found in fill(Path(sys.argv[1])).items():
        print(f"{name:<16} {found}")
    print(f"{time.perf_counter() - began:.1f} s")

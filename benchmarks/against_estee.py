"""Simulation against estee: tasks per second, without contention and with max-min sharing."""

from __future__ import annotations

import argparse
import sys
from typing import Any, Literal

import numpy as np
from measure import ask, column, cpu_s, print_table, spread
from peer_venv import peer_python

import instances
from stretto import catalog, registry
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.graphs.simulator import simulate

ESTEE = "estee @ git+https://github.com/It4innovations/estee@5ba5421a23a7d50741636a604fac960639127b89"


def against_estee(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Simulate every seed under both network models and print the table."""
    python = peer_python("estee", ESTEE, sys.executable)
    rows = []
    for seed in range(options.seeds):
        graph, cluster = instances.equal(options.tasks, options.devices, seed, options.ccr)
        theirs = ask(python, "estee_worker.py", graph, cluster, [], options.timeout)
        place = {"instance": f"equal-{graph.name}-m{options.devices}-ccr{options.ccr:g}", "seed": seed}
        for contention, run in theirs["runs"].items():
            spec = {"policy": "hlfet", "contention": contention, "peer": "estee 0.2", "peer_python": theirs["python"]}
            rows.append({"spec": spec, **place, **_compare(run, Problem.of(graph, cluster), contention)})
    _table(rows)
    return rows


def _compare(run: dict[str, float], problem: Problem, contention: Literal["none", "fair"]) -> dict[str, float]:
    planner = registry.construct("policy", "hlfet", catalog.PLANNERS, {})

    def ours() -> Schedule:
        return simulate(problem, planner.plan(problem, Budget()), contention=contention)

    makespan_s = ours().makespan_s  # compiles, or loads what was compiled
    return {
        "peer_tasks_per_s": problem.num_tasks / run["cpu_s"],
        "tasks_per_s": problem.num_tasks / cpu_s(ours),
        "peer_makespan_s": run["makespan_s"],
        "makespan_s": makespan_s,
    }


def _table(rows: list[dict[str, Any]]) -> None:
    print("\nSimulation against estee 0.2: tasks per CPU second, median [quartiles]")
    print("Each side schedules by b-level and simulates; estee decides while it simulates, we plan first.")
    lines = [("contention", "theirs", "ours", "ratio", "span median")]
    for contention in dict.fromkeys(row["spec"]["contention"] for row in rows):
        mine = [row for row in rows if row["spec"]["contention"] == contention]
        theirs, ours = column(mine, "peer_tasks_per_s"), column(mine, "tasks_per_s")
        span = np.median(column(mine, "makespan_s") / column(mine, "peer_makespan_s"))
        lines.append((contention, spread(theirs), spread(ours), f"{np.median(ours / theirs):.0f}", f"{span:.4f}"))
    print_table(lines)

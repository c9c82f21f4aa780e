"""Planning against SAGA: the same heuristics, their time and their makespans."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
from measure import ask, column, cpu_s, print_table, spread
from peer_venv import find_python, peer_python

import instances
from stretto import catalog, registry
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.simulator import simulate


def against_saga(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run every policy on every seed and print the table."""
    newer = find_python("3.12")
    version = "2.1.0" if newer else "2.0.2"  # the later release needs Python 3.12
    python = peer_python(f"saga-{version}", f"anrg-saga=={version}", newer or sys.executable)
    rows = []
    for seed in range(options.seeds):
        graph, cluster = instances.related(options.tasks, options.devices, seed, options.ccr)
        theirs = ask(python, "saga_worker.py", graph, cluster, options.policies, options.timeout)
        if seed == 0:
            for name, reason in theirs["skipped"].items():
                print(f"{name}: left out, {reason}")
        for policy, run in theirs["runs"].items():
            row = _compare(policy, run, graph, cluster)
            spec = {"policy": policy, "peer": f"saga {theirs['version']}", "peer_python": theirs["python"]}
            place = {"instance": f"related-{graph.name}-m{options.devices}-ccr{options.ccr:g}", "seed": seed}
            rows.append({"spec": spec, **place, "peer_build_s": theirs["build_s"], **row})
            print(f"  seed {seed} {policy}: {row['peer_cpu_s']:.3f} s, ours {row['plan_s']:.5f} s", file=sys.stderr)
    _table(rows)
    return rows


def _compare(policy: str, run: dict[str, Any], graph: TaskGraph, cluster: Cluster) -> dict[str, Any]:
    """Plan the same problem, and bring both schedules to one definition of makespan."""
    planner = registry.construct("policy", policy, catalog.PLANNERS, {})
    problem = Problem.of(graph, cluster)
    plan = planner.plan(problem, Budget())  # compiles, or loads what was compiled
    peer_makespan, fault = _recheck(problem, run)
    return {
        "peer_cpu_s": run["cpu_s"],
        "plan_s": cpu_s(lambda: planner.plan(problem, Budget())),
        "total_s": cpu_s(lambda: planner.plan(Problem.of(graph, cluster), Budget())),
        "peer_claimed_s": run["claimed_s"],
        "peer_makespan_s": peer_makespan,
        "makespan_s": simulate(problem, plan).makespan_s,
        "fault": fault,
    }


def _recheck(problem: Problem, run: dict[str, Any]) -> tuple[float | None, str | None]:
    """Return the makespan that the peer's assignment and order really have, and what is wrong with its claim."""
    device = np.array(run["device"], dtype=np.int32)
    if device.min() < 0:
        return None, f"the peer left out {int((device < 0).sum())} tasks"
    plan = Plan.from_times(device, np.array(run["start"]), np.array(run["finish"]), problem.graph.topo)
    makespan = simulate(problem, plan, discipline="sequence").makespan_s
    if makespan > run["claimed_s"] * (1 + 1e-9):
        return makespan, f"the peer claims {run['claimed_s']}, its own order takes {makespan}"
    return makespan, None


def _table(rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    build = np.median(column(rows, "peer_build_s"))
    print(f"\nPlanning against {rows[0]['spec']['peer']}: CPU seconds, median [quartiles]; makespan ours / theirs")
    print(f"Building objects takes the peer {build:.3g} s; 'with build' counts that, and Problem.of on our side.")
    lines = [("policy", "theirs", "ours", "ratio", "with build", "span min", "median", "max")]
    for policy in dict.fromkeys(row["spec"]["policy"] for row in rows):
        mine = [row for row in rows if row["spec"]["policy"] == policy]
        theirs, ours, everything = (column(mine, key) for key in ("peer_cpu_s", "plan_s", "total_s"))
        ratio = [row["makespan_s"] / row["peer_makespan_s"] for row in mine if row["peer_makespan_s"]]
        spans = np.quantile(ratio, (0, 0.5, 1)) if ratio else np.full(3, np.nan)
        whole = (theirs + column(mine, "peer_build_s")) / everything
        ratios = (f"{np.median(theirs / ours):.0f}", f"{np.median(whole):.0f}")
        lines.append((policy, spread(theirs), spread(ours), *ratios, *(f"{value:.4f}" for value in spans)))
    print_table(lines)
    for row in rows:
        if row["fault"]:
            print(f"  {row['spec']['policy']} seed {row['seed']}: {row['fault']}")

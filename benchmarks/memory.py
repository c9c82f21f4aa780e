"""Plans within memory: random instances whose residents fill 70 to 95 % of all memory, every search against CP-SAT.

    python benchmarks/memory.py --instances 100
    python benchmarks/memory.py --first 150 --instances 150        # instances that no rule was chosen on
    python benchmarks/memory.py --instances 10 --policies doppler-zero,lns

An instance counts where CP-SAT or a packing finds a plan that the simulator runs. ``feasible`` is how many of these a
policy solves, ``beyond`` how often it exceeds a device's memory, ``wrong`` how often it says optimal above the lower
bound, ``ratio`` its median makespan over the best of all policies. Searches are limited by evaluations and repeat.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np
from ledger import record
from measure import print_table

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Device
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.errors import Infeasible
from stretto.graphs.evaluate import PlanResult, evaluate

SEARCHES = {
    "doppler": {"max_evaluations": 2000, "train_share": 0.0},
    "doppler-zero": {},
    "annealing": {"max_evaluations": 2000},
    "tabu": {"max_evaluations": 300},
    "lns": {"max_evaluations": 2000},
}


def tight(seed: int) -> Problem:
    """Make a random graph with weights, task memory and data, on devices of unequal memory."""
    rng = np.random.default_rng([29, seed])
    n, m = int(rng.integers(12, 40)), int(rng.integers(2, 6))
    build = GraphBuilder(f"tight-{seed}")
    weights = rng.integers(2, 20, n).astype(float)
    tasks = [
        build.task(f"t{i}", float(rng.uniform(1, 3)), resident_bytes=weights[i], memory_bytes=float(rng.integers(0, 3)))
        for i in range(n)
    ]
    for i in range(1, n):
        for j in rng.choice(np.arange(max(0, i - 4), i), size=min(i, 2), replace=False).tolist():
            build.edge(tasks[j], tasks[i], float(rng.integers(0, 3)))
    sizes = rng.uniform(0.7, 1.5, m)
    limits = np.ceil(weights.sum() / rng.uniform(0.7, 0.95) * sizes / sizes.sum()) + 4
    devices = [Device(f"g{i}", speed=float(rng.choice([1.0, 2.0])), memory_bytes=limits[i]) for i in range(m)]
    return Problem.of(build.graph(), Cluster.uniform(devices, bandwidth=4.0))


def solved(problem: Problem, policy: str, seed: int, limit: float | None) -> PlanResult | None:
    try:
        return evaluate(problem, policy, params=SEARCHES.get(policy, {}), budget=Budget(seed, limit, 1))
    except Infeasible:
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the first instance; others than those looked at before")
    parser.add_argument("--policies", default=",".join(SEARCHES))
    parser.add_argument("--exact-limit", type=float, default=2.0)
    parser.add_argument("--ledger", action="store_true", help="add the result to benchmarks/ledger.jsonl")
    options = parser.parse_args()
    names = options.policies.split(",")
    found: dict[str, list[tuple[float, bool, bool]]] = {name: [] for name in names}
    count = 0
    for seed in range(options.first, options.first + options.instances):
        problem = tight(seed)
        limits = [device.memory_bytes for device in problem.cluster.devices]
        results = {name: solved(problem, name, seed, None) for name in names}
        results["cp-sat"] = solved(problem, "cp-sat", seed, options.exact_limit)
        known = [one.makespan_s for one in results.values() if one is not None]
        if not known:
            continue
        count += 1
        for name in names:
            one = results[name]
            if one is None:
                print(f"instance {seed}: {name} finds no plan", flush=True)
                continue
            beyond = any(a > b for a, b in zip(one.peak_memory_bytes, limits, strict=True))
            wrong = bool(one.plan.info.get("optimal")) and one.makespan_s > one.lower_bound_s * (1 + 1e-6)
            found[name].append((one.makespan_s / min(known), beyond, wrong))
    lines = [("policy", "solvable", "feasible", "beyond", "wrong", "ratio")]
    for name, rows in found.items():
        ratio = f"{statistics.median(row[0] for row in rows):.3f}" if rows else "-"
        bad = str(sum(row[1] for row in rows)), str(sum(row[2] for row in rows))
        lines.append((name, str(count), str(len(rows)), *bad, ratio))
        if options.ledger and count:
            text = f"{count} solvable of {options.instances} instances from {options.first} on"
            record(f"memory/{name}/feasible", 100 * len(rows) / count, "%", bar=">= 100", instances=text)
            record(f"memory/{name}/beyond", sum(row[1] for row in rows), "plans", bar="<= 0", instances=text)
    print_table(lines)


if __name__ == "__main__":
    main()

"""Nodes that pack: the twin, the distance of search from proven optima, the speed of HEFT, and recorded workflows.

``python benchmarks/packing.py twin --cases 10000``: compiled simulator against its reference, on random cases.
``python benchmarks/packing.py optimum --instances 200 --time-limit 2``: annealing beside what CP-SAT proves.
``python benchmarks/packing.py speed``: HEFT on 5,000 tasks that need cores and memory, 32 nodes.
``python benchmarks/packing.py recorded``: WfFormat files on the machines that they were recorded on.
``python benchmarks/packing.py memory --instances 100``: weights at 70 to 95 % of all memory, by every fast policy.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import stretto
from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Device
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.errors import Infeasible, StrettoError
from stretto.graphs.evaluate import evaluate, planner_named
from stretto.graphs.memory.needs import MemoryNeeds

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("STRETTO_DATA", HERE.parent.parent / "shared" / "data"))


def twin(cases: int) -> None:
    """Execute random cases both ways; the first difference raises."""
    sys.path.insert(0, str(HERE.parent / "tests" / "graphs"))
    from test_packed_simulator import compare_with_reference

    ran = sum(compare_with_reference(100_000 + seed) for seed in range(cases))
    print(
        f"{cases:,} random cases with capacities: equal to the last bit; {ran:,} ran to their end, the others failed alike"
    )


def small_instance(seed: int) -> Problem:
    """8 to 14 tasks with cores and memory on 2 or 3 nodes, a random graph, whole seconds."""
    rng = np.random.default_rng([seed, 2828])
    n = int(rng.integers(8, 15))
    build = GraphBuilder(f"small{seed}")
    tasks = [
        build.task(
            f"t{i}",
            float(rng.integers(1, 20)),
            cores=float(rng.choice([1, 1, 2, 3, 4])),
            memory_bytes=float(rng.choice([1, 2, 4, 6])) * 1e9,
        )
        for i in range(n)
    ]
    for i in range(1, n):
        for j in rng.choice(i, size=min(i, int(rng.integers(0, 3))), replace=False).tolist():
            build.edge(tasks[j], tasks[i], float(rng.integers(0, 5)) * 1e9)
    speeds = rng.choice([1.0, 1.0, 1.5], int(rng.integers(2, 4)))
    nodes = [Device(f"n{i}", "cpu", float(s), 8e9, 4.0, gpus=0.0, packs=True) for i, s in enumerate(speeds)]
    return Problem.of(build.graph(), Cluster.uniform(nodes))


def optimum(instances: int, time_limit_s: float) -> None:
    """Print how often annealing is within 1 % of the proven optimum, and how often HEFT is."""
    within = heft_within = proven = 0
    worst = 0.0
    for seed in range(instances):
        problem = small_instance(seed)
        exact = evaluate(problem, "cp-sat", budget=Budget(time_limit_s=20.0))
        if not exact.is_proven_optimal:
            continue
        proven += 1
        found = evaluate(problem, "annealing", budget=Budget(seed, time_limit_s))
        above = found.makespan_s / exact.makespan_s - 1
        worst = max(worst, above)
        within += above <= 0.01
        heft_within += evaluate(problem, "heft").makespan_s <= 1.01 * exact.makespan_s
    print(f"proven by CP-SAT within 20 s: {proven} of {instances}")
    print(f"annealing, {time_limit_s:g} s: within 1 % on {within} of {proven}; worst {100 * worst:.2f} % above")
    print(f"heft: within 1 % on {heft_within} of {proven}")


def speed() -> None:
    """Print the CPU time of HEFT on 5,000 packed tasks, warm."""
    rng = np.random.default_rng(1)
    graph = stretto.workloads.random_dag(num_tasks=5000, seed=1)
    n = graph.num_tasks
    needs = replace(graph, cores=rng.choice([1.0, 2.0, 4.0, 8.0], n), memory_bytes=rng.choice([1e9, 2e9, 8e9, 16e9], n))
    problem = Problem.of(needs, Cluster.parse("node:32*16c64GB"))
    for name in ("heft", "peft", "cpop", "mct"):
        planner = planner_named(name)
        planner.plan(problem, Budget())
        spent = []
        for _ in range(5):
            begin = time.process_time()
            planner.plan(problem, Budget())
            spent.append(time.process_time() - begin)
        print(f"{name}: {1e3 * float(np.median(spent)):.1f} ms of CPU time, {n:,} packed tasks on 32 nodes")


def recorded(policy: str, every: int) -> None:
    """Print how often a plan beats the recorded makespan on the recorded machines."""
    files = sorted((DATA / "wfformat").glob("*.json*"))[::every]
    ratios, refused = [], []
    for path in files:
        try:
            problem = stretto.problem(str(path), "recorded")
            took = float(problem.graph.meta["makespan_s"])
            ratios.append(evaluate(problem, policy).makespan_s / took)
        except (StrettoError, TypeError, KeyError) as error:
            refused.append(f"{path.name}: {error}")
    beats = sum(ratio < 1 for ratio in ratios)
    print(f"{policy}: shorter than recorded on {beats} of {len(files)} files; median ratio {np.median(ratios):.3f}")
    print("\n".join(refused))


def memory(instances: int) -> None:
    """Print how often policies find a plan where packing or CP-SAT does."""
    policies = ("heft", "peft", "etf", "mct", "round-robin", "annealing", "tabu", "doppler-zero")
    solved = dict.fromkeys(policies, 0)
    possible = 0
    for seed in range(instances):
        problem = tight_instance(seed)
        plans = {}
        for name in policies:
            try:
                result = evaluate(problem, name, budget=Budget(seed, 0.2, num_threads=1))
            except Infeasible:
                continue
            needs = MemoryNeeds.of(problem)
            assert needs is not None
            assert needs.fits(result.plan.assignment)
            plans[name] = result
        possible += bool(plans)
        for name in plans:
            solved[name] += 1
    print(f"{instances} instances at 70 to 95 % of all memory; {possible} solved by some policy")
    print(", ".join(f"{name} {count}" for name, count in solved.items()))


def tight_instance(seed: int) -> Problem:
    """24 tasks with weights and data on 4 devices whose memory is nearly full."""
    rng = np.random.default_rng([seed, 70])
    n, m = 24, 4
    build = GraphBuilder("tight")
    weights = rng.integers(10, 90, n).astype(float)
    tasks = [build.task(f"t{i}", float(rng.uniform(1, 3)), resident_bytes=weights[i]) for i in range(n)]
    for i in range(1, n):
        for j in rng.choice(np.arange(max(0, i - 4), i), size=min(i, 2), replace=False).tolist():
            build.edge(tasks[j], tasks[i], float(rng.integers(0, 4)))
    limit = float(np.ceil(weights.sum() / m / rng.uniform(0.7, 0.95)))
    return Problem.of(build.graph(), Cluster.uniform([Device(f"g{i}", memory_bytes=limit) for i in range(m)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("twin", "optimum", "speed", "recorded", "memory"))
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--instances", type=int, default=200)
    parser.add_argument("--time-limit", type=float, default=2.0)
    parser.add_argument("--policy", default="heft")
    parser.add_argument("--every", type=int, default=1, help="of the recorded files, take every so many")
    given = parser.parse_args()
    if given.part == "twin":
        twin(given.cases)
    elif given.part == "optimum":
        optimum(given.instances, given.time_limit)
    elif given.part == "speed":
        speed()
    elif given.part == "recorded":
        recorded(given.policy, given.every)
    else:
        memory(given.instances)


if __name__ == "__main__":
    main()

"""The planner ``doppler`` against every other search at equal time, on 29 instances of four families.

    python benchmarks/league.py --seconds 30 --seeds 5                     # the whole league, wall clock, two threads
    python benchmarks/league.py --seconds 6 --seeds 1 --clock cpu          # on a machine that others use too
    python benchmarks/league.py --graphs random,lu --again doppler         # measure one policy anew
    python benchmarks/league.py --drawn 7 --number 24 --seconds 10 --seeds 1 --clock cpu     # instances drawn by a seed
    python benchmarks/league.py --table                                    # only print what has been measured

Every opponent has the whole time to itself: annealing as it is and cooled down ten times further, tabu search,
large-neighborhood search; ``doppler-zero`` and the best of all list planners end when they are done. Plans are executed
by the simulator in sequence and without contention. Rows go to benchmarks/results/league-SETTING.jsonl as they come; a
run that was interrupted goes on where it stopped. ``--clock cpu`` limits planners by the CPU time of this process on
one thread, so that a busy machine does not decide. Real graphs are read from the folder named by STRETTO_DATA, or
``../shared/data`` beside the repository.

``behind`` is how far ``doppler`` is above the best other policy, median over the seeds, with the least and the largest;
negative means ahead. The last lines give the share of instances on which it is first or within 0.1 %, with the 95 %
interval of Wilson, and the worst deficit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from doppler_graphs import HERE, Instance
from league_drawn import drawn
from league_instances import league
from ledger import record
from measure import print_table
from queue_logs import commit

from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.doppler.zero import LISTS
from stretto.graphs.evaluate import evaluate, planner_named

OWN = "doppler"
BEST_LIST = "best-list"
#: Name in the table, policy, its parameters.
POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    OWN: (OWN, {}),
    "annealing": ("annealing", {}),
    "annealing-cold": ("annealing", {"cold": 5e-5}),
    "tabu": ("tabu", {}),
    "lns": ("lns", {}),
    "doppler-zero": ("doppler-zero", {}),
    BEST_LIST: (BEST_LIST, {}),
}
#: Policies whose answer takes no notice of the time; one seed is enough for lists.
WITHIN, WORST = 0.001, 0.005


class Key(NamedTuple):
    """What a row measured."""

    graph: str
    policy: str
    seed: int


class Results:
    """The rows of one setting, read from its file and added to it."""

    def __init__(self, path: Path, again: str) -> None:
        self.path = path
        self.rows: dict[Key, dict[str, Any]] = {}
        if path.is_file():
            for line in path.read_text().splitlines():
                row = json.loads(line)
                self.rows[Key(row["graph"], row["policy"], row["seed"])] = row
        for key in [key for key in self.rows if key.policy in again.split(",")]:
            del self.rows[key]

    def add(self, key: Key, row: dict[str, Any]) -> None:
        self.rows[key] = row
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def values(self, graph: str, policy: str) -> dict[int, float]:
        return {k.seed: row["makespan_s"] for k, row in self.rows.items() if k.graph == graph and k.policy == policy}


def measured(problem: Problem, policy: str, seed: int, options: argparse.Namespace) -> tuple[float, float]:
    """Return the makespan and the seconds of planning."""
    name, params = POLICIES[policy]
    if name == BEST_LIST:
        found = [evaluate(problem, one) for one in LISTS if planner_named(one).supports(problem) is None]
        return min(one.makespan_s for one in found), sum(one.plan_seconds for one in found)
    threads = 1 if options.clock == "cpu" else options.threads
    result = evaluate(problem, name, params=params, budget=Budget(seed, options.seconds, threads))
    return result.makespan_s, result.plan_seconds


def run(results: Results, instances: list[Instance], options: argparse.Namespace) -> None:
    """Measure what is missing, all policies of a seed one after the other."""
    for seed in range(options.seeds):
        for family, name, problem in instances:
            for policy in options.policies.split(","):
                key = Key(name, policy, 0 if policy == BEST_LIST else seed)
                if key in results.rows:
                    continue
                value, seconds = measured(problem, policy, seed, options)
                row: dict[str, Any] = {**key._asdict(), "family": family, "makespan_s": value, "plan_seconds": seconds}
                row |= {"tasks": problem.num_tasks, "devices": problem.num_devices, "seconds": options.seconds}
                row |= {"clock": options.clock, "threads": options.threads, "commit": commit()}
                results.add(key, row)
                print(f"{name} seed {seed} {policy}: {value:.6g} in {seconds:.1f} s", flush=True)


def behind(results: Results, graph: str) -> list[float]:
    """Return by how much the own policy is above the best other one, per seed that all have measured."""
    own = results.values(graph, OWN)
    others = {policy: results.values(graph, policy) for policy in POLICIES if policy != OWN}
    lists = min(others.pop(BEST_LIST).values(), default=float("inf"))
    seeds = [seed for seed in own if all(seed in values for values in others.values())]
    return [own[s] / min(lists, *(values[s] for values in others.values())) - 1 for s in seeds]


def report(results: Results, instances: list[Instance], options: argparse.Namespace) -> None:
    """Print the table: each policy's median above the best plan of all, and the verdict."""
    names = list(POLICIES)
    lines = [("graph", "tasks", "devices", *names, "behind", "least", "largest")]
    medians = []
    for _, name, problem in instances:
        late = behind(results, name)
        if not late:
            continue
        values = {policy: list(results.values(name, policy).values()) for policy in names}
        best = min(min(one) for one in values.values() if one)
        shares = [f"{statistics.median(values[p]) / best - 1:.2%}" if values[p] else "-" for p in names]
        medians.append(statistics.median(late))
        spread = (f"{medians[-1]:+.2%}", f"{min(late):+.2%}", f"{max(late):+.2%}")
        lines.append((name, str(problem.num_tasks), str(problem.num_devices), *shares, *spread))
    if not medians:
        print("nothing has been measured")
        return
    print_table(lines)
    print("Policies: median above the best plan that any of them found.")
    first = sum(value <= WITHIN for value in medians)
    low, high = wilson(first, len(medians))
    print(f"{OWN} is first or within {WITHIN:.1%} on {first} of {len(medians)} ({low:.0%} to {high:.0%});", end=" ")
    over = sum(value > WORST for value in medians)
    print(f"worst deficit {max(medians):.2%}, above {WORST:.1%} on {over}")
    if options.ledger:
        claim = "doppler/league" if options.drawn is None else "doppler/league-drawn"
        text = f"{len(medians)} graphs, {options.seconds:g} s by {options.clock} clock"
        measured_at = ", ".join(sorted({row["commit"] for row in results.rows.values()}))
        more = {"instances": text, "seeds": str(options.seeds), "note": f"measured at {measured_at}"}
        ends = {"low": 100 * low, "high": 100 * high}
        record(f"{claim}/first", 100 * first / len(medians), "% of graphs", bar=">= 90", **ends, **more)
        more |= {"baseline": "best other policy", "bar": "<= 0.5"}
        record(f"{claim}/worst-deficit", 100 * max(medians), "%", **more)


def wilson(hits: int, number: int, z: float = 1.96) -> tuple[float, float]:
    """Return the 95 % interval of a share."""
    share = hits / number
    middle = (share + z * z / (2 * number)) / (1 + z * z / number)
    half = z / (1 + z * z / number) * float(np.sqrt(share * (1 - share) / number + z * z / (4 * number * number)))
    return middle - half, middle + half


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--graphs", default="", help="only instances whose names hold one of these texts")
    parser.add_argument("--drawn", type=int, metavar="SEED", help="instances drawn by a seed in place of the league's")
    parser.add_argument("--number", type=int, default=24, help="of drawn instances")
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--again", default="", help="policies to measure anew")
    parser.add_argument("--table", action="store_true", help="only print what has been measured")
    parser.add_argument("--ledger", action="store_true", help="add the result to benchmarks/ledger.jsonl")
    options = parser.parse_args()
    if options.ledger and options.graphs:
        parser.error("--ledger needs all graphs")
    if options.clock == "cpu":
        time.perf_counter = time.process_time
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    results = Results(folder / f"league-{options.seconds:g}s-{options.clock}.jsonl", options.again)
    instances = list(league(options.graphs) if options.drawn is None else drawn(options.drawn, options.number))
    if not options.table:
        run(results, instances, options)
    report(results, instances, options)


if __name__ == "__main__":
    main()

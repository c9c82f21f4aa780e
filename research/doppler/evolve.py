"""Train the generalist: linear policies that complement each other, by evolution on many small graphs.

    python -m research.doppler.evolve policies.npz --policies 4 --generations 80
    python -m research.doppler.evolve research/doppler/fold-0.npz --without-fold 0      # 0, 1, 2: to judge by

The first policy minimizes the mean of log(makespan / best list planner) over the training problems. Each further one
minimizes the same with the best of itself and the policies before it. A generation is judged by a random third of the
problems, the same for all its members. Validation problems have other draws of the same families; ONNX models, recorded
workflows and the paper's graphs are in neither set, so that they can be used to judge. With ``--without-fold`` every
third family is left out, so that policies can be judged on families that they have never seen.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stretto import catalog, registry
from stretto.core.cluster import Cluster
from stretto.core.csr import Floats
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.files.checkpoint import save
from stretto.graphs.doppler.evolution import played_policy
from stretto.graphs.doppler.kernels.state import NUM_CANDIDATE_FEATURES
from stretto.graphs.doppler.linear import LINEAR, NUM_WEIGHTS, weight_scale
from stretto.graphs.doppler.rollout import Player
from stretto.graphs.doppler.zero import lists_for, planned
from stretto.graphs.workloads.random_cluster import random_cluster
from stretto.learning.cma import Cma

#: What is trained on: a workload and its parameters.
FAMILIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("random-dag", {"num_tasks": 96, "ccr": 0.3}),
    ("random-dag", {"num_tasks": 96, "ccr": 1.0}),
    ("random-dag", {"num_tasks": 96, "ccr": 4.0, "width": 6}),
    ("random-dag", {"num_tasks": 192, "ccr": 1.0, "share": True}),
    ("random-dag", {"num_tasks": 400, "ccr": 1.0}),
    ("random-dag", {"num_tasks": 300, "ccr": 0.5, "width": 40}),
    ("random-dag", {"num_tasks": 60, "ccr": 2.0}),
    ("erdos-renyi", {"num_tasks": 96, "ccr": 1.0}),
    ("erdos-renyi", {"num_tasks": 250, "ccr": 0.5}),
    ("series-parallel", {"num_tasks": 96, "ccr": 2.0}),
    ("series-parallel", {"num_tasks": 300, "ccr": 1.0}),
    ("cholesky", {"num_tiles": 7}),
    ("cholesky", {"num_tiles": 10}),
    ("lu", {"num_tiles": 5}),
    ("lu", {"num_tiles": 8}),
    ("qr", {"num_tiles": 5}),
    ("qr", {"num_tiles": 8}),
    ("fft", {"num_points": 16}),
    ("fft", {"num_points": 64}),
    ("gaussian-elimination", {"num_columns": 12}),
    ("gaussian-elimination", {"num_columns": 24}),
    ("stencil", {"num_cells": 10, "num_steps": 8}),
    ("stencil", {"num_cells": 20, "num_steps": 16}),
    ("wavefront", {"num_rows": 9, "num_columns": 9}),
    ("wavefront", {"num_rows": 16, "num_columns": 16}),
    ("fork-join", {"width": 12, "num_stages": 5}),
    ("fork-join", {"width": 30, "num_stages": 8}),
    ("map-reduce", {"num_maps": 24, "num_reduces": 6}),
    ("map-reduce", {"num_maps": 100, "num_reduces": 12}),
    ("in-tree", {"depth": 6}),
    ("out-tree", {"depth": 6}),
    ("transformer", {"num_layers": 2, "num_shards": 4}),
    # Cut otherwise than the paper's files, which are left to judge by.
    ("chainmm", {"row_parts": 3, "noise": 0.1, "paper_costs": True}),
    ("ffnn-forward", {"batch_parts": 3, "hidden_parts": 3, "noise": 0.1, "paper_costs": True}),
    ("llama-block", {"token_parts": 1, "feature_parts": 4, "noise": 0.1, "paper_costs": True}),
)
DEVICES = (4, 8, 16)
POPULATION = 24
NUM_FOLDS = 3


class TrainingProblem(NamedTuple):
    """A problem to learn from, and the makespan of the best list planner."""

    player: Player
    list_s: float

    def cost(self, policy: Floats) -> float:
        """Return the logarithm of a policy's makespan over the best list planner's."""
        return float(np.log(played_policy(self.player.problem, self.player, policy).makespan_s / self.list_s))


def training_problems(
    seed: int, repeats: int = 1, families: Sequence[tuple[str, dict[str, Any]]] = FAMILIES
) -> list[TrainingProblem]:
    """Make the problems: every family on 4, 8 and 16 devices, equal and unequal ones."""
    rng = np.random.default_rng([seed, 77])
    made = []
    for name, params in families:
        for num_devices in DEVICES:
            for _ in range(repeats):
                draw = int(rng.integers(2**31))
                problem = Problem.of(
                    graph := _graph(name, params, draw), _cluster(graph, num_devices, draw, "paper_costs" in params)
                )
                lists = [found[1].makespan_s for one in lists_for(problem) if (found := planned(problem, one, 0))]
                made.append(TrainingProblem(Player(problem, LINEAR, num_threads=1), min(lists)))
    return made


def family_fold(number: int) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return every third family, beginning with the given one; no family is in two folds."""
    names = sorted({name for name, _ in FAMILIES})[number::NUM_FOLDS]
    return tuple(one for one in FAMILIES if one[0] in names)


def _graph(name: str, params: dict[str, Any], seed: int) -> TaskGraph:
    make: Callable[..., TaskGraph] = registry.lookup("workload", name, catalog.WORKLOADS)
    return make(**params, seed=seed) if "seed" in make.__annotations__ else make(**params)


def _cluster(graph: TaskGraph, num_devices: int, seed: int, is_paper: bool) -> Cluster:
    """Devices for a graph: equal ones or unequal ones, with links that make transfers matter."""
    rng = np.random.default_rng([seed, 8])
    if graph.kinds and graph.kind_duration_s is not None:
        gpus = max(1, num_devices // 4)
        return Cluster.parse(f"cpu:{num_devices - gpus},gpu:{gpus}@12GB/s")
    if is_paper or rng.random() < 0.4:
        return Cluster.parse(f"gpu:{num_devices}")
    spread = float(rng.choice([2.0, 8.0]))
    return random_cluster(num_devices, seed=seed, speed_spread=spread, link_spread=float(rng.choice([1.0, 4.0])))


def first_policy() -> Floats:
    """Return the rule that evolution starts from: the b-level selects, the finish of a task and its readers places."""
    policy = np.zeros(NUM_WEIGHTS)
    policy[1] = 1.0
    policy[[NUM_CANDIDATE_FEATURES + feature for feature in (5, 8, 9)]] = -1.0
    return policy


def costs(policy: Floats, problems: Sequence[TrainingProblem], threads: int = 2) -> Floats:
    with ThreadPoolExecutor(threads) as pool:
        return np.array(list(pool.map(lambda one: one.cost(policy), problems)))


def evolve(
    before: Sequence[Floats],
    training: Sequence[TrainingProblem],
    validation: Sequence[TrainingProblem],
    generations: int,
    seed: int,
    tell: Callable[[str], None] = print,
) -> Floats:
    """Return the policy that complements those before it best."""
    rng = np.random.default_rng([seed, len(before)])
    start = before[0] if before else first_policy()
    cma = Cma(start, 0.5 if before else 0.3, weight_scale(start), POPULATION)
    known = np.min([costs(one, training) for one in before], axis=0) if before else np.full(len(training), np.inf)
    judged = np.min([costs(one, validation) for one in before], axis=0) if before else np.full(len(validation), np.inf)
    for generation in range(1, generations + 1):
        part = rng.choice(len(training), max(1, len(training) // 3), replace=False)
        some = [training[number] for number in part]
        cma.tell(np.array([np.minimum(costs(one, some), known[part]).mean() for one in cma.ask(rng)]))
        if generation % 10 == 0:
            found = np.minimum(costs(cma.mean, validation), judged)
            share = float(np.mean(found < -1e-9))
            tell(
                f"policy {len(before) + 1}, generation {generation}: validation {np.exp(found.mean()):.4f} "
                f"of the best list, better than it on {share:.0%}"
            )
    return cma.mean


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="where the policies are written")
    parser.add_argument("--policies", type=int, default=4)
    parser.add_argument("--generations", type=int, default=80)
    parser.add_argument("--repeats", type=int, default=3, help="training problems per family and number of devices")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--without-fold", type=int, choices=range(NUM_FOLDS), help="leave every third family out")
    given = parser.parse_args()
    left_out = () if given.without_fold is None else family_fold(given.without_fold)
    families = [one for one in FAMILIES if one not in left_out]
    training = training_problems(given.seed + 1, given.repeats, families)
    validation = training_problems(given.seed + 2, families=families)
    print(f"{len(training)} problems to train on, {len(validation)} to validate on", flush=True)
    policies: list[Floats] = []
    for _ in range(given.policies):
        policies.append(evolve(policies, training, validation, given.generations, given.seed))
        names = sorted({name for name, _ in families})
        save(given.file, {"policies": np.array(policies)}, {"families": names, **vars(given) | {"file": "policies"}})


if __name__ == "__main__":
    main()

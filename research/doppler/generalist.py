"""Train one pair of Doppler policies on many graphs, for use on graphs that they have never seen.

    python -m research.doppler.generalist weights.npz --budget-s 3600

Every visit to a graph is one update of the shared weights: either the best known plans of that graph are
imitated (at first those of a short search), or episodes are played and reinforced.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stretto import catalog, registry
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.files.checkpoint import save
from stretto.graphs.doppler.settings import DopplerSettings
from stretto.graphs.doppler.trainer import DopplerTrainer, Learning
from stretto.graphs.workloads.random_cluster import random_cluster

#: What is trained on: a workload and its parameters. ONNX models and recorded workflows (and the generators that
#: resemble them) are left out, so that they can be used to judge.
FAMILIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("random-dag", {"num_tasks": 96, "ccr": 0.3}),
    ("random-dag", {"num_tasks": 96, "ccr": 1.0}),
    ("random-dag", {"num_tasks": 96, "ccr": 4.0, "width": 6}),
    ("random-dag", {"num_tasks": 192, "ccr": 1.0, "share": True}),
    ("erdos-renyi", {"num_tasks": 96, "ccr": 1.0}),
    ("series-parallel", {"num_tasks": 96, "ccr": 2.0}),
    ("cholesky", {"num_tiles": 7}),
    ("lu", {"num_tiles": 5}),
    ("qr", {"num_tiles": 5}),
    ("fft", {"num_points": 16}),
    ("gaussian-elimination", {"num_columns": 12}),
    ("stencil", {"num_cells": 10, "num_steps": 8}),
    ("wavefront", {"num_rows": 9, "num_columns": 9}),
    ("fork-join", {"width": 12, "num_stages": 5}),
    ("map-reduce", {"num_maps": 24, "num_reduces": 6}),
    ("in-tree", {"depth": 6}),
    ("out-tree", {"depth": 6}),
    # Cut otherwise than the paper's files, which are left to judge by.
    ("chainmm", {"row_parts": 3, "noise": 0.1, "paper_costs": True}),
    ("ffnn-forward", {"batch_parts": 3, "hidden_parts": 3, "noise": 0.1, "paper_costs": True}),
    ("llama-block", {"token_parts": 1, "feature_parts": 4, "noise": 0.1, "paper_costs": True}),
)
DEVICES = (4, 8)


class TrainingProblem(NamedTuple):
    """A named problem to learn from."""

    name: str
    problem: Problem


def training_problems(seed: int, repeats: int = 2) -> list[TrainingProblem]:
    """Make the problems: every family on equal and on unequal devices."""
    rng = np.random.default_rng([seed, 7])
    made = []
    for name, params in FAMILIES:
        for num_devices in DEVICES:
            for _ in range(repeats):
                draw = int(rng.integers(2**31))
                graph = registry.lookup("workload", name, catalog.WORKLOADS)(**params, seed=draw)
                cluster = _cluster(graph, num_devices, draw, "paper_costs" in params)
                made.append(TrainingProblem(f"{name} on {num_devices}", Problem.of(graph, cluster)))
    return made


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


@dataclass(frozen=True)
class Course:
    """How the generalist is trained.

    Attributes
    ----------
    teacher, teacher_moves
        The search whose plans are imitated at first, and how many moves it may make on each graph.
    imitated
        The share of updates that imitate; the rest reinforce.
    """

    visits: int = 3000
    teacher: str = "tabu"
    teacher_moves: int = 4000
    imitated: float = 0.5
    batch: int = 16
    elites: int = 4
    learning_rate: float = 2e-3
    last_learning_rate: float = 1e-4
    max_steps: int = 96


class Generalist:
    """Shared weights and a trainer for each problem."""

    def __init__(
        self, problems: Sequence[TrainingProblem], course: Course, settings: DopplerSettings, seed: int = 0
    ) -> None:
        self.course, self.settings, self.seed, self.problems = course, settings, seed, list(problems)
        learning = Learning(
            batch=course.batch,
            elites=course.elites,
            episodes=course.visits * (course.batch + course.elites),
            learning_rate=course.learning_rate,
            last_learning_rate=course.last_learning_rate,
            max_steps=course.max_steps,
        )
        self.trainers = [DopplerTrainer(one.problem, settings, learning, seed=seed) for one in self.problems]
        self.params, self.optimiser_state = self.trainers[0].params, self.trainers[0].optimiser_state
        self.visits = 0
        self.rng = np.random.default_rng([seed, 9])

    def teach(self, on_plan: Callable[[int], None] | None = None) -> None:
        """Let the teacher plan every problem."""
        teacher = registry.construct(
            "policy", self.course.teacher, catalog.PLANNERS, {"max_evaluations": self.course.teacher_moves}
        )
        for number, trainer in enumerate(self.trainers):
            plan = teacher.plan(trainer.problem, Budget(seed=self.seed))
            trainer.add_plan(plan.order, plan.assignment)
            if on_plan is not None:
                on_plan(number)

    def visit(self) -> float:
        """Make one update on one of the problems; return its mean makespan over the best known."""
        trainer = self.trainers[int(self.rng.integers(len(self.trainers)))]
        trainer.params, trainer.optimiser_state, trainer._net = self.params, self.optimiser_state, None
        trainer.episode = self.visits * (self.course.batch + self.course.elites)
        if trainer.elites and self.rng.random() < self.course.imitated:
            found = trainer.imitate_plans(trainer.elites)
            ratio = 1.0
        else:
            found = trainer.reinforce()
            ratio = float(found.makespan_s[: self.course.batch].mean() / trainer.elites[0].makespan_s)
        self.params, self.optimiser_state = trainer.params, trainer.optimiser_state
        self.visits += 1
        return ratio

    def greedy_ratio(self) -> float:
        """Return the mean over all problems of the greedy plan's makespan over the best known one."""
        ratios = []
        for trainer in self.trainers:
            trainer.params, trainer._net = self.params, None
            found = trainer.greedy().makespan_s
            ratios.append(found / trainer.elites[0].makespan_s)
        return float(np.mean(ratios))

    def write(self, path: Path, **meta: Any) -> None:
        """Write the weights as a checkpoint."""
        arrays = {f"params/{name}": np.asarray(value) for name, value in self.params.items()}
        about = {
            "settings": asdict(self.settings),
            "course": asdict(self.course),
            "seed": self.seed,
            "visits": self.visits,
            "families": sorted({name for name, _ in FAMILIES}),
        }
        save(path, arrays, about | meta)


def train(
    path: Path,
    *,
    budget_s: float,
    course: Course | None = None,
    settings: DopplerSettings | None = None,
    seed: int = 0,
    repeats: int = 2,
    tell: Callable[[str], None] = print,
) -> Generalist:
    """Train until the visits or the time are used up, writing the weights as it goes."""
    course = course or Course()
    begin = time.perf_counter()
    made = Generalist(training_problems(seed, repeats), course, settings or DopplerSettings(tables=False), seed)
    tell(f"{len(made.problems)} problems")
    made.teach()
    tell(f"taught after {time.perf_counter() - begin:.0f} s")
    recent: list[float] = []
    while made.visits < course.visits and time.perf_counter() - begin < budget_s:
        recent.append(made.visit())
        if made.visits % 100 == 0:
            seconds = time.perf_counter() - begin
            tell(f"visit {made.visits}: {seconds:.0f} s, sampled {np.mean(recent[-100:]):.4f} of the best known")
            made.write(path, seconds=seconds)
    made.write(path, seconds=time.perf_counter() - begin, greedy_ratio=made.greedy_ratio())
    return made


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, help="where the weights are written")
    parser.add_argument("--budget-s", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    train(given.weights, budget_s=given.budget_s, seed=given.seed)

"""The search chain for projects (RCPSP): annealing over task orders with justification."""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats, Ints, group
from stretto.core.graph import Resources
from stretto.core.kernels.rng import seeded
from stretto.core.problem import Problem
from stretto.graphs.kernels.simulate.project import Project, anneal_project, serial_schedule
from stretto.graphs.search.anytime import ROUNDS, Slice, Solution

CHUNK = 512
#: Temperatures as fractions of the makespan, cooled once per cycle of rounds.
HOT, COLD, CYCLE = 0.02, 1e-3, ROUNDS // 4


def project_arrays(problem: Problem, resources: Resources) -> Project:
    """Return the project as the kernels want it."""
    p = problem.arrays
    source, target, _ = problem.graph.edges
    out_ptr, by_source = group(source, problem.num_tasks)
    return Project(
        np.ascontiguousarray(p.duration[:, 0]),
        p.release,
        resources.demand,
        resources.capacity,
        p.in_ptr,
        p.in_task,
        out_ptr,
        np.ascontiguousarray(target[by_source]),
    )


def project_floor_s(problem: Problem, resources: Resources, tail: Floats) -> float:
    """Return a cheap lower bound: the longest path, and the work per unit of each resource."""
    duration = problem.arrays.duration[:, 0]
    path = float(np.max(problem.arrays.release + duration + tail))
    used = duration @ resources.demand
    area = [float(used[r]) / int(c) for r, c in enumerate(resources.capacity) if c > 0]
    return max([path, *area]) * (1 - 1e-12)


class ProjectChain:
    """One chain of annealing over task orders."""

    def __init__(self, problem: Problem, resources: Resources, tail: Floats, seed: int, stream: int) -> None:
        self.tail = tail
        self.arrays = project_arrays(problem, resources)
        self.rng = seeded(seed, stream)
        self.evaluations = 0
        self.order = first_order(problem, tail)
        _, finish = serial_schedule(problem.arrays, resources.demand, resources.capacity, self.order)
        self.value = float(finish.max())
        self.best = Solution(self.value, np.zeros(problem.num_tasks, dtype=np.int32), self.order.copy())
        self._anneal(0, 1.0)  # compiles before the clock starts

    def meet(self, best: Solution, next_round: int) -> None:
        if next_round % CYCLE == 0:
            self.order = best.order.copy()
            self.value = best.makespan_s

    def run(self, part: Slice) -> None:
        made = 0
        while not part.is_over(made, self.best.makespan_s):
            steps = min(CHUNK, part.evaluations - made)
            cooled = part.rounds_done(made) % CYCLE / CYCLE
            self._anneal(steps, self.best.makespan_s * HOT * (COLD / HOT) ** cooled)
            made += steps
            self.evaluations += steps

    def _anneal(self, steps: int, temperature: float) -> None:
        best_order = self.best.order
        self.value, best = anneal_project(
            self.arrays,
            self.tail,
            self.rng,
            steps,
            temperature,
            self.order,
            self.value,
            self.best.makespan_s,
            best_order,
        )
        self.best = Solution(best, self.best.assignment, best_order)


def first_order(problem: Problem, tail: Floats) -> Ints:
    """Order tasks by latest start: the longest remaining path first."""
    position = np.empty(problem.num_tasks, dtype=np.int32)
    position[problem.arrays.topo] = np.arange(problem.num_tasks, dtype=np.int32)
    return np.lexsort((position, -(tail + problem.arrays.duration[:, 0]))).astype(np.int32)

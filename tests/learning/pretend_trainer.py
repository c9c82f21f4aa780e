"""A trainer that learns nothing, quickly: random plans, the best kept, everything decided by seed and count."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.evaluate import planner_named
from stretto.graphs.simulator import simulate
from stretto.graphs.training import PlanTrainer
from stretto.learning.trainer import TrainingRow, TrainingSpec

BATCH = 4


class PretendTrainer(PlanTrainer):
    """Draws a batch of random plans in each step."""

    def __init__(self, problem: Problem, spec: TrainingSpec) -> None:
        super().__init__(problem, spec)
        self.random = planner_named("random")
        self.episode = 0
        self.best: tuple[float, Plan] | None = None
        self.num_compiled = 0

    @property
    def is_done(self) -> bool:
        return self.spec.episodes is not None and self.episode >= self.spec.episodes

    def compile(self) -> None:
        self.num_compiled += 1

    def step(self) -> TrainingRow:
        times = []
        for _ in range(BATCH):
            self.episode += 1
            plan = self.random.plan(self.problem, Budget(1000 * self.spec.seed + self.episode))
            times.append(simulate(self.problem, plan).makespan_s)
            if self.best is None or times[-1] < self.best[0]:
                self.best = times[-1], plan
        assert self.best is not None
        if "PRETEND_MARK" in os.environ:  # for who waits in another process until training has begun
            Path(os.environ["PRETEND_MARK"]).touch()
        stage = "first" if self.episode <= 2 * BATCH else "second"
        return TrainingRow(self.episode, 0.0, self.best[0], float(np.mean(times)), entropy=1.0, stage=stage)

    def best_plan(self) -> Plan | None:
        return self.best[1] if self.best else None

    def state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        assert self.best is not None
        value, plan = self.best
        arrays = {"best_s": np.asarray(value), "assignment": plan.assignment, "order": plan.order}
        return arrays, {"episode": self.episode, "discipline": plan.discipline}

    def restore(self, arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        self.episode = meta["episode"]
        self.best = float(arrays["best_s"]), Plan(arrays["assignment"], arrays["order"], meta["discipline"])

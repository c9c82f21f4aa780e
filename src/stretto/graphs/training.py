"""What trainers of plans share: they learn on one problem, and are judged by their best plan."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping

import numpy as np

from stretto.core.metrics import measure
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.graphs.bounds.bound import bound
from stretto.graphs.evaluate import PlanResult, Setting, evaluate
from stretto.learning.trainer import Arrays, Judged, TrainingRow, TrainingSpec

#: Planners that a training is compared with; they take no time.
OPPONENTS = ("heft", "etf", "peft", "critical-path")


class PlanTrainer:
    """The part of the trainer protocol that all trainers of plans have in common.

    A subclass is made from a problem and a spec, and adds ``is_done``, ``step``, ``best_plan``, ``state`` and
    ``restore``; where it knows the makespan of its untrained start, it sets ``untrained_s``.
    """

    learns_on = "graph"
    row_type = TrainingRow
    judging_s = 0.0
    untrained_s = math.nan

    def __init__(self, problem: Problem, spec: TrainingSpec) -> None:
        self.problem, self.spec = problem, spec

    @property
    def identity(self) -> Mapping[str, object]:
        """A checkpoint is of one problem."""
        return {"problem": fingerprint(self.problem)}

    def compile(self) -> None:
        """Do what is done once per machine and shape, and does not count as training."""

    def best_plan(self) -> Plan | None:
        """Return the best plan seen, None before there is one."""
        raise NotImplementedError

    def weights(self) -> Arrays:
        """Return the weights of the policy; a trainer without weights returns none."""
        return {}

    def result(self, policy: str, seconds: float) -> PlanResult:
        """Execute the best plan in the simulator, and compare it with a bound.

        Parameters
        ----------
        policy, seconds
            The name of the algorithm and how long it trained, for the report.
        """
        plan = self.best_plan()
        if plan is None:
            raise InvalidInput("the training was stopped before its first episode ended", field="train")
        setting = Setting()
        schedule = setting.run(self.problem, plan)
        metrics, floor = measure(self.problem, schedule), bound(self.problem)
        return PlanResult(policy, {}, self.problem, plan, schedule, metrics, floor, seconds, self.spec.seed, setting)

    def judge(self) -> Judged:
        """Return the simulated makespan of the best plan beside those of heuristics and of the untrained start."""
        result = self.result("", 0.0)
        others = {name: evaluate(self.problem, name, lower_bound=result.bound).makespan_s for name in OPPONENTS}
        return Judged("makespan in the simulator, s", result.makespan_s, self.untrained_s, others)


def fingerprint(problem: Problem) -> str:
    """Return a hash of everything about a problem that a plan depends on."""
    digest = hashlib.sha256()
    for name in problem.arrays._fields:
        array = np.asarray(getattr(problem.arrays, name))
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def completed(trainer: PlanTrainer, problem: Problem, spec: TrainingSpec) -> PlanTrainer:
    """Return a trainer of plans; one of a plugin that was written before trainers judged themselves gets the rest."""
    if not hasattr(trainer, "judge"):
        kind = type(trainer)
        trainer.__class__ = type(kind.__name__, (kind, PlanTrainer), {})
        trainer.problem, trainer.spec = problem, spec
    return trainer

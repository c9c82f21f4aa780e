"""The three stages of Doppler's training: imitate a teacher, learn in the simulator, learn on an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from stretto import catalog, registry
from stretto.core.csr import Floats, Ints
from stretto.core.plan import Discipline, Plan
from stretto.core.planner import Budget
from stretto.errors import InvalidInput
from stretto.graphs.doppler.finals import fastest, rival_plans
from stretto.learning.trainer import Executor

if TYPE_CHECKING:
    from stretto.graphs.doppler.rollout import Teacher
    from stretto.graphs.doppler.trainer import DopplerTrainer


class Stage(Protocol):
    """A part of a training, made of batches of episodes."""

    episodes: int

    def begin(self, trainer: DopplerTrainer) -> None:
        """Prepare the trainer; called once, when the stage starts."""
        ...

    def step(self, trainer: DopplerTrainer) -> Floats:
        """Play and learn one batch; return the seconds of its plans."""
        ...


@dataclass(frozen=True)
class ImitateRule:
    """Stage I with a rule as teacher: it is asked in every state that the student meets.

    Attributes
    ----------
    teacher
        ``critical-path`` is the paper's: highest b-level, earliest start. ``lookahead`` places
        where the readers of a task can end first.
    """

    episodes: int = 512
    teacher: Teacher = "lookahead"

    def begin(self, trainer: DopplerTrainer) -> None:
        return None

    def step(self, trainer: DopplerTrainer) -> Floats:
        return trainer.imitate(self.teacher).makespan_s


@dataclass(frozen=True)
class ImitatePlanner:
    """Stage I with the plans of planners as teachers: a heuristic, a search, or CP-SAT.

    Attributes
    ----------
    time_limit_s
        How long each planner may think, when it is one that thinks for a while.
    """

    planners: tuple[str, ...] = ("heft",)
    episodes: int = 512
    time_limit_s: float = 5.0

    def begin(self, trainer: DopplerTrainer) -> None:
        """Plan, and put the plans among the trainer's elites, from where every step takes them."""
        problem = trainer.problem
        for name in self.planners:
            planner = registry.construct("policy", name, catalog.PLANNERS, {})
            reason = planner.supports(problem)
            if reason is not None:
                raise InvalidInput(f"{name} cannot teach here: {reason}", field="planners")
            plan = planner.plan(problem, Budget(seed=trainer.seed, time_limit_s=self.time_limit_s))
            trainer.add_plan(plan.order, plan.assignment)

    def step(self, trainer: DopplerTrainer) -> Floats:
        return trainer.imitate_plans(trainer.elites).makespan_s


@dataclass(frozen=True)
class Reinforce:
    """Stage II: learn from simulated makespans."""

    episodes: int = 7488

    def begin(self, trainer: DopplerTrainer) -> None:
        return None

    def step(self, trainer: DopplerTrainer) -> Floats:
        return trainer.reinforce().makespan_s[: trainer.learning.batch]


@dataclass(frozen=True)
class ReinforceOnEngine:
    """Stage III: learn from what an engine measures.

    Attributes
    ----------
    repeats
        Runs of each plan; their mean counts.
    num_finalists, rivals, final_rounds
        At the end so many of the best plans, and those of these planners, run in turns so many times.
    """

    engine: Executor
    episodes: int = 1024
    repeats: int = 1
    num_finalists: int = 4
    rivals: tuple[str, ...] = ("heft",)
    final_rounds: int = 7

    def begin(self, trainer: DopplerTrainer) -> None:
        """Measure the best plans so far: simulated and measured seconds must not compete."""
        trainer.rejudge(lambda order, assignment: self.judge(order, assignment, trainer.player.discipline))

    def step(self, trainer: DopplerTrainer) -> Floats:
        discipline = trainer.player.discipline
        found = trainer.reinforce(lambda order, assignment: self.judge(order, assignment, discipline))
        return found.makespan_s[: trainer.learning.batch]

    def choose(self, trainer: DopplerTrainer) -> Plan:
        """Return the plan that is the fastest when the best ones are measured again."""
        discipline = trainer.player.discipline
        own = [Plan(e.assignment.copy(), e.order.copy(), discipline) for e in trainer.elites[: self.num_finalists]]
        return fastest(self.engine, [*own, *rival_plans(trainer.problem, self.rivals, trainer.seed)], self.final_rounds)

    def judge(self, order: Ints, assignment: Ints, discipline: Discipline) -> Floats:
        """Return the mean measured seconds of each plan."""
        plans = [Plan(a, o, discipline) for o, a in zip(order, assignment, strict=True)]
        return np.array([np.mean([self.engine.execute(plan) for _ in range(self.repeats)]) for plan in plans])

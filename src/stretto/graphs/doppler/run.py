"""Doppler's training as the command line and the benchmarks see it: reinforcement, from scratch after imitation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from stretto.core.csr import Floats
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.files import checkpoint
from stretto.files.checked_arrays import take
from stretto.graphs.doppler.generalist import load_policies
from stretto.graphs.doppler.kernels.state import NUM_CANDIDATE_FEATURES
from stretto.graphs.doppler.parameters import init_params
from stretto.graphs.doppler.settings import DopplerSettings
from stretto.graphs.doppler.stages import ImitatePlanner, ImitateRule, Reinforce, ReinforceOnEngine
from stretto.graphs.doppler.trainer import DopplerTrainer, Learning
from stretto.graphs.doppler.tuning import TUNED
from stretto.graphs.training import PlanTrainer, fingerprint
from stretto.learning.trainer import Arrays, Executor, Meta, TrainingRow, TrainingSpec

#: How the names of parameters end that belong to one problem.
_TABLE = "_table"

AnyStage: TypeAlias = ImitateRule | ImitatePlanner | Reinforce | ReinforceOnEngine


class DopplerRun(PlanTrainer):
    """One training of both policies on one problem.

    Parameters
    ----------
    stages
        Parts of the training, one after the other; by default all is reinforcement in the simulator, but for the
        first sixteenth of the episodes of a training from scratch, in which a look-ahead rule is imitated. The last
        one goes on while there is time.
    """

    trainer_class: type[DopplerTrainer] = DopplerTrainer

    def __init__(
        self,
        problem: Problem,
        spec: TrainingSpec,
        *,
        settings: DopplerSettings | None = None,
        learning: Learning | None = None,
        stages: Sequence[AnyStage] | None = None,
    ) -> None:
        if problem.graph.resources is not None:
            raise InvalidInput("projects with renewable resources cannot be learned", field="graph")
        super().__init__(problem, spec)
        self.has_end = spec.episodes is not None
        weights = first_weights(spec.start, problem, settings or DopplerSettings())
        self.is_usual, self.is_taught = stages is None, weights is None
        how = learning or usual_learning(spec.episodes, is_taught=self.is_taught)
        usual = usual_stages(how.episodes, spec.engine, is_taught=self.is_taught)
        self.stages = usual if stages is None else tuple(stages)
        self.num_greedy = 0
        self._chosen: tuple[int, Plan] | None = None  # the plan that an engine found fastest, after so many episodes
        self.trainer = self.trainer_class(
            problem,
            settings,
            how,
            seed=spec.seed,
            num_threads=spec.num_threads,
            params=weights,
        )

    @property
    def num_episodes(self) -> int:
        """All that were played, greedy ones too: each of them is a plan that was tried."""
        return self.trainer.episode + self.num_greedy

    @property
    def is_done(self) -> bool:
        return self.has_end and self.num_episodes >= self.trainer.learning.episodes

    def compile(self) -> None:
        """Do one step of each kind on a training that nobody keeps, with room for as many candidates."""
        trainer = self.trainer
        other = type(trainer)(trainer.problem, trainer.settings, trainer.learning, num_threads=self.spec.num_threads)
        other.imitate("critical-path")
        other.reinforce()
        other.greedy()
        trainer.num_rows = max(trainer.num_rows, other.num_rows)

    def step(self) -> TrainingRow:
        """Play one batch of the present stage and learn from it."""
        trainer, number = self.trainer, self._stage_number()
        stage = self.stages[number]
        if trainer.stage < number:
            if trainer.stage < 0:
                self.untrained_s = trainer.greedy_plan().makespan_s
            stage.begin(trainer)
            trainer.stage = number
        mean_s = float(stage.step(trainer).mean())
        greedy_s = float("nan")
        if trainer.num_updates % TUNED.greedy_every == 0:
            greedy_s = trainer.greedy().makespan_s
            self.num_greedy += 1
        best = trainer.best
        assert best is not None
        entropy = trainer.figures.get("entropy", float("nan"))
        return TrainingRow(self.num_episodes, 0.0, best.makespan_s, mean_s, greedy_s, entropy, _stage_name(stage))

    def best_plan(self) -> Plan | None:
        best = self.trainer.best
        if best is None:
            return None
        info = {"episodes": self.num_episodes}
        stage = self.stages[self.trainer.stage]
        if isinstance(stage, ReinforceOnEngine):
            if self._chosen is None or self._chosen[0] != self.num_episodes:
                self._chosen = self.num_episodes, replace(stage.choose(self.trainer), info=info)
            return self._chosen[1]
        return Plan(best.assignment.copy(), best.order.copy(), self.trainer.player.discipline, info)

    def weights(self) -> Arrays:
        """Return the weights of both policies as they are now."""
        return {name: np.asarray(value) for name, value in self.trainer.params.items()}

    def state(self) -> tuple[Arrays, Meta]:
        """Return everything that the next step depends on."""
        arrays, meta = self.trainer.state()
        more = {"has_end": self.has_end, "num_greedy": self.num_greedy, "is_taught": self.is_taught}
        untrained_s = None if math.isnan(self.untrained_s) else self.untrained_s
        return arrays, {"trainer": meta, **more, "untrained_s": untrained_s}

    def restore(self, arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        """Go on; rates fall as they did, unless the user now plans for another number of episodes."""
        trainer = self.trainer
        trainer.learning = Learning(**meta["trainer"]["learning"])
        trainer.restore(arrays, meta["trainer"])
        self.is_taught = bool(meta.get("is_taught", True))  # all were, before some were not
        if self.is_usual:
            self.stages = usual_stages(trainer.learning.episodes, self.spec.engine, is_taught=self.is_taught)
        if self.spec.episodes is not None:
            trainer.learning = replace(trainer.learning, episodes=self.spec.episodes)
        self.has_end = self.has_end or bool(meta["has_end"])
        self.num_greedy = int(meta["num_greedy"])
        untrained_s = meta.get("untrained_s")
        self.untrained_s = float(untrained_s) if isinstance(untrained_s, (int, float)) else math.nan

    def _stage_number(self) -> int:
        """Return the stage by the episodes played, never an earlier one than before."""
        last = 0
        for number, stage in enumerate(self.stages):
            last += stage.episodes
            if self.trainer.episode < last:
                return max(number, self.trainer.stage)
        return len(self.stages) - 1


def usual_learning(episodes: int | None, *, is_taught: bool) -> Learning:
    """Return how to learn in so many episodes, by fresh weights or by those that have learned elsewhere."""
    how = Learning() if is_taught else Learning(last_temperature=TUNED.last_temperature)
    return how if episodes is None else replace(how, episodes=episodes)


def usual_stages(episodes: int, engine: Executor | None = None, *, is_taught: bool = True) -> tuple[AnyStage, ...]:
    """Return reinforcement, for fresh weights after a sixteenth of the episodes that imitate the look-ahead rule.

    Weights that have learned elsewhere need no teacher: it draws them to its own plans, which are worse than where they
    come by themselves. With an engine, the last quarter of the episodes is measured there.
    """
    first = max(1, episodes // 16) if is_taught else 0
    last = episodes // 4 if engine is not None else 0
    stages: tuple[AnyStage, ...] = (Reinforce(episodes=max(1, episodes - first - last)),)
    if is_taught:
        stages = (ImitateRule(episodes=first), *stages)
    return stages if engine is None else (*stages, ReinforceOnEngine(engine, episodes=max(1, last)))


def _stage_name(stage: AnyStage) -> str:
    if isinstance(stage, (ImitateRule, ImitatePlanner)):
        return "imitation"
    return "simulator" if isinstance(stage, Reinforce) else "engine"


def first_weights(
    start: str | None, problem: Problem | None = None, settings: DopplerSettings | None = None
) -> dict[str, Any] | None:
    """Return the weights that a training starts with, None for fresh ones.

    The tables of a checkpoint speak of its own tasks: on another problem, or when none is given, they are left out.
    """
    settings = settings or DopplerSettings()
    if start == "scratch":
        return None
    if start in (None, "generalist"):
        return _as_network(load_policies()[0], settings)
    source = str(start)
    arrays, meta = checkpoint.load(source)
    weights = {name.removeprefix("params/"): value for name, value in arrays.items() if name.startswith("params/")}
    if not weights:
        raise checkpoint.InvalidCheckpoint("holds no weights", source=source, field="params")
    if problem is None or meta.get("problem") != fingerprint(problem):
        weights = {name: value for name, value in weights.items() if not name.endswith(_TABLE)}
    for name, fresh in init_params(settings, 0).items():
        there = weights[name].shape if name in weights else None
        if there != fresh.shape and not name.endswith(_TABLE):
            message = f"its network has another shape: {there} instead of {fresh.shape}"
            raise checkpoint.InvalidCheckpoint(message, source=source, field=f"params/{name}")
    return {name: take(weights, name, value.shape, source=source) for name, value in weights.items()}


def _as_network(policy: Floats, settings: DopplerSettings) -> dict[str, Any]:
    """Return networks that decide as a linear policy does, until their hidden units learn to add something."""
    params: dict[str, Any] = {
        name: value for name, value in init_params(settings, 0).items() if not name.endswith(_TABLE)
    }
    sel, plc = np.split(policy.astype(np.float32), [NUM_CANDIDATE_FEATURES])
    hidden = {name: np.zeros_like(params[name]) for name in ("sel_out", "plc_out")}
    return params | hidden | {"sel_skip": sel, "plc_skip": plc}

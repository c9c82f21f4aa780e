"""What ``stretto.train`` returns: rows, held-out figures, the best plan or the best weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.core.answers.learned import training_answer
from stretto.core.plan import Plan
from stretto.graphs.evaluate import PlanResult
from stretto.learning.loop import StepHistory
from stretto.learning.trainer import Arrays, Judged, StepRow, Trainer

if TYPE_CHECKING:
    from pandas import DataFrame


#: The name of a trained network in the file that ``stretto train mars --save`` writes.
TRAINED_NET = "trained"


@dataclass(frozen=True, eq=False)
class TrainingResult(StepHistory[StepRow]):
    """What a training led to.

    Attributes
    ----------
    name
        Of what it learned on.
    rows
        One per step, with the steps before a resumed checkpoint.
    judged
        Held-out figures of what was learned, of its untrained start, and of what it is compared with.
    outcome
        The best plan with its schedule and bound; None for queues and racks.
    notes, machine
        What the training takes for granted of its input, and what a queue's machine is taken to be.
    sources
        What a plan file holds besides the plan, so that it can be read alone.
    run_id
        The run in the log, None without one.
    overrun
        By how much the budget was exceeded, and by what; None where it was kept.
    """

    algorithm: str
    name: str
    seed: int
    rows: tuple[StepRow, ...]
    judged: Judged
    trainer: Trainer[StepRow]
    is_interrupted: bool
    compile_seconds: float
    outcome: PlanResult | None = None
    notes: tuple[str, ...] = ()
    machine: str = ""
    sources: Mapping[str, object] = field(default_factory=dict)
    run_id: str | None = None
    overrun: str | None = None

    @property
    def plan(self) -> Plan | None:
        """The best plan; None for queues and racks."""
        return None if self.outcome is None else self.outcome.plan

    @property
    def weights(self) -> Arrays:
        """The best weights by name."""
        return self.trainer.weights()

    @property
    def figures(self) -> dict[str, float]:
        """All held-out figures by name."""
        judged = self.judged
        name = "network" if judged.uses else self.algorithm
        return {name: judged.trained, "untrained": judged.untrained, **judged.uses, **judged.others}

    @property
    def num_jobs(self) -> int:
        """Jobs that a queue's trainer scheduled; 0 for others."""
        return int(getattr(self.trainer, "num_jobs", 0))

    @property
    def jobs_per_s(self) -> float:
        """The same per second of its steps; NaN for others."""
        return self.num_jobs / self.trainer.step_s if self.num_jobs else math.nan  # type: ignore[attr-defined]

    @property
    def answer(self) -> str:
        """The result in one sentence."""
        return training_answer(self)

    def to_pandas(self) -> DataFrame:
        """Return the rows as a table, a column for each figure."""
        from pandas import DataFrame

        return DataFrame([row.to_json() for row in self.rows])

    def save(self, path: str | Path) -> None:
        """Write the best plan, for ``stretto simulate``; of a queue or a rack, the weights."""
        if self.outcome is None:
            self.trainer.save(Path(path), self.judged)  # type: ignore[attr-defined]
            return
        from stretto.api.plan_file import save_plan

        save_plan(Path(path), self.outcome.to_json() | dict(self.sources))

    def to_json(self) -> dict[str, object]:
        """Return the document that ``stretto train --output json`` prints."""
        document: dict[str, object] = {"answer": self.answer, "train_seconds": self.seconds, "run_id": self.run_id}
        document |= {"history": [row.to_json() for row in self.rows], "interrupted": self.is_interrupted}
        if self.outcome is not None:
            compared = {"opponents": dict(self.judged.others), "untrained_s": self.judged.untrained}
            facts = {"episodes": self.num_episodes, "compile_seconds": self.compile_seconds}
            return self.outcome.to_json() | document | facts | compared
        document |= {"seed": self.seed, "judged_as": self.judged.measure}
        best = self.judged.best_other
        if self.num_jobs:
            document |= {"trace": self.name, "jobs_per_second": self.jobs_per_s, "machine": self.machine}
            return document | {"notes": list(self.notes), "mean_bounded_slowdown": self.figures, "best_fixed": best}
        iterations = {"case": self.name, "iterations": self.num_episodes}
        return document | iterations | {"mean_completion_s": self.figures, "best_rule": best}

    def summary(self) -> dict[str, object]:
        """Return the figures that the run log keeps of a queue or a rack."""
        figures = self.figures
        about = {
            "answer": self.answer,
            "train_seconds": self.seconds,
            "judged": figures,
            "judged_as": self.judged.measure,
        }
        if self.num_jobs:
            rate = {"generations": self.num_episodes, "jobs_per_second": self.jobs_per_s}
            return rate | {"mean_bounded_slowdown": figures["mars"]} | about
        return {"iterations": self.num_episodes, "mean_completion_s": self.judged.trained} | about

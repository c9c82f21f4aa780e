"""MARS's training as the command line and Python see it: a network learns on the first part of a log."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.trace import Trace
from stretto.learning.trainer import Arrays, Judged, Meta, StepRow, TrainingSpec
from stretto.queues.mars.candidates import Candidate, candidates_of, classic_candidate, network_candidate
from stretto.queues.mars.network import TRAINED, MarsNet, save_nets, shipped_nets
from stretto.queues.mars.replay import mars_replay
from stretto.queues.mars.trainer import MarsTrainer
from stretto.queues.mars.windows import draw_windows, starts_of
from stretto.queues.metrics import bounded
from stretto.queues.promises.slack import DEFAULT_SLACK, Slack

#: Strategies that the result is compared with, inside the same promises.
OPPONENTS = ("fcfs", "sjf", "saf", "f2", "f4", "wfp3", "expansion")
#: Of a log, what is trained on; the rest is held out.
SHARE = 0.6
WINDOW_JOBS = 2500
_NUM_TRAIN, _NUM_VALIDATION = 16, 8
#: Thinnings of the log by which the held-out figures with and without the trained network are compared.
_NUM_THINNINGS = 5
_THINNED = 0.01


@dataclass(frozen=True)
class GenerationRow(StepRow):
    """One generation; values of the objective, and what was not measured is NaN."""

    unit: ClassVar[str] = "generation"

    train: float
    validation: float
    best_validation: float
    jobs_per_s: float


class MarsRun:
    """One training on the first part of a log; the same seed and log give the same network.

    Parameters
    ----------
    queue
        The log and the processors of its machine; all jobs must fit.
    start
        The network to start with; by default the first that comes with Stretto.
    """

    learns_on = "queue"
    row_type = GenerationRow
    judging_s = 0.0

    def __init__(self, queue: tuple[Trace, int], spec: TrainingSpec, *, start: MarsNet | None = None) -> None:
        self.trace, self.num_procs = queue
        self.spec = spec
        self.slack = Slack.parse(DEFAULT_SLACK)
        past = self.trace.window(0, max(2, int(SHARE * self.trace.num_jobs)))
        rng = np.random.default_rng(spec.seed)
        count = min(WINDOW_JOBS, max(2, past.num_jobs // 2))
        windows = draw_windows(past, self.num_procs, _NUM_TRAIN + _NUM_VALIDATION, count, rng)
        first = shipped_nets()[0] if start is None else start
        self.trainer = MarsTrainer(
            windows[_NUM_VALIDATION:],
            windows[:_NUM_VALIDATION],
            first,
            seed=spec.seed,
            slack=self.slack,
            num_threads=spec.num_threads,
        )
        self.num_jobs, self.step_s = 0, 0.0  # scheduled since this object was made, and how long that took

    @property
    def identity(self) -> Mapping[str, object]:
        """A checkpoint is of one log on one machine."""
        trace = self.trace
        return {"trace": trace.name, "jobs": trace.num_jobs, "procs": self.num_procs, "seed": self.spec.seed}

    @property
    def is_done(self) -> bool:
        return self.spec.episodes is not None and self.trainer.generation >= self.spec.episodes

    def compile(self) -> None:
        """There is nothing to do: kernels were compiled when the windows were drawn."""

    def step(self) -> GenerationRow:
        """Play and learn from one generation."""
        begin = time.perf_counter()
        found = self.trainer.step()
        took_s = time.perf_counter() - begin
        self.num_jobs, self.step_s = self.num_jobs + found.num_jobs, self.step_s + took_s
        rate = found.num_jobs / max(took_s, 1e-9)
        return GenerationRow(found.number, 0.0, found.train, found.validation, found.best_validation, rate)

    @property
    def num_held_out(self) -> int:
        """Jobs that are not trained on."""
        return self.trace.num_jobs - int(SHARE * self.trace.num_jobs)

    @property
    def net(self) -> MarsNet:
        """The network that did best on the validation windows."""
        return self.trainer.net(TRAINED)

    def weights(self) -> Arrays:
        """Return the weights of that network."""
        return dict(self.net.to_arrays())

    def judge(self) -> Judged:
        """Replay the log with 1 % of its jobs left out, some times, and return figures of the held-out part.

        All are mean bounded slowdowns inside the same promises, means over the thinnings. ``with / without`` is what
        mars gets with the trained network among its candidates over what it gets without, with a 95 % interval.
        """
        rows = [self._judge_thinned(seed) for seed in range(_NUM_THINNINGS)]
        mean = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
        ratio = np.log([row["mars"] / row["without"] for row in rows])
        drawn = np.random.default_rng(0).choice(ratio, (1000, len(ratio))).mean(axis=1)
        uses = {
            "mars": mean["mars"],
            "mars without it": mean["without"],
            "with / without": float(np.exp(ratio.mean())),
            "with / without, low": float(np.exp(np.percentile(drawn, 2.5))),
            "with / without, high": float(np.exp(np.percentile(drawn, 97.5))),
        }
        others = {name: mean[name] for name in OPPONENTS}
        measure = "mean bounded slowdown on the rest of the log"
        return Judged(measure, mean["trained"], mean["start"], others, uses)

    def _judge_thinned(self, seed: int) -> dict[str, float]:
        kept = np.random.default_rng([seed, 7]).random(self.trace.num_jobs) >= _THINNED
        kept[0] = True
        trace = self.trace.keep(kept)
        first = int(np.count_nonzero(kept[: int(SHARE * self.trace.num_jobs)]))

        def slowdown(start_s: Floats) -> float:
            wait = start_s - (trace.submit_s - trace.submit_s[0])
            return float(np.mean(bounded(wait[first:], trace.run_s[first:])))

        def alone(one: Candidate) -> float:
            return slowdown(starts_of(trace, self.num_procs, one, self.slack))

        def chosen(nets: Sequence[MarsNet]) -> float:
            found = mars_replay(trace, self.num_procs, candidates=candidates_of(nets=nets), slack=self.slack)
            return slowdown(found.start_s)

        return {
            **{name: alone(classic_candidate(name)) for name in OPPONENTS},
            "trained": alone(network_candidate(self.net)),
            "start": alone(network_candidate(self.trainer.start)),
            "mars": chosen([self.net]),
            "without": chosen([]),
        }

    def save(self, path: Path, judged: Judged) -> None:
        """Write the network for ``stretto replay --strategy mars --nets FILE``."""
        save_nets(path, [self.net], {"trace": self.trace.name, "seed": self.spec.seed})

    def state(self) -> tuple[Arrays, Meta]:
        """Return everything that the next step depends on."""
        return self.trainer.state()

    def restore(self, arrays: Mapping[str, NDArray[np.generic]], meta: Mapping[str, object]) -> None:
        """Continue from what :meth:`state` returned; the log must be the same."""
        self.trainer.restore(arrays, meta)

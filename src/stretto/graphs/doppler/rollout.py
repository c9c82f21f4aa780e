"""Play Doppler episodes on all cores: the facade over the compiled loop."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.kernels.rng import seeded
from stretto.core.plan import Discipline
from stretto.core.problem import Problem
from stretto.graphs.doppler.features import fixed_side, graph_tensors, static_features
from stretto.graphs.doppler.kernels import state as codes
from stretto.graphs.doppler.kernels.rollout import play
from stretto.graphs.doppler.kernels.state import (
    NUM_CANDIDATE_FEATURES,
    NUM_DEVICE_FEATURES,
    EpisodePlans,
    EpisodeRecord,
    EpisodeRequest,
    Heads,
    PlacementRules,
)
from stretto.graphs.doppler.settings import DopplerSettings

Mode = Literal["sample", "greedy", "epsilon"]
Teacher = Literal["critical-path", "lookahead"]

_MODES = {"sample": codes.SAMPLE, "greedy": codes.GREEDY, "epsilon": codes.EPSILON}
_SEL = {"learned": codes.LEARNED, "b-level": codes.BY_LEVEL}
_PLC = {"learned": codes.LEARNED, "one-shot": codes.LEARNED, "earliest": codes.EARLIEST, "lookahead": codes.LOOKAHEAD}
_LABELS = {None: codes.TAKEN, "critical-path": codes.TEACH_EARLIEST, "lookahead": codes.TEACH_LOOKAHEAD}


@dataclass(frozen=True, eq=False)
class PlayedEpisodes:
    """Finished episodes: a plan each, and what the update needs of the recorded steps."""

    order: Ints  # [B, n]
    assignment: Ints  # [B, n]
    makespan_s: Floats  # [B]
    record: EpisodeRecord
    steps: Ints  # [S] the recorded steps, ascending


@dataclass(frozen=True)
class Sampling:
    """How actions are taken, and what is recorded as each step's target."""

    mode: Mode = "sample"
    epsilon: float = 0.0
    temperature: float = 1.0
    teacher: Teacher | None = None


class Player:
    """Plays episodes of one problem."""

    #: The compiled loop.
    kernel: Callable[..., None] = staticmethod(play)

    def __init__(
        self,
        problem: Problem,
        settings: DopplerSettings,
        *,
        discipline: Discipline = "sequence",
        num_threads: int = 2,
    ) -> None:
        self.problem, self.settings, self.discipline = problem, settings, discipline
        self.num_threads = max(1, num_threads)
        raw, below, above = static_features(problem)
        self.fixed = fixed_side(problem, raw)
        self.tensors = graph_tensors(problem, raw, below, above)
        self.window = min(settings.window, problem.num_tasks)
        self._record: EpisodeRecord | None = None
        self._pool = ThreadPoolExecutor(self.num_threads)

    def play(
        self,
        net: Heads,
        seeds: Sequence[tuple[int, int]],
        sampling: Sampling | None = None,
        steps: Ints | None = None,
        plans: tuple[Ints, Ints] | None = None,
    ) -> PlayedEpisodes:
        """Play one episode per (seed, stream) pair, then retrace plans.

        Parameters
        ----------
        net
            The heads.
        steps
            The steps to record, ascending; None records nothing.
        plans
            Orders and assignments, a row each, to be followed after the sampled episodes.

        Returns
        -------
        PlayedEpisodes
            Their record is overwritten by the next call.
        """
        asked, found = self.prepare(seeds, steps, plans)
        rules = self._rules(sampling or Sampling())
        plans_found = EpisodePlans(found.order, found.assignment, found.makespan_s)
        num = len(found.makespan_s)

        def part(first: int, last: int) -> None:
            self.kernel(self.problem.arrays, self.fixed, net, rules, asked, found.record, plans_found, first, last)

        cuts = np.linspace(0, num, min(self.num_threads, num) + 1).astype(int).tolist()
        if len(cuts) == 2:
            part(0, num)
        else:
            for future in [self._pool.submit(part, a, b) for a, b in itertools.pairwise(cuts)]:
                future.result()
        return found

    def prepare(
        self, seeds: Sequence[tuple[int, int]], steps: Ints | None, plans: tuple[Ints, Ints] | None
    ) -> tuple[EpisodeRequest, PlayedEpisodes]:
        """Return what the kernel is asked for, and room for its answer."""
        n = self.problem.num_tasks
        order, assign = plans if plans is not None else (np.empty((0, n), np.int32), np.empty((0, n), np.int32))
        states = np.array([seeded(seed, stream)[0] for seed, stream in seeds], dtype=np.uint64)
        num = len(seeds) + len(order)
        steps = np.empty(0, dtype=np.int32) if steps is None else steps
        slot = np.full(n, -1, dtype=np.int32)
        slot[steps] = np.arange(len(steps), dtype=np.int32)
        record = self._room(num if len(steps) else 1, max(len(steps), 1), self.problem.num_devices)
        table = np.full((2, num, n), -1, dtype=np.int32)
        found = PlayedEpisodes(table[0], table[1], np.zeros(num), record, steps)
        return EpisodeRequest(len(seeds), slot, order, assign, states), found

    def retrace(self, net: Heads, order: Ints, assignment: Ints, steps: Ints | None = None) -> PlayedEpisodes:
        """Follow given plans, one per row, and record what the policy would have seen on the way."""
        return self.play(net, [], steps=steps, plans=(order, assignment))

    def _rules(self, how: Sampling) -> PlacementRules:
        return PlacementRules(
            window=self.window,
            sel_rule=_SEL[self.settings.sel],
            plc_rule=_PLC[self.settings.plc],
            mode=_MODES[how.mode],
            epsilon=float(how.epsilon),
            inverse_temperature=1.0 / how.temperature,
            label=_LABELS[how.teacher],
            symmetric=int(self.settings.symmetric),
            conserving=int(self.discipline == "work-conserving"),
        )

    def _room(self, num: int, num_steps: int, num_devices: int) -> EpisodeRecord:
        """Return space for a record, the last one's again if it fits: fresh pages cost more than the episodes."""
        if self._record is None or self._record.log_prob.shape != (num, num_steps):
            self._record = self._new_record(num, num_steps, num_devices)
        return self._record

    def _new_record(self, num: int, num_steps: int, num_devices: int) -> EpisodeRecord:
        return empty_record(num, num_steps, self.window, num_devices)


def empty_record(num: int, num_steps: int, w: int, m: int) -> EpisodeRecord:
    """Return space for so many episodes and steps."""
    return EpisodeRecord(
        num_candidates=np.empty((num, num_steps), dtype=np.int32),
        candidate=np.empty((num, num_steps, w), dtype=np.int32),
        x=np.empty((num, num_steps, w, NUM_CANDIDATE_FEATURES), dtype=np.float32),
        sel_target=np.empty((num, num_steps, w), dtype=np.uint8),
        task=np.empty((num, num_steps), dtype=np.int32),
        y=np.empty((num, num_steps, m, NUM_DEVICE_FEATURES), dtype=np.float32),
        allowed=np.empty((num, num_steps, m), dtype=np.uint8),
        plc_target=np.empty((num, num_steps, m), dtype=np.uint8),
        log_prob=np.empty((num, num_steps), dtype=np.float32),
    )


def as_kernel_net(net: Iterable[object]) -> Heads:
    """Return the heads as the contiguous, writable float32 arrays that the kernel is compiled for."""
    return Heads(*(np.array(part, dtype=np.float32, order="C") for part in net))

"""Rules that schedule a rack without learning, and the oracle that all dispatchers are measured against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats
from stretto.core.kernels.rng import seeded
from stretto.errors import InvalidInput
from stretto.racks.dispatch import Decider, DispatchFunction, RackDispatcher, RackEpisode, RandomState, dispatcher_of
from stretto.racks.kernels import rules as codes
from stretto.racks.kernels.counters import Counters
from stretto.racks.kernels.oracle import (
    BELIEVED,
    BLIND,
    RAW,
    TRUE,
    fill_raw_pressure,
    fill_true_pressure,
    play_oracle,
    play_rule,
)
from stretto.racks.kernels.state import Streams
from stretto.racks.machine_work import RackModel
from stretto.racks.paragon import paragon_durations
from stretto.racks.simulator import BeliefParams, RackBatch, new_state


@dataclass(frozen=True)
class RackRule:
    """An order of tasks, what is known of contention, and which durations are believed."""

    summary: str
    code: int
    knowledge: int
    is_profiled: bool = False  # durations by collaborative filtering from a sparse profile

    def durations(self, model: RackModel, seed: int) -> Floats:
        """Return the seconds of each kernel on each processor that the rule believes."""
        return paragon_durations(model, seed) if self.is_profiled else model.arrays.duration_s

    def decider(self, batch: RackBatch, *, seed: int, random: RandomState) -> Decider:
        return _RuleDecider(self, batch, self.durations(batch.model, seed), random)


class _RuleDecider:
    reason: str | None = None

    def __init__(self, rule: RackRule, batch: RackBatch, duration_s: Floats, random: RandomState) -> None:
        self.rule, self.batch, self.duration_s, self.random = rule, batch, duration_s, random
        self._pressure = np.zeros(batch.model.arrays.demand.shape[2])

    def decide(self) -> int:
        batch, arrays, pressure = self.batch, self.batch.model.arrays, self._pressure
        if self.rule.knowledge == RAW:
            fill_raw_pressure(batch.counters, batch.readings, 0, pressure)
        elif self.rule.knowledge == BELIEVED:
            pressure[:] = batch.belief.pressure[0]
        elif self.rule.knowledge == TRUE:
            fill_true_pressure(arrays, batch.streams, batch.state, 0, pressure)
        known = (arrays, batch.streams, batch.state, 0, self.rule.code, self.duration_s, pressure)
        return int(codes.choose(*known, batch.mask[0], self.random))


# The names of these are in ``catalog.DISPATCHERS``.
SPARROW = RackRule("two random places for the oldest task, the one on the less busy machine", codes.PROBES, BLIND)
GRAPHENE = RackRule("the longest path first, packed where raw counters show room", codes.PACKING, RAW)
PARAGON = RackRule(
    "earliest completion by raw counters and durations from a sparse profile", codes.MCT, RAW, is_profiled=True
)
MCT = RackRule("the oldest job first, where it completes earliest; ignores contention", codes.MCT, BLIND)
HEFT = RackRule("the longest path first, where it completes earliest; ignores contention", codes.HEFT, BLIND)
SRPT = RackRule("the job with the least left first, where it completes earliest; ignores contention", codes.SRPT, BLIND)
MCT_COUNTERS = RackRule("mct with contention by raw counters", codes.MCT, RAW)
HEFT_COUNTERS = RackRule("heft with contention by raw counters", codes.HEFT, RAW)
SRPT_COUNTERS = RackRule("srpt with contention by raw counters", codes.SRPT, RAW)
MCT_BELIEF = RackRule("mct with contention as believed", codes.MCT, BELIEVED)
SRPT_BELIEF = RackRule("srpt with contention as believed", codes.SRPT, BELIEVED)
MCT_TRUE = RackRule("mct with the true contention, which only a simulation knows", codes.MCT, TRUE)
SRPT_TRUE = RackRule("srpt with the true contention, which only a simulation knows", codes.SRPT, TRUE)


def play(
    dispatcher: str | RackDispatcher | DispatchFunction,
    model: RackModel,
    streams: Streams,
    *,
    seed: int,
    counters: Counters | None = None,
    params: BeliefParams | None = None,
) -> Floats:
    """Play all streams; return completion minus arrival of each job, a row per stream.

    Parameters
    ----------
    dispatcher
        A name of ``catalog.DISPATCHERS``, a dispatcher, or a function that takes a
        :class:`~stretto.racks.dispatch.RackView` and returns one of its ``choices``. Rules are played in compiled code,
        everything else decision by decision in Python.

    Examples
    --------
    >>> from stretto.core.machine_presets import preset
    >>> from stretto.racks.machine_work import rack_model
    >>> from stretto.racks.workloads.graphs import SHUFFLE_MIX
    >>> from stretto.racks.workloads.kernels import SHUFFLES
    >>> from stretto.racks.workloads.streams import StreamSpec, streams_of
    >>> model = rack_model(preset("two-nics"), SHUFFLES, kinds=("nic",))
    >>> streams = streams_of(model, SHUFFLE_MIX, StreamSpec(num_jobs=5), num_instances=1, seed=0)
    >>> def soonest(view):
    ...     return min(view.choices, key=lambda choice: choice.expected_s)
    >>> play(soonest, model, streams, seed=0).shape
    (1, 5)
    """
    chosen = dispatcher_of(dispatcher)
    is_believing = not isinstance(chosen, RackRule) or chosen.knowledge == BELIEVED
    batch = RackBatch(model, streams, 1, seed=seed, counters=counters, params=params, is_believing=is_believing)
    flow = np.empty(streams.arrival_s.shape)
    duration = chosen.durations(model, seed) if isinstance(chosen, RackRule) else None
    for i in range(len(flow)):
        if isinstance(chosen, RackRule):
            rack = (model.arrays, streams, batch.counters, batch.state, batch.readings, batch.belief, batch.params)
            play_rule(*rack, 0, i, chosen.code, chosen.knowledge, duration, seeded(seed, i))
        else:
            episode = RackEpisode(batch, chosen, stream=i, seed=seed)
            while not episode.is_over:
                episode.step()
        flow[i] = batch.state.job_end_s[0] - streams.arrival_s[i]
    return flow


def oracle(
    model: RackModel, streams: Streams, *, width: int = 6, orders: Sequence[int] = (codes.MCT, codes.SRPT)
) -> Floats:
    """Return the best completion times found by a search per instance that knows everything.

    Every decision is made by rolling its best ``width`` candidates out to the end of the stream, with the true foreign
    load; the better of the orders counts. It is a strong reference, not a bound.
    """
    if width < 1:
        raise InvalidInput(f"{width} must be at least 1", field="width")
    state = new_state(model, streams, 2)
    flow = np.empty(streams.arrival_s.shape)
    for i in range(len(flow)):
        best = np.inf
        for order in orders:
            total = play_oracle(model.arrays, streams, state, i, order, width, seeded(0, i))
            if total < best:
                best = total
                flow[i] = state.job_end_s[0] - streams.arrival_s[i]
    return flow

"""Rules that schedule a rack without learning, by name, and the oracle that everybody is measured against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats
from stretto.core.kernels.rng import seeded
from stretto.errors import InvalidInput, UnknownName
from stretto.racks.kernels import rules as codes
from stretto.racks.kernels.counters import Counters
from stretto.racks.kernels.oracle import BELIEVED, BLIND, RAW, TRUE, play_oracle, play_rule
from stretto.racks.kernels.state import Streams
from stretto.racks.machine_work import RackModel
from stretto.racks.paragon import paragon_durations
from stretto.racks.simulator import BeliefParams, counters_of, new_belief, new_readings, new_state


@dataclass(frozen=True)
class Rule:
    """An order of tasks, what is known of contention, and whose durations are believed."""

    code: int
    knowledge: int
    is_profiled: bool = False  # durations by collaborative filtering from a sparse profile


#: ``-counters`` trusts raw counters, ``-belief`` the belief network; ``-true`` cheats and knows all but the future.
RULES: dict[str, Rule] = {
    "sparrow": Rule(codes.PROBES, BLIND),
    "graphene": Rule(codes.PACKING, RAW),
    "paragon": Rule(codes.MCT, RAW, is_profiled=True),
    "mct": Rule(codes.MCT, BLIND),
    "heft": Rule(codes.HEFT, BLIND),
    "srpt": Rule(codes.SRPT, BLIND),
    "mct-counters": Rule(codes.MCT, RAW),
    "heft-counters": Rule(codes.HEFT, RAW),
    "srpt-counters": Rule(codes.SRPT, RAW),
    "mct-belief": Rule(codes.MCT, BELIEVED),
    "srpt-belief": Rule(codes.SRPT, BELIEVED),
    "mct-true": Rule(codes.MCT, TRUE),
    "srpt-true": Rule(codes.SRPT, TRUE),
}


def play(
    name: str,
    model: RackModel,
    streams: Streams,
    *,
    seed: int,
    counters: Counters | None = None,
    params: BeliefParams | None = None,
) -> Floats:
    """Play all instances by a rule; return completion minus arrival of each job, a row per instance."""
    if name not in RULES:
        raise UnknownName("rule for racks", name, RULES)
    rule = RULES[name]
    counters = counters if counters is not None else counters_of(model)
    state, readings = new_state(model, streams, 1), new_readings(counters, 1)
    belief, numbers = new_belief(model, 1, params), (params or BeliefParams()).array()
    duration = paragon_durations(model, seed) if rule.is_profiled else model.arrays.duration_s
    flow = np.empty(streams.arrival_s.shape)
    for i in range(len(flow)):
        play_rule(
            model.arrays,
            streams,
            counters,
            state,
            readings,
            belief,
            numbers,
            0,
            i,
            rule.code,
            rule.knowledge,
            duration,
            seeded(seed, i),
        )
        flow[i] = state.job_end_s[0] - streams.arrival_s[i]
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

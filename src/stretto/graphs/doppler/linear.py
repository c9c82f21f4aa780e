"""Policies that are linear in what they see: no encoder, and an episode costs little more than a list planner.

SEL and PLC score a task and a device by one weight for each feature of ``kernels/state.py``. Heuristics are points of
this space: the b-level alone selects as HEFT does, the earliest finish alone places as HEFT does.
"""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats
from stretto.core.problem import Problem
from stretto.graphs.doppler.kernels.state import NUM_CANDIDATE_FEATURES, NUM_DEVICE_FEATURES, Heads
from stretto.graphs.doppler.settings import DopplerSettings

#: Weights of a policy: those of SEL, then those of PLC.
NUM_WEIGHTS = NUM_CANDIDATE_FEATURES + NUM_DEVICE_FEATURES
#: How its episodes are played.
LINEAR = DopplerSettings(tables=False)


def linear_heads(weights: Floats, problem: Problem) -> Heads:
    """Return heads without hidden units, which the episode adds nothing to."""
    n, m = problem.num_tasks, problem.num_devices
    sel, plc = np.split(np.asarray(weights, dtype=np.float32), [NUM_CANDIDATE_FEATURES])

    def none(*shape: int) -> np.ndarray:
        return np.zeros(shape, dtype=np.float32)

    return Heads(
        sel_node=none(n, 0),
        sel_bias=none(n),
        sel_in=none(NUM_CANDIDATE_FEATURES, 0),
        sel_out=none(0),
        sel_skip=np.ascontiguousarray(sel),
        plc_node=none(n, 0),
        plc_bias=none(n, m),
        plc_in=none(NUM_DEVICE_FEATURES, 0),
        plc_out=none(0),
        plc_skip=np.ascontiguousarray(plc),
        plc_sum=none(n, 0),
    )


def untrained_policies(seed: int, number: int = 1) -> Floats:
    """Return policies with random weights [number, NUM_WEIGHTS]."""
    return np.random.default_rng([seed, 0x11]).normal(size=(number, NUM_WEIGHTS))


def weight_scale(weights: Floats) -> Floats:
    """Return by how much each weight may be varied: a score's choice does not depend on the length of its weights."""
    sel, plc = np.split(np.asarray(weights, dtype=np.float64), [NUM_CANDIDATE_FEATURES])
    return np.concatenate([np.full(len(part), max(float(np.sqrt(np.mean(part**2))), 1e-6)) for part in (sel, plc)])

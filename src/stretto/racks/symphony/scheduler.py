"""Deciding with Symphony, one rack at a time, and the fallback when its counters cannot be trusted.

The network scores every candidate. Readings that are missing, stale or absurd are counted before each decision. With
too many of them a rule that ignores contention decides, and ``reason`` says so until enough counters are back. How long
decisions took is kept.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stretto.core.csr import Floats
from stretto.core.kernels.rng import seeded
from stretto.racks.dispatch import Decider, RandomState
from stretto.racks.kernels.policy_play import network_action
from stretto.racks.kernels.policy_score import NetWeights
from stretto.racks.kernels.rules import MCT, choose
from stretto.racks.simulator import RackBatch
from stretto.racks.symphony.network import SHIPPED, load_weights
from stretto.racks.symphony.settings import PARAMS

__all__ = ["SHIPPED", "SYMPHONY", "SymphonyDispatcher", "SymphonyScheduler", "training_state"]

#: Decisions whose latency is kept.
_NUM_LATENCIES = 10_000


class SymphonyScheduler:
    """Acts in the first environment of a batch."""

    def __init__(self, weights: NetWeights, batch: RackBatch) -> None:
        self.weights, self.batch = weights, batch
        self.reason: str | None = None  # why the rule decides, None while Symphony does
        self.num_fallbacks = 0
        self._latencies: deque[float] = deque(maxlen=_NUM_LATENCIES)
        self._random = seeded(0)

    @property
    def latency_s(self) -> Floats:
        """Seconds that each of the last decisions took."""
        return np.array(self._latencies)

    def decide(self) -> int:
        """Return an action that is valid now."""
        begun = time.perf_counter()
        self.reason = self.distrust()
        if self.reason is not None:
            self.num_fallbacks += 1
            action = self._blind()
        else:
            action = self._by_network()
        self._latencies.append(time.perf_counter() - begun)
        return action

    def _by_network(self) -> int:
        batch, belief = self.batch, self.batch.belief
        rack = (batch.model.arrays, batch.streams, batch.state, 0, self.weights)
        return int(network_action(*rack, belief.pressure[0], belief.load_sd[0], batch.mask[0]))

    def _blind(self) -> int:
        batch, arrays = self.batch, self.batch.model.arrays
        nothing = np.zeros(arrays.demand.shape[2])
        known = (arrays, batch.streams, batch.state, 0, MCT, arrays.duration_s, nothing)
        return int(choose(*known, batch.mask[0], self._random))

    def distrust(self) -> str | None:
        """Return why the counters cannot be used, None when they can, or before anything has run."""
        readings = self.batch.readings
        if float(self.batch.state.now_s[0]) <= 0:
            return None
        with np.errstate(invalid="ignore"):
            absurd = ~(np.isfinite(readings.mean[0]) & (np.abs(readings.mean[0]) < PARAMS.absurd))
            stale = ~(readings.age_s[0] < PARAMS.stale_s)
        share = float(np.mean(~(absurd | stale)))
        if share >= PARAMS.least_sane:
            return None
        num = len(absurd)
        return (
            f"{int(absurd.sum())} of {num} counters are absurd and {int((stale & ~absurd).sum())} stale: "
            "deciding without regard to contention"
        )


def training_state(meta: Mapping[str, Any]) -> str:
    """Say how long the weights of a checkpoint were trained."""
    num = meta.get("iterations") or 0
    return f"trained for {num:,} iteration{'s' * (num != 1)}" if num else "untrained"


@dataclass(frozen=True)
class SymphonyDispatcher:
    """Symphony as a dispatcher: with weights of a file, or with those that come with Stretto."""

    weights: str | None = None
    summary = "Symphony: beliefs, and a network for any rack"

    def about(self) -> dict[str, Any]:
        """Return what the file of the weights says of itself."""
        return load_weights(self.weights or SHIPPED)[1]

    def decider(self, batch: RackBatch, *, seed: int, random: RandomState) -> Decider:
        weights, _ = load_weights(self.weights or SHIPPED)
        return SymphonyScheduler(weights, batch)


SYMPHONY = SymphonyDispatcher()

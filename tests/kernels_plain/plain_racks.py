"""Racks under contention: every rule, the oracle, and steps with beliefs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from racks.rack_cases import random_action, small_rack, two_nics
from stretto.catalog import DISPATCHERS
from stretto.core.kernels.rng import seeded
from stretto.racks.kernels.lookahead import price_actions
from stretto.racks.kernels.rules import SRPT, _first
from stretto.racks.rules import oracle, play
from stretto.racks.simulator import RackBatch, new_state
from stretto.racks.symphony.cases import observe
from stretto.racks.symphony.settings import NetSettings, shape_of


def cases() -> Iterator[tuple[str, Any]]:
    yield "the first that may be", _first(np.array([False, True, True]))  # no rule has come to need it in these cases
    for make in (small_rack, two_nics):
        model, streams = make(num_instances=1, num_jobs=2)
        for name in sorted(set(DISPATCHERS) - {"symphony"}):
            yield f"rack {make.__name__} {name}", play(name, model, streams, seed=1)
        yield f"rack {make.__name__} oracle", oracle(model, streams, width=2)
        batch = RackBatch(model, streams, 1, seed=0, is_believing=True)
        batch.start(np.zeros(1, np.int64))
        rng = np.random.default_rng(0)
        rows = np.zeros(
            (1, shape_of(model, len(batch.counters.resource), streams).row_length(NetSettings("belief"))), np.float32
        )
        for step in range(12):
            observe(batch, rows)
            batch.step(np.array([random_action(batch.mask[0], rng)]))
            yield f"rack {make.__name__} step {step}", (batch.mask, batch.state.now_s, rows)
        yield f"rack {make.__name__} prices", _prices(batch)


def _prices(batch: RackBatch) -> Any:
    """Candidates at a decision and what they would cost."""
    racks = new_state(batch.model, batch.streams, 2)
    for scratch, here in zip(racks, batch.state, strict=True):
        scratch[0] = here[0]
    order, actions, costs = np.flatnonzero(batch.mask[0]), np.full(3, -1), np.zeros(3)
    arrays, mask = batch.model.arrays, batch.mask[0]
    num = price_actions(arrays, batch.streams, racks, SRPT, mask, order, seeded(0, 0), actions, costs)
    return num, actions, costs

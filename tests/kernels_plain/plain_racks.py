"""Racks under contention: every rule, the oracle, and steps with beliefs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from racks.rack_cases import random_action, small_rack, two_nics
from stretto.catalog import DISPATCHERS
from stretto.racks.env import row_length
from stretto.racks.kernels.rules import _first
from stretto.racks.rules import oracle, play
from stretto.racks.simulator import RackBatch
from stretto.racks.symphony.cases import World, observe
from stretto.racks.symphony.network import fresh_weights
from stretto.racks.symphony.player import StreamPlayer
from stretto.racks.symphony.settings import TRAINING


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
        rows = np.zeros((1, row_length(model, len(batch.counters.resource), belief=True)), np.float32)
        for step in range(12):
            observe(batch, rows)
            batch.step(np.array([random_action(batch.mask[0], rng)]))
            yield f"rack {make.__name__} step {step}", (batch.mask, batch.state.now_s, rows)
        player, weights = StreamPlayer(World.of(model, streams)), fresh_weights(0)
        yield f"rack {make.__name__} stand-in", player.mean_s(weights, [0], seed=3)
        yield f"rack {make.__name__} network", player.flow_s(weights, seed=3)
        few = replace(TRAINING, share=0.2, width=3, most_lessons=2)
        yield f"rack {make.__name__} lessons", player.lessons(weights, 0, seed=3, p=few)[0]

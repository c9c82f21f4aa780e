"""How far beliefs are from the truth, and whether their intervals hold what they promise."""

from __future__ import annotations

import numpy as np

from stretto.kernels.rack_time import refresh
from stretto.sim.rack import RackBatch
from stretto.training.symphony import World

#: Half-width of a 95 % interval, in standard deviations.
_WIDTH = 1.96


def measure_belief(world: World, *, seed: int, num_steps: int, num_envs: int) -> dict[str, float]:
    """Play at random and compare at every decision.

    Returns errors of utilisation in shares of capacity and relative to its mean, how many 95 % intervals hold the
    truth, and the relative error of raw traffic counters, drawn anew from the same noise. Resources whose load is
    known for certain (no foreign load can reach them) do not count.
    """
    batch = RackBatch(world.model, world.streams, num_envs, seed=seed, counters=world.counters, params=world.belief)
    batch.start()
    rng = np.random.default_rng(seed)
    errors, spreads, truths = [], [], []
    for _ in range(num_steps):
        for b in range(num_envs):
            refresh(world.model.arrays, batch.state, b)
        truths.append(batch.state.load.copy())
        errors.append(batch.belief.load - batch.state.load)
        spreads.append(batch.belief.load_sd.copy())
        batch.step(np.array([rng.choice(np.flatnonzero(mask)) for mask in batch.mask]))
    error, spread, truth = np.array(errors), np.array(spreads), np.array(truths)
    counts = spread > 1e-6
    c = world.counters
    raw = np.abs(rng.normal(size=(20_000, c.num_samples)).mean(axis=1)).mean() * c.noise
    return {
        "error_of_capacity": float(np.abs(error[counts]).mean()),
        "relative_error": float(np.abs(error[counts]).sum() / truth[counts].sum()),
        "raw_relative_error": float(raw),
        "coverage_95": float(np.mean(np.abs(error[counts]) <= _WIDTH * spread[counts] + 1e-9)),
    }

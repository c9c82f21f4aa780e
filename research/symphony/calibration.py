"""How far beliefs are from the truth, and whether their intervals hold what they promise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.csr import Floats
from stretto.racks.kernels.time import refresh
from stretto.racks.symphony.cases import World

#: Half-width of a 95 % interval, in standard deviations.
_WIDTH = 1.96


class Looks(NamedTuple):
    """What was true, believed and read at D decisions."""

    truth: Floats  # [D, R] utilization
    mean: Floats  # [D, R] believed
    sd: Floats  # [D, R]
    reading: Floats  # [D, C] the last one of each counter
    is_new: np.ndarray  # [D, C] whether it was read in the last window


def look_around(world: World, *, seed: int, num_steps: int, num_envs: int) -> Looks:
    """Play at random and look at every decision."""
    batch = world.batch(num_envs, seed=seed, is_believing=True)
    batch.start()
    rng = np.random.default_rng(seed)
    rows: list[list[np.ndarray]] = [[] for _ in Looks._fields]
    for _ in range(num_steps):
        for b in range(num_envs):
            refresh(world.model.arrays, batch.state, b)
        seen = (batch.state.load, batch.belief.load, batch.belief.load_sd, batch.readings.mean, batch.readings.num > 0)
        for kept, one in zip(rows, seen, strict=True):
            kept.append(one.copy())
        batch.step(np.array([rng.choice(np.flatnonzero(mask)) for mask in batch.mask]))
    return Looks(*(np.concatenate(kept) for kept in rows))


def measure_belief(world: World, *, seed: int, num_steps: int, num_envs: int) -> dict[str, float]:
    """Compare beliefs and counters with the truth, all by one measure: mean absolute error over mean utilization.

    Returns the error of beliefs over all resources that a foreign load can reach and over those with a counter; of
    counters as noisy as these about the mean of their own window (``raw``), as they stand at a decision, when
    their window is past (``raw_now``), and the mean of all counters of a resource (``pooled_now``); and how many
    95 % intervals hold the truth.
    """
    looks = look_around(world, seed=seed, num_steps=num_steps, num_envs=num_envs)
    counters = world.counters
    counts = looks.sd > 1e-6
    traffic = np.flatnonzero(counters.exponent == 1.0)
    resource = counters.resource[traffic]
    is_used = looks.is_new[:, traffic] & counts[:, resource]
    single, truth = looks.reading[:, traffic], looks.truth[:, resource]
    pooled, is_pooled = _pooled(looks, traffic, resource)
    is_counted = is_pooled & counts
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(20_000, counters.num_samples)).mean(axis=1) * counters.noise
    return {
        "error_of_capacity": float(np.abs(looks.mean - looks.truth)[counts].mean()),
        "relative_error": _relative(looks.mean, looks.truth, counts),
        "counted_relative_error": _relative(looks.mean, looks.truth, is_counted),
        "raw_relative_error": float(np.abs(noise).mean()),
        "raw_now_relative_error": _relative(single, truth, is_used),
        "pooled_now_relative_error": _relative(pooled, looks.truth, is_counted),
        "coverage_95": float(np.mean((np.abs(looks.mean - looks.truth) <= _WIDTH * looks.sd + 1e-9)[counts])),
    }


def calibrated_spread(world: World, *, seed: int, num_steps: int = 200, num_envs: int = 8) -> float:
    """Return the factor on stated uncertainty with which 95 % of intervals hold the truth, on streams for training."""
    looks = look_around(world, seed=seed, num_steps=num_steps, num_envs=num_envs)
    counts = looks.sd > 1e-6
    ratio = np.abs(looks.mean - looks.truth)[counts] / (_WIDTH * looks.sd[counts])
    return world.belief.spread * float(np.quantile(ratio, 0.95))


def _relative(found: Floats, truth: Floats, counts: np.ndarray) -> float:
    return float(np.abs(found - truth)[counts].sum() / truth[counts].sum())


def _pooled(looks: Looks, traffic: np.ndarray, resource: np.ndarray) -> tuple[Floats, np.ndarray]:
    """Return the mean of the traffic counters of each resource that were read, and where there were any."""
    total, num = np.zeros_like(looks.truth), np.zeros_like(looks.truth)
    for x, r in zip(traffic, resource, strict=True):
        total[:, r] += np.where(looks.is_new[:, x], looks.reading[:, x], 0.0)
        num[:, r] += looks.is_new[:, x]
    return total / np.maximum(num, 1.0), num > 0

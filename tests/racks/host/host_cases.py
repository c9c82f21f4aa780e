"""Random hosts with tasks that wait."""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto.racks.kernels.host_rollout import IDLE


def rollout_inputs(seed: int) -> tuple[Any, ...]:
    """Return the arguments of a rollout on a random host."""
    rng = np.random.default_rng(seed)
    cores, kinds, num = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 9))
    law = (float(rng.uniform(0, 1)), float(rng.uniform(0, 1)), rng.uniform(0, 1.5, kinds))
    near = rng.uniform(0, 1, (cores, cores))
    host = (rng.uniform(0.3, 1.0, cores), near, rng.uniform(0, 1, cores))
    ptr = np.sort(np.concatenate([[0, num], rng.integers(0, num + 1, kinds - 1)]))
    work = np.repeat(rng.uniform(0.1, 1.0, (num, 1)), cores, axis=1)
    tasks = (ptr, work, rng.uniform(0.5, 2.0, num))
    category = rng.integers(-1, kinds, cores)
    category[0] = IDLE
    running = (category, rng.uniform(0.05, 0.5, cores), np.full(cores, 0.5), np.ones(cores))
    first = int(rng.choice([k for k in range(kinds) if ptr[k] < ptr[k + 1]]))
    return law, host, tasks, running, np.argsort(-host[0], kind="stable"), 0, first

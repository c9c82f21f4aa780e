"""Queues and networks for the tests of MARS."""

from __future__ import annotations

import numpy as np

from stretto.core.trace import Trace
from stretto.queues.mars.candidates import Candidate, network_candidate
from stretto.queues.mars.kernels.score import NUM_JOB, ScoreNet
from stretto.queues.mars.network import MarsNet

PROCS = 16


def crowded(num_jobs: int, seed: int = 0, *, load: float = 1.1, exact: bool = False) -> Trace:
    """Draw jobs of six users that crowd on ``PROCS`` processors."""
    rng = np.random.default_rng(seed)
    run = np.round(np.exp(rng.normal(5, 1.5, num_jobs))) + 1
    procs = rng.integers(1, PROCS + 1, num_jobs)
    gap = rng.exponential(float((run * procs).mean()) / (PROCS * load), num_jobs)
    estimate = run if exact else np.round(run * rng.uniform(1, 5, num_jobs))
    submit = np.floor(np.cumsum(gap))
    return Trace.of(submit - submit[0], run, procs, estimate, user=rng.integers(0, 6, num_jobs).astype(np.int32))


def random_net(seed: int, *, scale: float = 1.0) -> MarsNet:
    """Draw weights of any sign, and for how many short jobs long ones leave room."""
    rng = np.random.default_rng([seed, 5])
    net = ScoreNet(scale * rng.normal(size=NUM_JOB), np.array([float(rng.choice([0.0, 0.6, 2.0]))]))
    return MarsNet(f"random-{seed}", net)


def random_candidate(seed: int, *, scale: float = 1.0) -> Candidate:
    """Return the candidate of such a network."""
    return network_candidate(random_net(seed, scale=scale))

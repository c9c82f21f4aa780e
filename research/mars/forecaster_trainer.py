"""Train the forecaster of MARS on the pasts of many queues.

An example is what is known of a job when it is submitted or started, in a replay under some order, and how long it then
ran. Logs count alike, whatever their length; mistakes are counted in logarithms of ratios, so that a minute for an hour
is as bad on a short job as on a long one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.errors import InvalidInput
from stretto.queues.kernels.forecast import BOUND
from stretto.queues.mars.kernels.forecast import (
    HARMONIC,
    LEAK,
    MEAN,
    NUM_HEADS,
    NUM_INPUTS,
    TYPICAL,
    Forecaster,
    collect,
)
from stretto.queues.portfolio import kinds_of


@dataclass(frozen=True, eq=False)
class Examples:
    """What was known, and the logarithm of run time over estimate."""

    x: NDArray[np.float32]  # [N, NUM_INPUTS]
    log_ratio: NDArray[np.float32]  # [N]
    job: NDArray[np.int64]  # [N]

    def take(self, which: Any) -> Examples:
        """Return some of them."""
        return Examples(self.x[which], self.log_ratio[which], self.job[which])


def gather(jobs: QueueArrays, start: Floats, *, count: int, seed: int) -> Examples:
    """Draw examples from a replay: about half at submissions, half at starts."""
    n = len(jobs.submit)
    rng = np.random.default_rng(seed)
    share = count / (2.0 * n)
    at_submission, at_start = rng.random(n) < share, rng.random(n) < share
    num_rows = int(at_submission.sum() + at_start.sum())
    x, job = np.zeros((num_rows, NUM_INPUTS)), np.zeros(num_rows, np.int64)
    collect(jobs, kinds_of(jobs), start, at_submission, at_start, x, job)
    ratio = np.log(np.maximum(jobs.run[job], BOUND) / np.maximum(jobs.estimate[job], BOUND))
    return Examples(x.astype(np.float32), ratio.astype(np.float32), job)


def join(parts: Sequence[Examples]) -> Examples:
    """Return all examples of some replays."""
    if not parts:
        raise InvalidInput("no examples to learn from", field="examples")
    return Examples(*(np.concatenate([getattr(one, name) for one in parts]) for name in ("x", "log_ratio", "job")))


def fit(
    examples: Examples, *, seed: int, num_hidden: int = 64, epochs: int = 12, batch: int = 2048, rate: float = 3e-3
) -> Forecaster:
    """Return the weights that fit some examples best."""
    import jax
    import jax.numpy as jnp
    import optax

    def said(w: Any, x: Any) -> Any:
        z = x @ w["first"] + w["bias"]
        return jnp.maximum(z, LEAK * z) @ w["out"] + w["out_bias"]

    def loss(w: Any, x: Any, ratio: Any) -> Any:
        heads = said(w, x)
        # The means by the deviance of a gamma distribution, whose scale does not matter: ratios span decades.
        mean = jnp.exp(jnp.minimum(ratio - heads[:, MEAN], 8.0)) + heads[:, MEAN]
        inverse = jnp.exp(jnp.minimum(heads[:, HARMONIC] - ratio, 8.0)) - heads[:, HARMONIC]
        return jnp.mean((heads[:, TYPICAL] - ratio) ** 2 + 0.5 * mean + 0.5 * inverse)

    num_steps = max(1, epochs * (len(examples.job) // batch))
    rng = np.random.default_rng(seed)
    weights = {
        "first": jnp.asarray(rng.normal(size=(NUM_INPUTS, num_hidden)) * math.sqrt(2.0 / NUM_INPUTS)),
        "bias": jnp.zeros(num_hidden),
        "out": jnp.asarray(rng.normal(size=(num_hidden, NUM_HEADS)) * math.sqrt(1.0 / num_hidden)),
        "out_bias": jnp.full(NUM_HEADS, -1.0),
    }
    optimiser = optax.chain(
        optax.clip_by_global_norm(5.0), optax.adamw(optax.cosine_onecycle_schedule(num_steps, rate), weight_decay=1e-3)
    )

    def step(weights: Any, state: Any, x: Any, ratio: Any) -> Any:
        gradient = jax.grad(loss)(weights, x, ratio)
        update, state = optimiser.update(gradient, state, weights)
        return optax.apply_updates(weights, update), state

    compiled = jax.jit(step)
    state = optimiser.init(weights)
    done = 0
    while done < num_steps:
        order = rng.permutation(len(examples.job))
        for at in range(0, max(1, len(order) - batch + 1), batch):
            which = order[at : at + batch]
            weights, state = compiled(weights, state, examples.x[which], examples.log_ratio[which])
            done += 1
    return Forecaster(*(np.ascontiguousarray(weights[name], np.float64) for name in Forecaster._fields))

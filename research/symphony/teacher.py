"""Imitation of a teacher: the policy learns to do what a contention-aware rule would, or a search that looks ahead.

The rule sees what the policy sees: believed pressures, or none for the model-free variant. SoCC'18 bootstraps its
policy in the same spirit, from samples of a model. The search plays every likely candidate on to the end of the stream,
with the true foreign load, and advises what was cheapest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray
from research.symphony.actor_critic import MASKED, SymphonyTrainer
from research.symphony.recurrent_network import Params, forward
from research.symphony.recurrent_settings import NetSettings, NetShape

from stretto.core.kernels.rng import seeded
from stretto.racks.kernels.oracle import best_candidate
from stretto.racks.kernels.rules import SRPT, choose
from stretto.racks.simulator import RackBatch, new_state
from stretto.racks.symphony.cases import observe

_NUM_STEPS = 20
#: Candidates that the search plays to the end.
_WIDTH = 6
#: What to do in every environment of a batch; random states for ties.
Advice = Callable[[RackBatch, NDArray[np.uint64]], NDArray[np.int64]]


def rule_advice(batch: RackBatch, states: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return what ``srpt`` would do in every environment."""
    arrays = batch.model.arrays
    nothing = np.zeros(arrays.demand.shape[2])
    return np.array(
        [
            choose(
                arrays,
                batch.streams,
                batch.state,
                b,
                SRPT,
                arrays.duration_s,
                batch.belief.pressure[b] if batch.is_believing else nothing,
                batch.mask[b],
                states[b],
            )
            for b in range(batch.num_envs)
        ],
        np.int64,
    )


def lookahead_advice(batch: RackBatch, states: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return what a search that knows the future would do in every environment."""
    racks = new_state(batch.model, batch.streams, 2)
    told = np.empty(batch.num_envs, np.int64)
    for b in range(batch.num_envs):
        for mine, theirs in zip(racks, batch.state, strict=True):
            mine[0] = theirs[b]
        told[b] = best_candidate(batch.model.arrays, batch.streams, racks, SRPT, _WIDTH, batch.mask[b], states[b])
    return told


def imitate(trainer: SymphonyTrainer, num_batches: int, *, advice: Advice = rule_advice, rate: float = 5e-3) -> float:
    """Teach a trainer's policy; return how often it chose as the teacher in the last batch."""
    world, net, num_envs = trainer.world, trainer.net, trainer.a2c.num_envs
    batch = RackBatch(
        world.model,
        world.streams,
        num_envs,
        seed=trainer.iteration + 1,
        counters=world.counters,
        params=world.belief,
        is_believing=net.is_believing,
    )
    batch.start()
    learn = _compiled(trainer.shape, net, rate)
    state = optax.adam(rate).init(trainer.params)
    core = jnp.zeros((num_envs, net.core), jnp.float32)
    states = np.stack([seeded(trainer.iteration, b) for b in range(num_envs)])
    agreed = 0.0
    for _ in range(num_batches):
        rows = np.empty((_NUM_STEPS, num_envs, trainer.shape.row_length(net)), np.float32)
        mask = np.empty((_NUM_STEPS, *batch.mask.shape), np.bool_)
        told = np.empty((_NUM_STEPS, num_envs), np.int64)
        is_over = np.empty((_NUM_STEPS, num_envs), np.bool_)
        for t in range(_NUM_STEPS):
            observe(batch, rows[t])
            mask[t] = batch.mask
            told[t] = advice(batch, states)
            batch.step(told[t])
            is_over[t] = batch.is_over
        trainer.params, state, core, same = learn(trainer.params, state, core, rows, mask, told, is_over)
        agreed = float(same)
    return agreed


@lru_cache(maxsize=4)
def _compiled(shape: NetShape, net: NetSettings, rate: float) -> Any:
    return jax.jit(partial(_learn, shape, net, optax.adam(rate)))


def _learn(
    shape: NetShape,
    net: NetSettings,
    optimiser: Any,
    params: Params,
    state: Any,
    core: Any,
    rows: Any,
    mask: Any,
    told: Any,
    is_over: Any,
) -> tuple[Params, Any, Any, Any]:
    def loss(params: Params) -> tuple[Any, tuple[Any, Any]]:
        def unroll(core: Any, x: Any) -> tuple[Any, Any]:
            row, over = x
            logits, _, core = forward(params, shape, net, row, core)
            return jnp.where(over[:, None], 0.0, core), logits

        last, logits = jax.lax.scan(unroll, core, (rows, is_over))
        logits = jnp.where(mask, logits, MASKED)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), told[..., None], -1)[..., 0]
        return -chosen.mean(), (last, jnp.mean(jnp.argmax(logits, -1) == told))

    (_, (last, same)), gradient = jax.value_and_grad(loss, has_aux=True)(params)
    change, state = optimiser.update(gradient, state)
    return optax.apply_updates(params, change), state, last, same

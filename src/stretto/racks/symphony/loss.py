"""How a policy for racks learns from episodes: settings, an actor-critic's loss with a clipped ratio, the update."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from stretto.errors import InvalidInput, UnknownName
from stretto.racks.symphony.network import Params, forward
from stretto.racks.symphony.settings import NetSettings, NetShape
from stretto.racks.symphony.world import MASKED

REWARDS = ("flow", "makespan", "inverse")


@dataclass(frozen=True)
class A2c:
    """How to learn; the paper's Table 3 has rate 0.005, 20 steps and 2 environments, and no word on the rest.

    Attributes
    ----------
    num_envs, num_rollouts
        Episodes per iteration, and how many of them run the same stream.
    horizon_s
        Over how many seconds a decision is held to account.
    epochs, clip_ratio
        Updates per iteration, and how far from the policy that played they may lead.
    entropy
        Weight of the bonus for being undecided in the first iteration; it falls to a tenth over ``anneal`` iterations.
    clip
        Largest norm of a gradient.
    anneal
        Iterations over which the learning rate and the bonus fall to a tenth; None keeps them.
    """

    num_envs: int = 32
    num_rollouts: int = 4
    horizon_s: float = 10.0
    rate: float = 2e-3
    epochs: int = 3
    clip_ratio: float = 0.2
    entropy: float = 0.1
    value_weight: float = 0.25
    clip: float = 0.5
    reward: str = "flow"
    anneal: int | None = None

    def __post_init__(self) -> None:
        if self.reward not in REWARDS:
            raise UnknownName("reward", self.reward, REWARDS)
        if min(self.num_envs, self.num_rollouts, self.epochs) < 1 or not (self.rate > 0 and self.horizon_s > 0):
            raise InvalidInput("num_envs, num_rollouts, epochs, rate and horizon_s must be positive", field="a2c")
        if self.num_envs % self.num_rollouts:
            raise InvalidInput(
                f"{self.num_envs} environments cannot be shared out in groups of {self.num_rollouts}", field="a2c"
            )


class Lesson(NamedTuple):
    """What an update learns from; T steps of B episodes."""

    rows: Any  # [T, B, D]
    mask: Any  # [T, B, A]
    action: Any  # [T, B]
    is_live: Any  # [T, B]
    log_prob: Any  # [T, B] of the policy that played
    advantage: Any  # [T, B]
    target: Any  # [T, B] for the critic


def optimiser(a2c: A2c) -> Any:
    """Return Adam behind a clip, with a rate that falls."""
    rate: Any = a2c.rate
    if a2c.anneal is not None:
        rate = optax.linear_schedule(a2c.rate, 0.1 * a2c.rate, a2c.anneal * a2c.epochs)
    return optax.chain(optax.clip_by_global_norm(a2c.clip), optax.adam(rate))


@lru_cache(maxsize=8)
def compiled(shape: NetShape, net: NetSettings, a2c: A2c) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return sampling and updating, compiled once for all trainings of one shape."""
    return jax.jit(partial(_sample, shape, net)), jax.jit(partial(_update, shape, net, a2c, optimiser(a2c)))


def _sample(
    shape: NetShape, net: NetSettings, params: Params, rows: Any, mask: Any, core: Any, key: Any, step: Any
) -> tuple[Any, Any, Any, Any]:
    logits, value, core = forward(params, shape, net, rows, core)
    log_prob = jax.nn.log_softmax(jnp.where(mask, logits, MASKED))
    action = jax.random.categorical(jax.random.fold_in(key, step), log_prob)
    return action, jnp.take_along_axis(log_prob, action[:, None], -1)[:, 0], value, core


def _loss(
    shape: NetShape, net: NetSettings, a2c: A2c, params: Params, lesson: Lesson, bonus: Any
) -> tuple[Any, tuple[Any, Any]]:
    def unroll(core: Any, x: Any) -> tuple[Any, Any]:
        rows, mask, action = x
        logits, value, core = forward(params, shape, net, rows, core)
        log_prob = jax.nn.log_softmax(jnp.where(mask, logits, MASKED))
        entropy = -jnp.sum(jnp.where(mask, jnp.exp(log_prob) * log_prob, 0.0), -1)
        return core, (jnp.take_along_axis(log_prob, action[:, None], -1)[:, 0], value, entropy)

    start = jnp.zeros((lesson.rows.shape[1], net.core), jnp.float32)
    _, (log_prob, value, entropy) = jax.lax.scan(unroll, start, (lesson.rows, lesson.mask, lesson.action))
    live = lesson.is_live / lesson.is_live.sum()
    ratio = jnp.exp(jnp.where(lesson.is_live, log_prob - lesson.log_prob, 0.0))
    held = jnp.clip(ratio, 1.0 - a2c.clip_ratio, 1.0 + a2c.clip_ratio)
    actor = -jnp.sum(live * jnp.minimum(ratio * lesson.advantage, held * lesson.advantage))
    critic = jnp.sum(live * (value - lesson.target) ** 2)
    mean_entropy = jnp.sum(live * entropy)
    return actor + a2c.value_weight * critic - bonus * mean_entropy, (mean_entropy, critic)


def _update(
    shape: NetShape,
    net: NetSettings,
    a2c: A2c,
    optimiser: Any,
    params: Params,
    state: Any,
    lesson: Lesson,
    bonus: Any,
) -> tuple[Params, Any, tuple[Any, Any, Any]]:
    slope = jax.value_and_grad(partial(_loss, shape, net, a2c), has_aux=True)
    (loss, (entropy, critic)), gradient = slope(params, lesson, bonus)
    change, state = optimiser.update(gradient, state, params)
    return optax.apply_updates(params, change), state, (loss, entropy, critic)

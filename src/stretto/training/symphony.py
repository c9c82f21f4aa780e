"""n-step advantage actor-critic for racks: batched episodes in compiled code, one jitted update per iteration.

The reward is minus the job-seconds between two decisions, which add up to minus the sum of job completion times. The
paper prints minus the sum of 1/T over running actions; that form is here as ``inverse``, and ``makespan`` counts plain
seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from stretto.domain.csr import Floats
from stretto.domain.machine_work import RackModel
from stretto.errors import InvalidInput, UnknownName
from stretto.kernels.rack_counters import Counters
from stretto.kernels.rack_features import fill_rows
from stretto.kernels.rack_state import Streams
from stretto.learned.symphony.network import Params, forward, init_params
from stretto.learned.symphony.settings import NetSettings, NetShape, shape_of
from stretto.sim.rack import BeliefParams, RackBatch, counters_of

REWARDS = ("flow", "makespan", "inverse")
_MASKED = -1e9


@dataclass(frozen=True)
class A2c:
    """How to learn; the paper's Table 3 has rate 0.005, 20 steps and 2 environments.

    Attributes
    ----------
    anneal
        Iterations over which the learning rate falls to a tenth; None keeps it.
    """

    num_envs: int = 16
    num_steps: int = 20
    rate: float = 2e-3
    gamma: float = 0.98
    entropy: float = 0.01
    value_weight: float = 0.5
    clip: float = 1.0
    reward: str = "flow"
    anneal: int | None = None

    def __post_init__(self) -> None:
        if self.reward not in REWARDS:
            raise UnknownName("reward", self.reward, REWARDS)
        if min(self.num_envs, self.num_steps) < 1 or not (self.rate > 0 and 0 < self.gamma <= 1):
            raise InvalidInput("num_envs, num_steps, rate and gamma must be positive, gamma at most 1", field="a2c")


class Batch(NamedTuple):
    """What an update learns from; T steps of B environments."""

    rows: Any  # [T+1, B, D]
    mask: Any  # [T+1, B, A]
    action: Any  # [T, B]
    reward: Any  # [T, B]
    is_over: Any  # [T, B] after the step
    core: Any  # [B, c] before the first step


@dataclass
class Iteration:
    """News of one iteration."""

    number: int
    seconds: float
    reward: float
    entropy: float
    loss: float


@dataclass(frozen=True)
class World:
    """Where a policy learns: a rack, its streams, its counters, and what a belief assumes of them."""

    model: RackModel
    streams: Streams
    counters: Counters
    belief: BeliefParams = field(default_factory=BeliefParams)

    @staticmethod
    def of(model: RackModel, streams: Streams, belief: BeliefParams | None = None) -> World:
        return World(model, streams, counters_of(model), belief or BeliefParams())


class SymphonyTrainer:
    """One training; the same seed and world give the same weights."""

    def __init__(self, world: World, net: NetSettings, a2c: A2c, *, seed: int, params: Params | None = None) -> None:
        self.world, self.net, self.a2c = world, net, a2c
        self.shape: NetShape = shape_of(world.model, len(world.counters.resource), world.streams)
        self.params = params if params is not None else init_params(self.shape, net, seed)
        self.iteration = 0
        self.seconds = 0.0
        self._state = _optimiser(a2c).init(self.params)
        self._key = jax.random.PRNGKey(seed)
        self._batch = RackBatch(
            world.model,
            world.streams,
            a2c.num_envs,
            seed=seed,
            counters=world.counters,
            params=world.belief,
            is_believing=net.is_believing,
        )
        self._rows = np.zeros((a2c.num_envs, self.shape.row_length(net)), np.float32)
        self._core = jnp.zeros((a2c.num_envs, net.core), jnp.float32)
        self._sample, self._update = _compiled(self.shape, net, a2c)
        self._scale_s = 0.0
        self._batch.start()

    def step(self) -> Iteration:
        """Play ``num_steps`` decisions in every environment and learn from them."""
        begun = time.perf_counter()
        batch, reward = self._play()
        self.params, self._state, (loss, entropy) = self._update(self.params, self._state, batch)
        self.iteration += 1
        row = Iteration(self.iteration, 0.0, reward, float(entropy), float(loss))
        self.seconds += time.perf_counter() - begun
        row.seconds = self.seconds
        return row

    def _play(self) -> tuple[Batch, float]:
        num_steps, batch = self.a2c.num_steps, self._batch
        rows = np.empty((num_steps + 1, *self._rows.shape), np.float32)
        mask = np.empty((num_steps + 1, *batch.mask.shape), np.bool_)
        action = np.empty((num_steps, self.a2c.num_envs), np.int64)
        reward = np.empty((num_steps, self.a2c.num_envs))
        is_over = np.empty((num_steps, self.a2c.num_envs), np.bool_)
        first_core = self._core
        self._key, key = jax.random.split(self._key)
        keys = jax.random.split(key, num_steps)
        for t in range(num_steps):
            observe(batch, rows[t])
            mask[t] = batch.mask
            chosen, self._core = self._sample(self.params, rows[t], mask[t], self._core, keys[t])
            action[t] = np.asarray(chosen)
            batch.step(action[t])
            reward[t] = self._reward()
            is_over[t] = batch.is_over
            self._core = jnp.where(is_over[t][:, None], 0.0, self._core)
        observe(batch, rows[-1])
        mask[-1] = batch.mask
        if self._scale_s == 0.0:  # a reward is about one in size; the first iteration says what one is
            self._scale_s = float(np.mean(np.abs(reward))) + 1e-9
        scaled = (reward / self._scale_s).astype(np.float32)
        return Batch(rows, mask, action, scaled, is_over, first_core), float(reward.mean())

    def _reward(self) -> Floats:
        if self.a2c.reward == "flow":
            return -self._batch.cost[:, 1]
        if self.a2c.reward == "makespan":
            return -self._batch.cost[:, 0]
        state = self._batch.state
        running = (state.task >= 0) & (state.left_s > 0)
        inverse: Floats = -(running / np.maximum(state.left_s, 1e-3)).sum(axis=1)
        return inverse


def observe(batch: RackBatch, out: NDArray[np.float32]) -> None:
    """Fill a row per environment."""
    fill_rows(batch.model.arrays, batch.streams, batch.state, batch.belief, batch.readings, batch.is_believing, out)


def _sample(
    shape: NetShape, net: NetSettings, params: Params, rows: Any, mask: Any, core: Any, key: Any
) -> tuple[Any, Any]:
    logits, _, core = forward(params, shape, net, rows, core)
    return jax.random.categorical(key, jnp.where(mask, logits, _MASKED)), core


def _loss(shape: NetShape, net: NetSettings, a2c: A2c, params: Params, batch: Batch) -> tuple[Any, Any]:
    def unroll(core: Any, x: Any) -> tuple[Any, Any]:
        rows, is_over = x
        logits, value, core = forward(params, shape, net, rows, core)
        return jnp.where(is_over[:, None], 0.0, core), (logits, value)

    over = jnp.concatenate([batch.is_over, jnp.zeros_like(batch.is_over[:1])])
    _, (logits, value) = jax.lax.scan(unroll, batch.core, (batch.rows, over))
    logits = jnp.where(batch.mask, logits, _MASKED)[:-1]
    log_prob = jax.nn.log_softmax(logits)
    chosen = jnp.take_along_axis(log_prob, batch.action[..., None], -1)[..., 0]

    def back(later: Any, x: Any) -> tuple[Any, Any]:
        reward, is_over = x
        later = reward + a2c.gamma * jnp.where(is_over, 0.0, later)
        return later, later

    last = jax.lax.stop_gradient(value[-1])
    _, returns = jax.lax.scan(back, last, (batch.reward, batch.is_over), reverse=True)
    advantage = returns - value[:-1]
    held = jax.lax.stop_gradient(advantage)
    held = (held - held.mean()) / (held.std() + 1e-6)
    entropy = -jnp.mean(jnp.sum(jnp.where(batch.mask[:-1], jnp.exp(log_prob) * log_prob, 0.0), -1))
    actor = -jnp.mean(chosen * held)
    critic = jnp.mean(advantage**2)
    return actor + a2c.value_weight * critic - a2c.entropy * entropy, entropy


def _update(
    shape: NetShape, net: NetSettings, a2c: A2c, optimiser: Any, params: Params, state: Any, batch: Batch
) -> tuple[Params, Any, tuple[Any, Any]]:
    (loss, entropy), gradient = jax.value_and_grad(partial(_loss, shape, net, a2c), has_aux=True)(params, batch)
    change, state = optimiser.update(gradient, state)
    return optax.apply_updates(params, change), state, (loss, entropy)


class Judge:
    """Plays held-out streams without chance and returns the completion time of every job."""

    def __init__(self, world: World, shape: NetShape, net: NetSettings, *, seed: int = 12345) -> None:
        self.world, self.net = world, net
        self._seed = seed
        self._shape = shape
        self._greedy = _compiled_greedy(shape, net)

    def flow_s(self, params: Params) -> Floats:
        """Return completion minus arrival of each job; a row per stream."""
        world, streams = self.world, self.world.streams
        num = len(streams.kernel)
        batch = RackBatch(
            world.model,
            streams,
            num,
            seed=self._seed,
            counters=world.counters,
            params=world.belief,
            is_believing=self.net.is_believing,
        )
        batch.start(np.arange(num))
        rows = np.zeros((num, self._shape.row_length(self.net)), np.float32)
        core = jnp.zeros((num, self.net.core), jnp.float32)
        is_done = np.zeros(num, np.bool_)
        flow = np.full((num, streams.arrival_s.shape[1]), np.nan)
        for _ in range(50 * streams.kernel.shape[1]):
            observe(batch, rows)
            action, core = self._greedy(params, rows, batch.mask, core)
            batch.step(np.asarray(action))
            for b in np.flatnonzero(batch.is_over & ~is_done):
                flow[b] = batch.ends_s[b] - streams.arrival_s[b]
            is_done |= batch.is_over
            if is_done.all():
                break
        return flow


@lru_cache(maxsize=8)
def _compiled(shape: NetShape, net: NetSettings, a2c: A2c) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return sampling and updating, compiled once for all trainings of one shape."""
    update = partial(_update, shape, net, a2c, _optimiser(a2c))
    return jax.jit(partial(_sample, shape, net)), jax.jit(update)


@lru_cache(maxsize=8)
def _compiled_greedy(shape: NetShape, net: NetSettings) -> Callable[..., Any]:
    compiled: Callable[..., Any] = jax.jit(partial(_greedy, shape, net))
    return compiled


def _optimiser(a2c: A2c) -> Any:
    rate: Any = a2c.rate
    if a2c.anneal is not None:
        rate = optax.linear_schedule(a2c.rate, 0.1 * a2c.rate, a2c.anneal)
    return optax.chain(optax.clip_by_global_norm(a2c.clip), optax.adam(rate))


def _greedy(shape: NetShape, net: NetSettings, params: Params, rows: Any, mask: Any, core: Any) -> tuple[Any, Any]:
    logits, _, core = forward(params, shape, net, rows, core)
    return jnp.argmax(jnp.where(mask, logits, _MASKED), -1), core

"""Actor-critic for racks: whole episodes in compiled code, then a few jitted updates per iteration.

Episodes come in groups: several racks run the same stream. Streams differ far more than decisions do: a burst of jobs,
or a foreign load on the faster NIC, moves completion times by more than any choice. Rollouts of one stream share
arrivals, sizes and foreign load; what the others of the group paid from the same moment on is a baseline that takes all
of that out (an input-dependent baseline), and as it does not depend on the decision, the gradient stays unbiased.
Without it, on two NICs, nine tenths of an advantage are luck.

The reward is minus the job-seconds between two decisions, which add up to minus the sum of job completion times. The
paper prints minus the sum of 1/T over running actions; that form is here as ``inverse``, and ``makespan`` counts plain
seconds. Everything that chance decides follows from the seed and the number of the iteration, so the weights, the
state of the optimizer and one scale are all that a training needs to resume exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray
from research.symphony.recurrent_network import Params, forward, init_params
from research.symphony.recurrent_settings import A2c, NetSettings, NetShape, shape_of

from stretto.core.csr import Floats
from stretto.racks.kernels.features import fill_rows
from stretto.racks.kernels.oracle import fill_raw_pressure
from stretto.racks.simulator import Mask, RackBatch
from stretto.racks.symphony.cases import World, observe

ArrayT = TypeVar("ArrayT", bound=np.generic)
#: What a jitted function returns.
Jitted: TypeAlias = Callable[..., tuple[jax.Array, ...]]
MASKED = -1e9
#: Episodes are padded to a multiple of this many steps, so that few lengths have to be compiled.
_PAD = 128
#: Actions, their log-probabilities and values, for the rows and masks of a step.
Act = Callable[[NDArray[np.float32], Mask, int], tuple[jax.Array, jax.Array, jax.Array]]
#: An array on either side of the boundary between numpy and jax.
Either: TypeAlias = jax.Array | NDArray[np.generic]


class RackEpisodes(NamedTuple):
    """B episodes of at most T decisions, padded; what comes after an episode's end has ``is_live`` False."""

    rows: NDArray[np.float32]  # [T, B, D]
    mask: Mask  # [T, B, A]
    action: NDArray[np.int64]  # [T, B]
    cost: Floats  # [T, B] until the next decision
    step_s: Floats  # [T, B] to the next decision
    is_live: Mask  # [T, B]
    value: Floats  # [T, B] what the critic expected
    log_prob: Floats  # [T, B]


class A2cBatch(NamedTuple):
    """What an update learns from; T steps of B episodes."""

    rows: Either  # [T, B, D]
    mask: Either  # [T, B, A]
    action: Either  # [T, B]
    is_live: Either  # [T, B]
    log_prob: Either  # [T, B] of the policy that played
    advantage: Either  # [T, B]
    target: Either  # [T, B] for the critic


class Iteration(NamedTuple):
    """What one iteration reports; ``cost`` is the mean cost of an episode in the unit of the reward."""

    number: int
    cost: float
    entropy: float
    loss: float


class SymphonyTrainer:
    """One training; the same seed and world give the same weights."""

    def __init__(self, world: World, net: NetSettings, a2c: A2c, *, seed: int, params: Params | None = None) -> None:
        self.world, self.net, self.a2c, self.seed = world, net, a2c, seed
        self.shape: NetShape = shape_of(world.model, len(world.counters.resource), world.streams)
        self.params = params if params is not None else init_params(self.shape, net, seed)
        self.iteration = 0
        self.state = optimizer(a2c).init(self.params)
        self.scale = 0.0  # of costs to come; set by the first iteration
        self._batch = world.batch(a2c.num_envs, seed=seed, is_believing=net.is_believing)

    def step(self) -> Iteration:
        """Play an episode in every environment and learn from them."""
        episodes = self._play()
        batch = self._learnable(episodes)
        _, update = compiled(self.shape, self.net, self.a2c)
        for _ in range(self.a2c.epochs):
            self.params, self.state, (loss, entropy) = update(self.params, self.state, batch, self._bonus())
        self.iteration += 1
        cost = float((episodes.cost * episodes.is_live).sum(axis=0).mean())
        return Iteration(self.iteration, cost, float(entropy), float(loss))

    def _bonus(self) -> float:
        """Return the weight of entropy in this iteration."""
        done = 0.0 if self.a2c.anneal is None else min(1.0, self.iteration / self.a2c.anneal)
        return self.a2c.entropy * (1.0 - 0.9 * done)

    def _play(self) -> RackEpisodes:
        a2c = self.a2c
        rng = np.random.default_rng([self.seed, self.iteration])
        drawn = rng.integers(len(self.world.streams.kernel), size=a2c.num_envs // a2c.num_rollouts)
        self._batch.start(np.repeat(drawn, a2c.num_rollouts), seed=int(rng.integers(2**31)))
        key = jax.random.fold_in(jax.random.PRNGKey(self.seed), self.iteration)
        core = jnp.zeros((a2c.num_envs, self.net.core), jnp.float32)
        sample, _ = compiled(self.shape, self.net, a2c)

        def act(rows: NDArray[np.float32], mask: Mask, step: int) -> tuple[jax.Array, jax.Array, jax.Array]:
            nonlocal core
            action, log_prob, value, core = sample(self.params, rows, mask, core, key, step)
            return action, log_prob, value

        return play_episodes(self.world, self._batch, self.net, self.shape.row_length(self.net), act, a2c.reward)

    def _learnable(self, episodes: RackEpisodes) -> A2cBatch:
        """Return episodes with advantages: what came, less what the critic and the rest of the group lead to expect."""
        cost = costs_to_come(episodes, self.a2c.horizon_s)
        live = episodes.is_live
        if self.scale == 0.0:
            self.scale = float(np.std(cost[live])) + 1e-9
        target = -cost / self.scale
        surprise = np.where(live, target - episodes.value, 0.0)
        advantage = less_group_mean(surprise, episodes, self.a2c.num_rollouts)
        spread = float(np.std(advantage[live])) + 1e-6
        return A2cBatch(
            episodes.rows,
            episodes.mask,
            episodes.action,
            live,
            episodes.log_prob.astype(np.float32),
            np.where(live, (advantage - advantage[live].mean()) / spread, 0.0).astype(np.float32),
            target.astype(np.float32),
        )


def see(batch: RackBatch, net: NetSettings, rows: NDArray[np.float32]) -> None:
    """Fill what a policy sees; for ``counters``, pressures and loads are what the counters say."""
    if net.variant != "counters":
        observe(batch, rows)
        return
    for b in range(batch.num_envs):
        fill_raw_pressure(batch.counters, batch.readings, b, batch.belief.pressure[b])
    batch.belief.load[:] = np.minimum(batch.belief.pressure, 1.0)
    fill_rows(batch.model.arrays, batch.streams, batch.state, batch.belief, batch.readings, True, rows)


def play_episodes(world: World, batch: RackBatch, net: NetSettings, width: int, act: Act, reward: str) -> RackEpisodes:
    """Play a batch that has begun until every episode is over.

    Parameters
    ----------
    width
        Numbers in a row of an observation.
    """
    lists: list[list[NDArray[np.generic]]] = [[] for _ in RackEpisodes._fields]
    is_live = np.ones(batch.num_envs, np.bool_)
    for t in range(world.most_decisions):
        rows = np.empty((batch.num_envs, width), np.float32)
        see(batch, net, rows)
        mask = batch.mask.copy()
        action, log_prob, value = (np.asarray(one) for one in act(rows, mask, t))
        batch.step(action)
        reached = (-_reward(batch, reward), batch.cost[:, 0].copy(), is_live.copy(), value, log_prob)
        row: tuple[NDArray[Any], ...] = (rows, mask, action, *reached)
        for kept, one in zip(lists, row, strict=True):
            kept.append(one)
        is_live &= ~batch.is_over
        if not is_live.any():
            break
    return RackEpisodes(*(padded(np.stack(kept)) for kept in lists))


def _reward(batch: RackBatch, kind: str) -> Floats:
    if kind == "flow":
        return -batch.cost[:, 1]
    if kind == "makespan":
        return -batch.cost[:, 0]
    running = (batch.state.task >= 0) & (batch.state.left_s > 0)
    inverse: Floats = -(running / np.maximum(batch.state.left_s, 1e-3)).sum(axis=1)
    return inverse


def padded(array: NDArray[ArrayT]) -> NDArray[ArrayT]:
    """Return an array with zeros up to a multiple of the steps that are compiled."""
    missing = -len(array) % _PAD
    return np.concatenate([array, np.zeros((missing, *array.shape[1:]), array.dtype)])


def costs_to_come(episodes: RackEpisodes, horizon_s: float) -> Floats:
    """Return what each decision's episode pays from it on, discounted over time, not over decisions; [T, B]."""
    out = np.zeros_like(episodes.cost)
    later = np.zeros(out.shape[1])
    for t in range(len(out) - 1, -1, -1):
        later = np.exp(-episodes.step_s[t] / horizon_s) * later + episodes.cost[t]
        later = np.where(episodes.is_live[t], later, 0.0)
        out[t] = later
    return out


def less_group_mean(values: Floats, episodes: RackEpisodes, num_rollouts: int) -> Floats:
    """Return values less the mean of the others of the group at the same moment; episodes of a stream are adjacent."""
    if num_rollouts == 1:
        return values
    at_s = np.cumsum(episodes.step_s, axis=0) - episodes.step_s
    length = episodes.is_live.sum(axis=0)
    out = values.copy()
    for b in range(values.shape[1]):
        first = b - b % num_rollouts
        here = at_s[: length[b], b]
        others = [j for j in range(first, first + num_rollouts) if j != b]
        seen = [np.interp(here, at_s[: length[j], j], values[: length[j], j], right=0.0) for j in others]
        out[: length[b], b] -= np.mean(seen, axis=0)
    return out


def optimizer(a2c: A2c) -> optax.GradientTransformation:
    """Return Adam behind a clip, with a rate that falls."""
    rate: float | optax.Schedule = a2c.rate
    if a2c.anneal is not None:
        rate = optax.linear_schedule(a2c.rate, 0.1 * a2c.rate, a2c.anneal * a2c.epochs)
    return optax.chain(optax.clip_by_global_norm(a2c.clip), optax.adam(rate))


@lru_cache(maxsize=8)
def compiled(shape: NetShape, net: NetSettings, a2c: A2c) -> tuple[Jitted, Jitted]:
    """Return sampling and updating, compiled once for all trainings of one shape."""
    update = partial(update_by, partial(_loss, shape, net, a2c), optimizer(a2c))
    return jax.jit(partial(_sample, shape, net)), jax.jit(update)


def _sample(
    shape: NetShape,
    net: NetSettings,
    params: Params,
    rows: jax.Array,
    mask: jax.Array,
    core: jax.Array,
    key: jax.Array,
    step: int,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    logits, value, core = forward(params, shape, net, rows, core)
    log_prob = jax.nn.log_softmax(jnp.where(mask, logits, MASKED))
    action = jax.random.categorical(jax.random.fold_in(key, step), log_prob)
    return action, jnp.take_along_axis(log_prob, action[:, None], -1)[:, 0], value, core


def _loss(
    shape: NetShape, net: NetSettings, a2c: A2c, params: Params, batch: A2cBatch, bonus: float
) -> tuple[jax.Array, jax.Array]:
    """Return the loss with a clipped ratio, and the mean entropy."""

    def unroll(core: jax.Array, x: tuple[jax.Array, ...]) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        rows, mask, action = x
        logits, value, core = forward(params, shape, net, rows, core)
        log_prob = jax.nn.log_softmax(jnp.where(mask, logits, MASKED))
        entropy = -jnp.sum(jnp.where(mask, jnp.exp(log_prob) * log_prob, 0.0), -1)
        return core, (jnp.take_along_axis(log_prob, action[:, None], -1)[:, 0], value, entropy)

    start = jnp.zeros((batch.rows.shape[1], net.core), jnp.float32)
    _, (log_prob, value, entropy) = jax.lax.scan(unroll, start, (batch.rows, batch.mask, batch.action))
    live = batch.is_live / batch.is_live.sum()
    ratio = jnp.exp(jnp.where(batch.is_live, log_prob - batch.log_prob, 0.0))
    held = jnp.clip(ratio, 1.0 - a2c.clip_ratio, 1.0 + a2c.clip_ratio)
    actor = -jnp.sum(live * jnp.minimum(ratio * batch.advantage, held * batch.advantage))
    critic = jnp.sum(live * (value - batch.target) ** 2)
    mean_entropy = jnp.sum(live * entropy)
    return actor + a2c.value_weight * critic - bonus * mean_entropy, mean_entropy


def update_by(
    loss: Callable[..., tuple[jax.Array, jax.Array]],
    optimizer: optax.GradientTransformation,
    params: Params,
    state: optax.OptState,
    batch: NamedTuple,
    bonus: float,
) -> tuple[Params, optax.OptState, tuple[jax.Array, jax.Array]]:
    """Return weights after one step down the gradient, the optimizer's state, and loss and entropy."""
    (value, entropy), gradient = jax.value_and_grad(loss, has_aux=True)(params, batch, bonus)
    change, state = optimizer.update(gradient, state, params)
    stepped: Params = optax.apply_updates(params, change)
    return stepped, state, (value, entropy)


class HeldOut:
    """Plays streams without chance, and returns the completion time of every job."""

    def __init__(self, world: World, shape: NetShape, net: NetSettings, *, seed: int = 12345) -> None:
        self.world, self.net = world, net
        self._seed = seed
        self._shape = shape

    def flow_s(self, params: Params) -> Floats:
        """Return completion minus arrival of each job; a row per stream."""
        streams = self.world.streams
        num = len(streams.kernel)
        batch = self.world.batch(num, seed=self._seed, is_believing=self.net.is_believing)
        batch.start(np.arange(num))
        rows = np.zeros((num, self._shape.row_length(self.net)), np.float32)
        core = jnp.zeros((num, self.net.core), jnp.float32)
        is_done = np.zeros(num, np.bool_)
        flow = np.full((num, streams.arrival_s.shape[1]), np.nan)
        greedy = _compiled_greedy(self._shape, self.net)
        for _ in range(self.world.most_decisions):
            see(batch, self.net, rows)
            action, core = greedy(params, rows, batch.mask, core)
            batch.step(np.asarray(action))
            for b in np.flatnonzero(batch.is_over & ~is_done):
                flow[b] = batch.ends_s[b] - streams.arrival_s[b]
            is_done |= batch.is_over
            if is_done.all():
                break
        return flow


@lru_cache(maxsize=8)
def _compiled_greedy(shape: NetShape, net: NetSettings) -> Callable[..., tuple[jax.Array, jax.Array]]:
    greedy: Callable[..., tuple[jax.Array, jax.Array]] = jax.jit(partial(_greedy, shape, net))
    return greedy


def _greedy(
    shape: NetShape, net: NetSettings, params: Params, rows: jax.Array, mask: jax.Array, core: jax.Array
) -> tuple[jax.Array, jax.Array]:
    logits, _, core = forward(params, shape, net, rows, core)
    return jnp.argmax(jnp.where(mask, logits, MASKED), -1), core

"""Reinforcement for the scoring network: PPO-clip with GAE, and A2C; and imitation of another network.

Windows are played in compiled code with heads drawn from the softmax (``kernels/sample.py``); one batched update in jax
follows. The reward of a decision is minus what waiting adds to all slowdowns until the next, over what the best
classic order gets on the window. Only the score is learned here: who may pass the head, and the patience, stay as they
are.

What a decision costs later is mostly made by the jobs that happen to come, which no critic can know. So each window is
played several times, and an advantage is what is left when that of the other plays at the same moment is taken away
(the baseline that depends on the input of Mao et al., "Variance reduction for reinforcement learning in input-driven
environments", ICLR 2019). Without it the steps of PPO on one batch follow that batch's luck.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from research.mars.sample import WIDTH, Record, new_record, sample_mars

from stretto.core.csr import Floats
from stretto.core.kernels.rng import seeded
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.mars.forecaster import shipped
from stretto.queues.mars.kernels import policy as features
from stretto.queues.mars.network import MarsNet
from stretto.queues.mars.parameters import MARS_PARAMETERS
from stretto.queues.mars.windows import Window
from stretto.queues.metrics import bounded

_OUT = -1e9
_CRITIC_HIDDEN = 32
_CRITIC_INPUTS = features.NUM_FEATURES + 1
#: Which inputs of the hidden layer are clipped, as in the kernel.
_CLIPPED = np.array([k < features.NUM_STATIC or k == features.WAIT_DAYS for k in range(features.NUM_FEATURES)])


@dataclass(frozen=True)
class Reinforcement:
    """How to learn.

    Attributes
    ----------
    algorithm
        ``ppo``: several steps on a batch with clipped ratios, stopped at a divergence. ``a2c``: one step.
    windows_per_update, plays
        Windows are played so many times in all per update, each of them so often.
    most_decisions
        Of a window, so many are recorded.
    discount
        What the cost after a decision counts, per decision that follows: over a whole window it would be noise.
    """

    algorithm: str = "ppo"
    windows_per_update: int = 16
    plays: int = 4
    most_decisions: int = 1024
    learning_rate: float = 3e-3
    critic_rate: float = 1e-2
    steps: int = 8
    clip: float = 0.2
    discount: float = 0.99
    trace: float = 0.97
    most_divergence: float = 0.015

    def __post_init__(self) -> None:
        if self.algorithm not in ("ppo", "a2c"):
            raise UnknownName("algorithm", self.algorithm, ("ppo", "a2c"))
        if min(self.windows_per_update, self.plays, self.most_decisions, self.steps) < 1:
            raise InvalidInput("windows, plays, decisions and steps must be at least 1", field="reinforcement")
        if self.windows_per_update % self.plays:
            many = f"{self.windows_per_update} windows cannot be played {self.plays} times each"
            raise InvalidInput(many, field="reinforcement")


class Batch(NamedTuple):
    """Decisions of B windows, M of each."""

    x: Any  # [B, M, WIDTH, F] f32
    count: Any  # [B, M] jobs among which was drawn; 0 = no decision
    action: Any  # [B, M]
    log_prob: Any  # [B, M]
    reward: Any  # [B, M]
    when: Any  # [B, M] seconds since the window began, without end where there is no decision


def init_params(net: MarsNet, seed: int) -> dict[str, Any]:
    """Return the weights of actor and critic; the critic begins at zero."""
    full = net if net.num_hidden else net.with_hidden(MARS_PARAMETERS.num_hidden, seed)
    rng = np.random.default_rng(seed)
    return {
        "skip": jnp.asarray(full.net.skip, jnp.float32),
        "hidden": jnp.asarray(full.net.hidden, jnp.float32),
        "bias": jnp.asarray(full.net.bias, jnp.float32),
        "out": jnp.asarray(full.net.out, jnp.float32),
        "critic_in": jnp.asarray(rng.normal(size=(_CRITIC_INPUTS, _CRITIC_HIDDEN)) * 0.2, jnp.float32),
        "critic_bias": jnp.zeros(_CRITIC_HIDDEN, jnp.float32),
        "critic_out": jnp.zeros(_CRITIC_HIDDEN, jnp.float32),
    }


def scores(params: dict[str, Any], x: Any, count: Any) -> Any:
    """Return the scores of listed jobs; where none is listed, minus infinity nearly."""
    clipped = jnp.where(_CLIPPED, jnp.minimum(x, features.CLIP), x)
    z = clipped @ params["hidden"].T + params["bias"]
    value = x[..., : features.NUM_JOB] @ params["skip"] + jnp.maximum(z, features.LEAK * z) @ params["out"]
    return jnp.where(jnp.arange(WIDTH) < count[..., None], value, _OUT)


def values(params: dict[str, Any], x: Any, count: Any) -> Any:
    """Return what the critic expects from each decision on: it sees the queue, and its best jobs on average."""
    listed = jnp.arange(WIDTH) < count[..., None]
    some = jnp.maximum(count, 1)[..., None]
    mean = jnp.sum(jnp.where(listed[..., None], jnp.clip(x, -features.CLIP, features.CLIP), 0.0), axis=-2) / some
    inputs = jnp.concatenate([mean, count[..., None] / WIDTH], axis=-1)
    z = inputs @ params["critic_in"] + params["critic_bias"]
    return jnp.maximum(z, features.LEAK * z) @ params["critic_out"]


def advantages(reward: Any, value: Any, is_real: Any, discount: float, trace: float) -> Any:
    """Return generalised advantage estimates (Schulman et al. 2016) per window; nothing follows the last decision."""

    def back(carry: tuple[Any, Any], now: tuple[Any, Any, Any]) -> tuple[tuple[Any, Any], Any]:
        later, following = carry
        gained, expected, real = now
        advantage = gained + discount * following - expected + discount * trace * later
        advantage = jnp.where(real, advantage, 0.0)
        return (advantage, jnp.where(real, expected, 0.0)), advantage

    columns = (reward.T[::-1], value.T[::-1], is_real.T[::-1])
    zeros = jnp.zeros(reward.shape[0])
    _, found = jax.lax.scan(back, (zeros, zeros), columns)
    return found[::-1].T


def less_others(found: Any, when: Any, plays: int) -> Any:
    """Return advantages less the mean of those that the other plays of a window had at the same moment.

    Parameters
    ----------
    found, when
        Advantages and moments; plays of one window follow one another; [B, M].
    """
    if plays == 1:
        return found

    def of_window(found: Any, when: Any) -> Any:
        theirs = jax.vmap(lambda at: jax.vmap(lambda x, f: jnp.interp(at, x, f))(when, found))(when)  # [P, P, M]
        others = theirs.sum(axis=1) - theirs[jnp.arange(plays), jnp.arange(plays)]
        return found - others / (plays - 1)

    shape = (-1, plays, found.shape[-1])
    return jax.vmap(of_window)(found.reshape(shape), when.reshape(shape)).reshape(found.shape)


class MarsLearner:
    """One training by reinforcement; windows are drawn by seed, updates follow one another.

    Parameters
    ----------
    net
        Where to begin; a network without a hidden layer gets one that does not count yet.
    """

    def __init__(
        self,
        train: Sequence[Window],
        net: MarsNet,
        *,
        seed: int,
        rules: Reinforcement | None = None,
        num_threads: int = 2,
    ) -> None:
        if not train:
            raise InvalidInput("training needs windows", field="windows")
        self.rules = rules or Reinforcement()
        self._train = list(train)
        self._net = net
        self._seed = seed
        self._threads = num_threads
        self.num_updates = 0
        self.params = init_params(net, seed)
        rates = {name: "critic" if name.startswith("critic") else "actor" for name in self.params}
        self._optimiser = optax.multi_transform(
            {"actor": optax.adam(self.rules.learning_rate), "critic": optax.adam(self.rules.critic_rate)}, rates
        )
        self._state = self._optimiser.init(self.params)
        self._update = jax.jit(self._step)
        self._prepare = jax.jit(self._judge)

    def net(self, name: str = "mars") -> MarsNet:
        """Return the actor as it is now."""
        arrays = {key: np.asarray(self.params[key], np.float64) for key in ("skip", "hidden", "bias", "out")}
        return MarsNet(name, self._net.net._replace(**arrays))

    def step(self) -> float:
        """Play and learn from one batch; return the mean slowdown over that of the best classic."""
        batch, cost = self.play()
        target, advantage = self._prepare(self.params, batch)
        for _ in range(self.rules.steps if self.rules.algorithm == "ppo" else 1):
            self.params, self._state, divergence = self._update(self.params, self._state, batch, target, advantage)
            if float(divergence) > self.rules.most_divergence:
                break
        self.num_updates += 1
        return cost

    def play(self) -> tuple[Batch, float]:
        """Play some windows; return their decisions and the mean slowdown over that of the best classic."""
        rng = np.random.default_rng([self._seed, self.num_updates])
        plays = self.rules.plays
        count = min(self.rules.windows_per_update // plays, len(self._train))
        chosen = np.repeat(rng.choice(len(self._train), count, replace=False), plays)
        net = self.net().net

        def one(place: int) -> tuple[Record, float, float]:
            window = self._train[chosen[place]]
            record = new_record(self.rules.most_decisions)
            start = np.empty(len(window.jobs.submit))
            state = seeded(self._seed, 1_000_003 * self.num_updates + place)
            sample_mars(window.jobs, window.kinds, window.num_procs, net, shipped(), state, start, record)
            best = min(figures.slowdown for figures in window.classics.values())
            slowdown = float(bounded(start - window.jobs.submit, window.jobs.run).mean())
            return record, best * len(start), slowdown / best

        with ThreadPoolExecutor(self._threads) as executor:
            played = list(executor.map(one, range(len(chosen))))
        return _batch(played), float(np.mean([ratio for _, _, ratio in played]))

    def _judge(self, params: dict[str, Any], batch: Batch) -> tuple[Any, Any]:
        """Return what the critic should have said, and normalised advantages."""
        is_real = batch.count > 0
        value = values(params, batch.x, batch.count)
        found = advantages(batch.reward, value, is_real, self.rules.discount, self.rules.trace)
        num = jnp.maximum(is_real.sum(), 1)
        own = jnp.where(is_real, less_others(found, batch.when, self.rules.plays), 0.0)
        mean = jnp.sum(own) / num
        spread = jnp.sqrt(jnp.sum(jnp.where(is_real, (own - mean) ** 2, 0.0)) / num)
        return found + value, jnp.where(is_real, (own - mean) / (spread + 1e-8), 0.0)

    def _step(self, params: Any, state: Any, batch: Batch, target: Any, advantage: Any) -> tuple[Any, Any, Any]:
        is_real = batch.count > 0
        num = jnp.maximum(is_real.sum(), 1)

        def loss(params: dict[str, Any]) -> tuple[Any, Any]:
            log_prob = _log_prob(params, batch)
            change = jnp.where(is_real, log_prob - batch.log_prob, 0.0)
            ratio = jnp.exp(change)
            gain = ratio * advantage
            if self.rules.algorithm == "ppo":
                gain = jnp.minimum(gain, jnp.clip(ratio, 1 - self.rules.clip, 1 + self.rules.clip) * advantage)
            wrong = jnp.where(is_real, (values(params, batch.x, batch.count) - target) ** 2, 0.0)
            # Never negative, unlike the mean of the change itself, whose noise would hide how far the policy has gone.
            divergence = jnp.sum(jnp.where(is_real, ratio - 1.0 - change, 0.0)) / num
            return (jnp.sum(wrong) - jnp.sum(gain)) / num, divergence

        (_, divergence), gradient = jax.value_and_grad(loss, has_aux=True)(params)
        change, state = self._optimiser.update(gradient, state, params)
        return optax.apply_updates(params, change), state, divergence


def _log_prob(params: dict[str, Any], batch: Batch) -> Any:
    """Return the log probability of each action."""
    listed = scores(params, batch.x, batch.count)
    return jnp.take_along_axis(jax.nn.log_softmax(listed), batch.action[..., None], axis=-1)[..., 0]


def _batch(played: Sequence[tuple[Record, float, float]]) -> Batch:
    """Stack records; decisions beyond the last have no jobs."""
    most = played[0][0].listed.shape[0]
    inside = np.stack([np.arange(most) < record.num[0] for record, _, _ in played])

    def stack(name: str) -> Floats:
        return np.stack([getattr(record, name) for record, _, _ in played])

    scale = np.array([total for _, total, _ in played])[:, None]
    return Batch(
        jnp.asarray(stack("x"), jnp.float32),
        jnp.asarray(np.where(inside, stack("listed"), 0)),
        jnp.asarray(np.where(inside, stack("action"), 0)),
        jnp.asarray(np.where(inside, stack("log_prob"), 0.0), jnp.float32),
        jnp.asarray(np.where(inside, -stack("cost") / scale, 0.0), jnp.float32),
        jnp.asarray(np.where(inside, stack("when"), np.inf), jnp.float32),
    )


def imitate(learner: MarsLearner, teacher: MarsNet, num_batches: int, *, steps: int = 20, rate: float = 0.02) -> float:
    """Teach the actor to pick what another network would, in the states that it meets; return how often it does.

    Parameters
    ----------
    steps
        Gradient steps per batch of played windows.
    """
    told = init_params(teacher, 0)
    optimiser = optax.adam(rate)
    actor = {name: learner.params[name] for name in ("skip", "hidden", "bias", "out")}
    state = optimiser.init(actor)

    def update(actor: Any, state: Any, batch: Batch) -> tuple[Any, Any, Any]:
        is_real = batch.count > 0
        label = jnp.argmax(scores(told, batch.x, batch.count), axis=-1)

        def loss(actor: Any) -> tuple[Any, Any]:
            listed = scores(actor, batch.x, batch.count)
            found = jnp.take_along_axis(jax.nn.log_softmax(listed), label[..., None], axis=-1)[..., 0]
            same = jnp.argmax(listed, axis=-1) == label
            num = jnp.maximum(is_real.sum(), 1)
            return -jnp.sum(jnp.where(is_real, found, 0.0)) / num, jnp.sum(is_real & same) / num

        (_, same), gradient = jax.value_and_grad(loss, has_aux=True)(actor)
        change, state = optimiser.update(gradient, state)
        return optax.apply_updates(actor, change), state, same

    compiled = jax.jit(update)
    agreed: Any = math.nan
    for _ in range(num_batches):
        batch, _ = learner.play()
        for _ in range(steps):
            actor, state, agreed = compiled(actor, state, batch)
        learner.params = {**learner.params, **actor}
        learner.num_updates += 1
    return float(agreed)

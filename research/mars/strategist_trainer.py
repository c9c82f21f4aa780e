"""Training of the strategist over recorded epochs of many queues.

An epoch of a recorded queue has what was seen of every candidate, and what each then cost in its shadow. An episode
goes through some epochs of one queue; at each, the actor draws a candidate and is paid what that one saved against the
default in the next jobs, in logarithms, crowded epochs counting more; to change costs something, for a shadow does not
show that the queue which one order leaves behind is a bad start for another.

Since every candidate's reward is known, and not only that of the one that was drawn, the gradient is that of the
expectation over all of them (mean actor-critic: Allen, Asadi, Roderick et al. 2017): its noise is that of the epochs
which are met. What was drawn decides only who is followed when the next epoch begins.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray
from research.mars.epochs import Epochs
from research.mars.observation import MOST
from research.mars.strategist import LEAK, Strategist, prior, strategist_of

from research.mars import observation
from stretto.core.csr import Floats
from stretto.errors import InvalidInput

#: Thresholds that are tried on validation.
THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_OUT = -1e9
#: Epochs of an episode: long queues are cut, so that none has to wait for the longest.
_STRETCH = 64


@dataclass(frozen=True)
class StrategistRules:
    """How to learn.

    Attributes
    ----------
    change
        What turning to another candidate costs, in logarithms of the cost of an epoch.
    num_plays
        Episodes of each stretch of a queue per update.
    entropy, last_entropy
        What the actor is paid for not being sure, at first and at the end, where what candidates are worth has a spread
        of one: who is sure too soon learns nothing more.
    """

    num_updates: int = 300
    num_plays: int = 4
    learning_rate: float = 3e-3
    change: float = 0.2
    discount: float = 0.9
    entropy: float = 1.0
    last_entropy: float = 0.01

    def __post_init__(self) -> None:
        for name in ("num_updates", "num_plays"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{getattr(self, name)} must be at least 1", field=name)
        for name in ("learning_rate", "change", "entropy", "last_entropy"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidInput(f"{getattr(self, name)} must be finite and not negative", field=name)
        if not 0 <= self.discount <= 1:
            raise InvalidInput(f"{self.discount} must be from 0 to 1", field="discount")


class _Tables(NamedTuple):
    """Stretches of queues side by side; Q of them."""

    rows: Any  # [Q, E, K, NUM_INPUTS]
    reward: Any  # [Q, E, K]
    is_in: Any  # [Q, E, K]
    is_real: Any  # [Q, E]


def train(queues: Sequence[Epochs], *, seed: int, rules: StrategistRules | None = None) -> tuple[Strategist, Floats]:
    """Return a strategist, and the mean reward per epoch of every update.

    Parameters
    ----------
    queues
        All with the same candidates.
    """
    if not queues or min(len(queue.rows) for queue in queues) == 0:
        raise InvalidInput("training needs recorded epochs", field="queues")
    how = rules or StrategistRules()
    tables = _side_by_side(queues)
    first = prior()
    fixed = {"threshold": first.threshold}
    params = {name: jnp.asarray(array) for name, array in first.to_arrays().items() if name not in fixed}
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(how.learning_rate))
    state = optimiser.init(params)

    def update(params: Any, state: Any, tables: _Tables, key: Any, entropy: Any) -> tuple[Any, Any, Any]:
        action, before = _play(params, tables, key, how.num_plays)
        real = jnp.broadcast_to(tables.is_real, action.shape)
        worth = jax.lax.stop_gradient(_worth(params, tables, before, how))

        def loss(params: Any) -> Any:
            logit = _logits(params, tables, before)
            likely = jax.nn.softmax(logit)
            expected = jnp.sum(likely * worth, axis=-1)
            spread = jnp.sqrt(jnp.mean(jnp.where(tables.is_in, (worth - expected[..., None]) ** 2, 0.0)))
            unsure = -jnp.sum(jnp.where(tables.is_in, likely * jax.nn.log_softmax(logit), 0.0), axis=-1)
            wrong = (_values(params, tables, before) - jax.lax.stop_gradient(expected)) ** 2
            each = 0.5 * wrong - expected / jax.lax.stop_gradient(spread + 1e-8) - entropy * unsure
            return jnp.sum(jnp.where(real, each, 0.0)) / jnp.sum(real)

        paid = _paid(tables, action, before, how.change)
        change, state = optimiser.update(jax.grad(loss)(params), state, params)
        return optax.apply_updates(params, change), state, jnp.sum(paid) / jnp.sum(real)

    compiled = jax.jit(update)
    told = np.empty(how.num_updates)
    for number, entropy in enumerate(np.linspace(how.entropy, how.last_entropy, how.num_updates)):
        params, state, mean = compiled(params, state, tables, jax.random.PRNGKey(seed * 1_000_003 + number), entropy)
        told[number] = float(mean)
    arrays = {name: np.asarray(array, np.float64) for name, array in params.items()}
    return strategist_of({**arrays, **fixed}), told


def follow(strategist: Strategist, queue: Epochs, threshold: float, *, change: float = 0.0) -> tuple[Any, float]:
    """Go through a queue as it is done in use; return who was followed, and the mean reward per epoch."""
    reward = queue.rewards()
    followed = np.zeros(len(queue.rows), np.int64)
    total, now = 0.0, 0
    for epoch, rows in enumerate(queue.rows):
        seen = rows.copy()
        seen[:, observation.IS_FOLLOWED] = np.where(np.isnan(rows[:, observation.IS_FOLLOWED]), np.nan, 0.0)
        seen[now, observation.IS_FOLLOWED] = 1.0
        likely = strategist.probabilities(seen)
        best = int(np.argmax(likely))
        chosen = best if likely[best] >= threshold else 0
        total += float(reward[epoch, chosen]) - change * (chosen != now)
        followed[epoch] = now = chosen
    return followed, total / len(queue.rows)


def validated(
    strategist: Strategist, queues: Sequence[Epochs], *, change: float
) -> tuple[Strategist, Mapping[float, float]]:
    """Return the strategist with the threshold that did best on these queues, and what each threshold did."""
    if not queues:
        raise InvalidInput("a threshold is validated on queues", field="queues")
    worth = {
        threshold: float(np.mean([follow(strategist, queue, threshold, change=change)[1] for queue in queues]))
        for threshold in THRESHOLDS
    }
    best = max(worth, key=lambda threshold: worth[threshold])
    return replace(strategist, threshold=np.array([best])), worth


def _side_by_side(wholes: Sequence[Epochs]) -> _Tables:
    """Put stretches of queues into one table."""
    queues = [
        queue._replace(rows=queue.rows[first : first + _STRETCH], cost=queue.cost[first : first + _STRETCH])
        for queue in wholes
        for first in range(0, len(queue.rows), _STRETCH)
    ]
    num_epochs = max(len(queue.rows) for queue in queues)

    def filled(array: NDArray[Any], value: float) -> Any:
        room = [(0, num_epochs - len(array)), *[(0, 0)] * (array.ndim - 1)]
        return np.pad(array, room, constant_values=value)

    rows = np.stack([filled(queue.rows, np.nan) for queue in queues])
    reward = np.stack([filled(queue.rewards(), -MOST) for queue in queues])
    is_in = np.isfinite(rows).all(axis=-1) & np.isfinite(reward)
    is_real = np.stack([np.arange(num_epochs) < len(queue.rows) for queue in queues])
    is_in[..., 0] = True
    return _Tables(
        jnp.asarray(np.nan_to_num(rows), jnp.float32),
        jnp.asarray(np.where(is_in, np.nan_to_num(reward), 0.0), jnp.float32),
        jnp.asarray(is_in),
        jnp.asarray(is_real),
    )


def _with_followed(rows: Any, followed: Any) -> Any:
    """Return the rows with who is followed marked."""
    mark = jax.nn.one_hot(followed, rows.shape[-2])
    return rows.at[..., observation.IS_FOLLOWED].set(mark)


def _score(params: Any, rows: Any) -> Any:
    z = rows @ params["hidden"] + params["bias"]
    return rows @ params["linear"] + jnp.maximum(z, LEAK * z) @ params["out"]


def _play(params: Any, tables: _Tables, key: Any, num_plays: int) -> tuple[Any, Any]:
    """Draw candidates from epoch to epoch; return whom, and who was followed before; both [P, Q, E]."""

    def one(key: Any, rows: Any, is_in: Any) -> tuple[Any, Any]:
        def step(now: Any, epoch: tuple[Any, Any, Any]) -> tuple[Any, tuple[Any, Any]]:
            row, inside, noise = epoch
            logit = jnp.where(inside, _score(params, _with_followed(row, now)), _OUT)
            taken = jax.random.categorical(noise, logit)
            return taken, (taken, now)

        keys = jax.random.split(key, rows.shape[0])
        _, (taken, before) = jax.lax.scan(step, jnp.zeros((), jnp.int32), (rows, is_in, keys))
        return taken, before

    keys = jax.random.split(key, (num_plays, tables.rows.shape[0]))
    over_queues = jax.vmap(one)
    taken, before = jax.vmap(lambda some: over_queues(some, tables.rows, tables.is_in))(keys)
    return taken, before


def _paid(tables: _Tables, action: Any, before: Any, change: float) -> Any:
    """Return the reward of every choice; [P, Q, E]."""
    reward = jnp.broadcast_to(tables.reward, (*action.shape, tables.reward.shape[-1]))
    got = jnp.take_along_axis(reward, action[..., None], axis=-1)[..., 0]
    return jnp.where(tables.is_real, got - change * (action != before), 0.0)


def _worth(params: Any, tables: _Tables, before: Any, how: StrategistRules) -> Any:
    """Return what every candidate would bring: its reward, and the value of going on with it; [P, Q, E, K]."""
    changes = jnp.arange(tables.reward.shape[-1]) != before[..., None]
    later = _values_of_all(params, tables)
    following = jnp.concatenate([later[:, 1:], jnp.zeros_like(later[:, :1])], axis=1)
    goes_on = jnp.concatenate([tables.is_real[:, 1:], jnp.zeros_like(tables.is_real[:, :1])], axis=1)
    paid = tables.reward - how.change * changes + how.discount * jnp.where(goes_on[..., None], following, 0.0)
    return jnp.where(tables.is_in, paid, 0.0)


def _logits(params: Any, tables: _Tables, before: Any) -> Any:
    return jnp.where(tables.is_in, _score(params, _with_followed(_many(tables, before), before)), _OUT)


def _values(params: Any, tables: _Tables, before: Any) -> Any:
    """Return what the critic says at every epoch; [P, Q, E]."""
    every = jnp.broadcast_to(_values_of_all(params, tables), (before.shape[0], *tables.reward.shape))
    return jnp.take_along_axis(every, before[..., None], axis=-1)[..., 0]


def _values_of_all(params: Any, tables: _Tables) -> Any:
    """Return what the critic says at every epoch, whoever is followed when it begins; [Q, E, K]."""
    rows = tables.rows
    cheapest = jnp.argmin(jnp.where(tables.is_in, rows[..., observation.ALL], jnp.inf), axis=-1)
    best = jnp.broadcast_to(jnp.take_along_axis(rows, cheapest[..., None, None], axis=-2), rows.shape)
    is_best = jnp.arange(rows.shape[-2]) == cheapest[..., None]
    seen = (rows.at[..., observation.IS_FOLLOWED].set(1.0), best.at[..., observation.IS_FOLLOWED].set(is_best))
    z = jnp.concatenate(seen, axis=-1) @ params["critic"] + params["critic_bias"]
    return jnp.maximum(z, LEAK * z) @ params["critic_out"]


def _many(tables: _Tables, before: Any) -> Any:
    return jnp.broadcast_to(tables.rows, (before.shape[0], *tables.rows.shape))

"""Learning what every choice of a decision would have cost, instead of only the one that was made.

An actor-critic is told the return of one action per decision, which depends on the luck of everything that came after.
In a simulator the others can be tried as well: the rest of the stream is played out by a rule once per candidate, under
one and the same future (``racks/kernels/lookahead.py``). What the policy expects to pay is then a plain sum over
candidates, whose gradient has no sampling noise of actions. The policy sees only what a scheduler sees; the future that
the prices know averages out over streams. One such update is a step of policy improvement over the rule.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.kernels.rng import seeded
from stretto.racks.kernels.lookahead import price_actions
from stretto.racks.kernels.rules import SRPT
from stretto.racks.simulator import RackBatch, new_state
from stretto.racks.symphony.cases import World, observe
from stretto.racks.symphony.network import Params, forward
from stretto.racks.symphony.settings import A2c, NetSettings, NetShape
from stretto.racks.symphony.trainer import MASKED, Iteration, Jitted, SymphonyTrainer, optimizer, padded, update_by

#: Candidates of a decision: the rule's own, and those that the policy holds most likely.
WIDTH = 4
#: Part of the decisions that are priced: neighbours tell much the same, and playing out is what costs.
_SHARE = 0.2
#: What the policy holds less likely than this is no candidate.
_LEAST = 0.005
#: Regret beyond so many times the typical one counts as this much: one absurd choice should not fill a batch.
_MOST = 10.0


class Priced(NamedTuple):
    """B episodes of at most T decisions, and what the candidates of each would have cost."""

    rows: NDArray[np.float32]  # [T, B, D]
    is_priced: NDArray[np.bool_]  # [T, B]
    action: NDArray[np.int64]  # [T, B, W] candidates
    is_one: NDArray[np.bool_]  # [T, B, W] whether there is one
    regret: NDArray[np.float32]  # [T, B, W] job-seconds above the best candidate


class LookaheadTrainer(SymphonyTrainer):
    """A training by priced candidates; everything but the step is that of the actor-critic."""

    def step(self) -> Iteration:
        """Play an episode in every environment, price its decisions and learn from that."""
        rng = np.random.default_rng([self.seed, self.iteration])
        drawn = rng.choice(len(self.world.streams.kernel), size=self.a2c.num_envs, replace=False)
        self._batch.start(drawn, seed=int(rng.integers(2**31)))
        priced, cost = self._play_priced()
        if self.scale == 0.0 and priced.is_one.any():
            self.scale = float(priced.regret[priced.is_one].mean())
        regret = np.minimum(priced.regret / max(self.scale, 1e-9), _MOST).astype(np.float32)
        update = _compiled(self.shape, self.net, self.a2c)
        priced = priced._replace(regret=regret)
        for _ in range(self.a2c.epochs):
            self.params, self.state, (loss, entropy) = update(self.params, self.state, priced, self._bonus())
        self.iteration += 1
        return Iteration(self.iteration, cost, float(entropy), float(loss))

    def _play_priced(self) -> tuple[Priced, float]:
        """Return an episode per environment, and what one cost on average."""
        batch, num = self._batch, self.a2c.num_envs
        key = jax.random.fold_in(jax.random.PRNGKey(self.seed), self.iteration)
        core = jnp.zeros((num, self.net.core), jnp.float32)
        rng = np.random.default_rng([self.seed, self.iteration, 1])
        pricer, look = _Pricer(self.world, batch), _compiled_look(self.shape, self.net)
        steps: list[Priced] = []
        is_live, cost = np.ones(num, np.bool_), np.zeros(num)
        for t in range(self.world.most_decisions):
            rows = np.empty((num, self.shape.row_length(self.net)), np.float32)
            observe(batch, rows)
            chosen, prob, core = look(self.params, rows, batch.mask, core, key, t)
            is_priced = is_live & (rng.random(num) < _SHARE)
            steps.append(Priced(rows, is_priced, *pricer(is_priced, np.asarray(prob))))
            batch.step(np.asarray(chosen))
            cost += np.where(is_live, batch.cost[:, 1], 0.0)
            is_live &= ~batch.is_over
            if not is_live.any():
                break
        whole = (padded(np.stack(part)) for part in zip(*steps, strict=True))
        return Priced(*whole), float(cost.mean())


class _Pricer:
    """Prices the candidates at the present decision of every environment."""

    def __init__(self, world: World, batch: RackBatch) -> None:
        self.world, self.batch = world, batch
        self._racks = new_state(world.model, world.streams, 2)

    def __call__(
        self, is_priced: NDArray[np.bool_], prob: NDArray[np.float32]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.float32]]:
        shape = (len(is_priced), WIDTH)
        actions, is_one, regret = np.zeros(shape, np.int64), np.zeros(shape, np.bool_), np.zeros(shape, np.float32)
        for b in np.flatnonzero(is_priced).tolist():
            costs = np.empty(WIDTH)
            num = self._price(b, prob[b], actions[b], costs)
            is_one[b, :num] = True
            regret[b, :num] = costs[:num] - costs[:num].min()
        return actions, is_one, regret

    def _price(self, b: int, prob: NDArray[np.float32], actions: NDArray[np.int64], costs: Floats) -> int:
        for scratch, here in zip(self._racks, self.batch.state, strict=True):
            scratch[0] = here[b]
        arrays, streams = self.world.model.arrays, self.world.streams
        mask = self.batch.mask[b]
        order = np.argsort(-prob, kind="stable")
        order = order[prob[order] > _LEAST]
        return int(price_actions(arrays, streams, self._racks, SRPT, mask, order, seeded(0, b), actions, costs))


@lru_cache(maxsize=4)
def _compiled_look(shape: NetShape, net: NetSettings) -> Jitted:
    def look(
        params: Params, rows: jax.Array, mask: jax.Array, core: jax.Array, key: jax.Array, step: int
    ) -> tuple[jax.Array, ...]:
        """Return a drawn action, the chances of all, and the next state of the core."""
        logits, _, core = forward(params, shape, net, rows, core)
        logits = jnp.where(mask, logits, MASKED)
        return jax.random.categorical(jax.random.fold_in(key, step), logits), jax.nn.softmax(logits), core

    compiled: Jitted = jax.jit(look)
    return compiled


@lru_cache(maxsize=4)
def _compiled(shape: NetShape, net: NetSettings, a2c: A2c) -> Jitted:
    update: Jitted = jax.jit(partial(update_by, partial(expected_regret, shape, net), optimizer(a2c)))
    return update


def expected_regret(
    shape: NetShape, net: NetSettings, params: Params, priced: Priced, bonus: float
) -> tuple[jax.Array, jax.Array]:
    """Return what the policy expects to pay above the best candidates, less a bonus for being undecided."""

    def unroll(core: jax.Array, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
        logits, _, core = forward(params, shape, net, rows, core)
        return core, logits

    start = jnp.zeros((priced.rows.shape[1], net.core), jnp.float32)
    _, logits = jax.lax.scan(unroll, start, priced.rows)
    picked = jnp.where(priced.is_one, jnp.take_along_axis(logits, priced.action, -1), MASKED)
    log_prob = jax.nn.log_softmax(picked)
    prob = jnp.where(priced.is_one, jnp.exp(log_prob), 0.0)
    live = priced.is_priced / jnp.maximum(priced.is_priced.sum(), 1)
    entropy = -jnp.sum(live[..., None] * prob * jnp.where(priced.is_one, log_prob, 0.0))
    return jnp.sum(live[..., None] * prob * priced.regret) - bonus * entropy, entropy

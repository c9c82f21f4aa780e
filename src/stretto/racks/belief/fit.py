"""Parameters of a belief network from recorded counters, by gradients from forward samples (Eqs. 2 and 3).

The network is sampled forward: each source of foreign load is off or on at some level, and has or has not changed by a
second window; loads follow, and with them how likely the readings of each counted part are in both windows. No
posterior is worked out. A reading's probability is the mean of its likelihood over samples of the parents, so its
gradient is the mean of the likelihood's own gradient (levels, theta, noise: along the samples) plus the likelihood
times the score of what was drawn (on or off, changed or not). Parts are taken one by one, each with the sources on its
path.

Loads are those of one pass: everything that crosses a full part is slowed by how much more is asked of it than it has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.errors import InvalidInput
from stretto.racks.belief.recording import CounterRecorder, CounterRecording
from stretto.racks.kernels.counters import Counters
from stretto.racks.machine_work import RackModel
from stretto.racks.params import BeliefParams
from stretto.racks.simulator import RackBatch

if TYPE_CHECKING:
    import jax

Weights = dict[str, Any]


@dataclass(frozen=True)
class FitParams:
    """How parameters are fitted.

    Attributes
    ----------
    num_pairs, num_samples
        Pairs of windows per update, and forward samples for each.
    lags
        Windows between the two of a pair: one tells of levels, many of how long they last.
    rate
        Of Adam, on logarithms; it falls to a tenth.
    """

    num_pairs: int = 32
    num_samples: int = 64
    lags: tuple[int, ...] = (1, 4, 16)
    rate: float = 0.05


class BeliefFit:
    """One fit; the same seed and recordings give the same parameters."""

    def __init__(
        self,
        model: RackModel,
        counters: Counters,
        start: BeliefParams,
        *,
        seed: int,
        num_updates: int,
        params: FitParams | None = None,
    ) -> None:
        import jax
        import optax

        self.model, self.counters, self.start, self.params = model, counters, start, params or FitParams()
        self.kinds = tuple(sorted(set(model.source_kind)))
        self.num_updates = 0
        self._rng = np.random.default_rng([seed, 17])
        self._key = jax.random.PRNGKey(seed)
        self._weights = _free(start, self.kinds)
        rate = optax.cosine_decay_schedule(self.params.rate, num_updates, 0.1)
        self._optimizer = optax.chain(optax.clip_by_global_norm(5.0), optax.adam(rate))
        self._state = self._optimizer.init(self._weights)
        self._update = jax.jit(partial(_update, self._optimizer, self._network(), self.params.num_samples))

    def step(self, recording: CounterRecording) -> None:
        """Update the parameters once, from pairs of windows drawn at random."""
        import jax

        first, second = self._pairs(recording)
        both = np.stack([first, second], axis=1)  # [B, 2]
        kernel = recording.kernel[both]
        own = self.model.arrays.demand[np.maximum(kernel, 0), np.arange(kernel.shape[2])] * (kernel >= 0)[..., None]
        is_sane = np.isfinite(recording.mean[both]) & (np.abs(recording.mean[both]) < 20.0)
        batch = {
            "mean": np.where(is_sane, recording.mean[both], 0.0),
            "sd": np.where(is_sane, recording.sd[both], 0.0),
            "num": np.where(is_sane & (recording.num[both] >= 2), recording.num[both], 0),
            "own": own,
            "gap_s": recording.end_s[second] - recording.end_s[first],
        }
        batch = {name: np.asarray(one, np.float32) for name, one in batch.items()}
        key = jax.random.fold_in(self._key, self.num_updates)
        self._weights, self._state = self._update(self._weights, self._state, batch, key)
        self.num_updates += 1

    def found(self) -> BeliefParams:
        """Return the present parameters."""
        return _bound(self._weights, self.kinds, self.start)

    def _pairs(self, recording: CounterRecording) -> tuple[Ints, Ints]:
        lag = self._rng.choice(self.params.lags, self.params.num_pairs)
        first = self._rng.integers(0, np.maximum(len(recording.end_s) - lag, 1))
        second = np.minimum(first + lag, len(recording.end_s) - 1)
        is_same = recording.stream[first] == recording.stream[second]
        if not is_same.any():
            raise InvalidInput("no two windows of one stream in a row", field="stream")
        kept = self._rng.choice(np.flatnonzero(is_same), self.params.num_pairs)
        return first[kept], second[kept]

    def _network(self) -> dict[str, Floats]:
        """Return the fixed part: who uses what, and which counter reads which part in which way."""
        sources = self.model.arrays.source_demand
        reads = np.zeros((len(self.counters.resource), sources.shape[1]))
        reads[np.arange(len(reads)), self.counters.resource] = 1.0
        kind = np.array([[float(kind == one) for one in self.kinds] for kind in self.model.source_kind])
        is_bent = self.counters.exponent != 1.0
        return {"demand": sources, "reads": reads, "kind": kind, "bent": is_bent, "nu": np.array(self.start.prior_nu)}


class OnlineFit:
    """Follows a rack while it works: an update every few windows, from the last ones, put to use at once.

    It observes a :class:`stretto.racks.dispatch.RackEpisode`.

    Parameters
    ----------
    every, memory
        Windows between two updates, and how many windows an update draws from.
    """

    def __init__(
        self,
        model: RackModel,
        counters: Counters,
        start: BeliefParams,
        *,
        seed: int,
        every: int = 4,
        memory: int = 1000,
        rate: float = 0.03,
    ) -> None:
        # The rate does not fall: a machine may change again.
        self.fit = BeliefFit(model, counters, start, seed=seed, num_updates=10**9, params=FitParams(rate=rate))
        self.every, self.memory = every, memory
        self._recorder = CounterRecorder()

    def __call__(self, batch: RackBatch, length_s: float) -> None:
        """Take in the window that ends now."""
        self._recorder(batch, length_s)
        if len(self._recorder) >= 2 * max(self.fit.params.lags) and len(self._recorder) % self.every == 0:
            self.fit.step(self._recorder.recording(self.memory))
            found = self.fit.found()
            batch.params[:] = found.array()
            batch.belief.level[:] = found.levels(batch.model)
            batch.belief.prior[:] = found.prior(batch.model)


def fit_belief(
    model: RackModel,
    counters: Counters,
    recording: CounterRecording,
    start: BeliefParams,
    *,
    seed: int = 0,
    num_updates: int = 600,
    on_update: Callable[[int], None] | None = None,
) -> BeliefParams:
    """Return the parameters that make recorded counters likely, from a start; spread and pace stay as they are."""
    fit = BeliefFit(model, counters, start, seed=seed, num_updates=num_updates)
    for number in range(num_updates):
        fit.step(recording)
        if on_update is not None:
            on_update(number + 1)
    return fit.found()


def _free(start: BeliefParams, kinds: tuple[str, ...]) -> Weights:
    """Return parameters without bounds."""
    import jax.numpy as jnp

    ends = [start.level.get(kind, (0.1, 1.0)) for kind in kinds]
    return {
        "theta": jnp.log(start.theta - 1.0),
        "noise": jnp.log(start.noise),
        "floor": jnp.log(start.floor),
        "share": jnp.log(start.share / (1.0 - start.share)),
        "period": jnp.log(start.period_s),
        "least": jnp.log(jnp.array([max(least, 0.01) for least, _ in ends])),
        "width": jnp.log(jnp.array([max(most - least, 0.02) for least, most in ends])),
    }


def _bound(weights: Weights, kinds: tuple[str, ...], start: BeliefParams) -> BeliefParams:
    found = {name: np.asarray(one, np.float64) for name, one in weights.items()}
    least = np.exp(found["least"])
    most = least + np.exp(found["width"])
    level = {kind: (float(least[k]), float(most[k])) for k, kind in enumerate(kinds)}
    return replace(
        start,
        theta=1.0 + float(np.exp(found["theta"])),
        noise=float(np.exp(found["noise"])),
        floor=float(np.exp(found["floor"])),
        share=float(1.0 / (1.0 + np.exp(-found["share"]))),
        period_s=float(np.exp(found["period"])),
        level={**start.level, **level},
    )


def _update(
    optimizer: Any, network: dict[str, Any], num: int, weights: Weights, state: Any, batch: dict[str, Any], key: Any
) -> tuple[Weights, Any]:
    import jax
    import optax

    gradient = jax.grad(partial(_surprise, network, num))(weights, batch, key)
    change, state = optimizer.update(gradient, state)
    return optax.apply_updates(weights, change), state


def _surprise(network: dict[str, Any], num: int, weights: Weights, batch: dict[str, Any], key: Any) -> jax.Array:
    """Return minus the log-probability of the readings of a pair of windows, by forward samples of their parents."""
    import jax
    import jax.numpy as jnp

    levels, score = _draw(network, num, weights, batch["gap_s"], key)
    seen = sum(
        _log_likelihood(network, weights, _loads(network, levels[turn], batch["own"][:, turn]), batch, turn)
        for turn in (0, 1)
    )  # [B, S, R]
    of_part = score @ (network["demand"] > 0).astype(np.float32)
    score_only = of_part - jax.lax.stop_gradient(of_part)  # zero; its gradient is that of the score
    log_mean = jax.nn.logsumexp(seen + score_only, axis=1) - jnp.log(num) - score_only.mean(axis=1)
    return -log_mean.sum(axis=1).mean()


def _draw(
    network: dict[str, Any], num: int, weights: Weights, gap_s: Any, key: Any
) -> tuple[tuple[Any, Any], jax.Array]:
    """Return levels in both windows and the log-probability of what was drawn; [B, S, F] each."""
    import jax
    import jax.numpy as jnp

    share, period_s = jax.nn.sigmoid(weights["share"]), jnp.exp(weights["period"])
    least = network["kind"] @ jnp.exp(weights["least"])
    width = network["kind"] @ jnp.exp(weights["width"])
    chance, height, again = jax.random.uniform(key, (3, len(gap_s), num, len(least)))
    is_on = chance < jax.lax.stop_gradient(share)
    leave = 1.0 / (period_s * share)
    mixed = 1.0 - jnp.exp(-gap_s * (leave + 1.0 / (period_s * (1.0 - share))))[:, None, None]
    stays, goes, comes = jnp.exp(-gap_s * leave)[:, None, None], (1.0 - share) * mixed, share * mixed
    anew = jnp.maximum(1.0 - stays - goes, 1e-6)
    part = jax.random.uniform(jax.random.fold_in(key, 1), is_on.shape)
    has_stayed = is_on & (part < stays)
    has_gone = is_on & ~has_stayed & (part < stays + goes)
    has_come = ~is_on & (part < comes)
    changed = jnp.where(has_stayed, stays, jnp.where(has_gone, goes, jnp.where(is_on, anew, 1.0 - comes)))
    score = jnp.log(jnp.where(is_on, share, 1.0 - share)) + jnp.log(jnp.where(has_come, comes, changed) + 1e-12)
    first = jnp.where(is_on, least + width * height, 0.0)
    second = jnp.where(has_stayed, first, jnp.where(has_gone | (~is_on & ~has_come), 0.0, least + width * again))
    return (first, second), score


def _loads(network: dict[str, Any], level: Any, own: Any) -> jax.Array:
    """Return the load of every part, [B, S, R], for levels [B, S, F] beside own demands [B, P, R]."""
    import jax.numpy as jnp

    demand = network["demand"]
    excess = jnp.maximum(own.sum(axis=1)[:, None] + level @ demand, 1.0)
    slow_source = jnp.where(demand > 0, excess[:, :, None], 1.0).max(axis=3)
    slow_own = jnp.where(own[:, None] > 0, excess[:, :, None], 1.0).max(axis=3)
    load = (level / slow_source) @ demand + jnp.einsum("bsp,bpr->bsr", 1.0 / slow_own, own)
    return jnp.clip(load, 1e-4, 1.0)


def _log_likelihood(network: dict[str, Any], weights: Weights, load: Any, batch: dict[str, Any], turn: int) -> Any:
    """Return how likely the readings of every part are, as in ``kernels/evidence.py``; 0 where there are none."""
    import jax.numpy as jnp

    num, nu = batch["num"][:, None, turn], network["nu"]
    value = load @ network["reads"].T  # [B, S, C]
    value = jnp.where(network["bent"], value ** jnp.exp(weights["theta"]), value)
    guess = nu * ((jnp.exp(weights["noise"]) * value) ** 2 + jnp.exp(2.0 * weights["floor"]))
    within = (num - 1.0) * batch["sd"][:, None, turn] ** 2
    square = guess + within + num * (batch["mean"][:, None, turn] - value) ** 2
    log = 0.5 * nu * jnp.log(guess) - 0.5 * (nu + num) * jnp.log(square)
    return jnp.where(num >= 2, log, 0.0) @ network["reads"]

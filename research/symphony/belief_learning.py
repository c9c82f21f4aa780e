"""Learning what a belief network has to know: theta by end-to-end gradients, with two ways to get them.

One update is the same actor-critic step in both: beliefs about a batch of machines feed a small policy that picks a
NIC, the reward is minus the true load on the way, and gradients go through the policy into theta. ``sampling`` draws
forward samples and follows them; ``propagation`` works the distributions out on a grid. Nothing else differs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from research.symphony.utilization import SumTree, propagated_means, sampled_means, server_tree

from stretto.errors import UnknownName

METHODS = ("sampling", "propagation")
TRUE_THETA = 4.0
_NU = 3.0  # four samples per reading


@dataclass(frozen=True)
class GradientSettings:
    """One comparison.

    Attributes
    ----------
    num_samples, num_bins
        Forward samples per machine, and values per node of the grid.
    """

    method: str = "sampling"
    batch_size: int = 64
    num_samples: int = 32
    num_bins: int = 32
    rate: float = 0.01
    noise: float = 0.15

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UnknownName("gradient", self.method, METHODS)


@dataclass
class GradientResult:
    """What came of it: theta, the mean true load of the chosen way (less is better), CPU seconds per update."""

    theta: float
    load: float
    seconds_per_update: float


def learn_theta(
    settings: GradientSettings, *, seed: int, num_updates: int, start: float = 2.5, tree: SumTree | None = None
) -> GradientResult:
    """Train policy and theta together, then judge on machines that were not seen."""
    tree = tree or server_tree()
    rng = np.random.default_rng(seed)
    params = {
        "theta": jnp.asarray(start, jnp.float32),
        "w0": jnp.asarray(rng.normal(size=(tree.num_nodes, 16)) * 0.3, jnp.float32),
        "w1": jnp.asarray(rng.normal(size=(16, 2)) * 0.3, jnp.float32),
    }
    optimiser = optax.adam(settings.rate)
    state = optimiser.init(params)
    update = jax.jit(partial(_update, tree, settings, optimiser))
    key = jax.random.PRNGKey(seed)
    batches = [_machines(tree, settings, rng) for _ in range(num_updates + 1)]
    for _ in range(2):  # compiles, the second time for the types that come back from the first
        params, state = update(params, state, batches[-1], key)
    jax.block_until_ready(params)
    begun = time.process_time()
    for batch in batches[:-1]:
        key, used = jax.random.split(key)
        params, state = update(params, state, batch, used)
    jax.block_until_ready(params)
    seconds = (time.process_time() - begun) / num_updates
    judged = _machines(tree, GradientSettings("propagation", 1024, noise=settings.noise), np.random.default_rng(999))
    beliefs = _beliefs(tree, settings, params["theta"], judged, key)
    choice = jnp.argmax(_logits(params, beliefs), -1)
    load = jnp.take_along_axis(judged["cost"], choice[:, None], 1).mean()
    return GradientResult(float(params["theta"]), float(load), seconds)


def _machines(tree: SumTree, settings: GradientSettings, rng: np.random.Generator) -> dict[str, Any]:
    """Draw machines: true loads, what counters read of them, and the load on the way through either NIC."""
    true = rng.uniform(0.05, 0.9, (settings.batch_size, tree.num_leaves))
    is_bent = np.isin(np.arange(tree.num_leaves), tree.occupancy)
    reading = np.where(is_bent, true ** (TRUE_THETA - 1.0), true)
    scale = settings.noise * np.maximum(reading, 0.05)
    measured = reading + scale * rng.standard_t(_NU, reading.shape)
    nodes = [true[:, leaf] for leaf in range(tree.num_leaves)]
    for parts in tree.sums:
        nodes.append(np.sum([weight * nodes[node] for node, weight in parts], axis=0))
    # The way of a NIC is as slow as its fuller part.
    cost = np.stack([np.maximum(nodes[switch], nodes[memory]) for switch, memory in tree.ways], -1)
    return {
        "mean": jnp.asarray(np.clip(measured, 0.0, 1.2)),
        "scale": jnp.asarray(scale),
        "cost": jnp.asarray(cost),
        "felt": jnp.asarray(true[:, list(tree.occupancy)]),
    }


def _beliefs(tree: SumTree, settings: GradientSettings, theta: Any, batch: dict[str, Any], key: Any) -> Any:
    """Return the mean of every node for each machine; [B, V]."""
    if settings.method == "sampling":
        # Three degrees of freedom from four normal numbers: the library's own sampler rejects, and is slow. All
        # machines of a batch share the draws, which leaves each machine's mean unbiased.
        normal = jax.random.normal(key, (4, settings.num_samples, tree.num_leaves))
        noise = jnp.clip(normal[0] / jnp.sqrt(jnp.mean(normal[1:] ** 2, 0)), -8.0, 8.0)
        return jax.vmap(lambda m, s: sampled_means(tree, m, s, theta, noise))(batch["mean"], batch["scale"])
    return jax.vmap(lambda m, s: propagated_means(tree, m, s, theta, _NU, settings.num_bins))(
        batch["mean"], batch["scale"]
    )


def _logits(params: dict[str, Any], beliefs: Any) -> Any:
    return jax.nn.relu(beliefs @ params["w0"]) @ params["w1"]


def _update(
    tree: SumTree,
    settings: GradientSettings,
    optimiser: Any,
    params: dict[str, Any],
    state: Any,
    batch: dict[str, Any],
    key: Any,
) -> tuple[Any, Any]:
    noise_key, choice_key = jax.random.split(key)

    def loss(params: dict[str, Any]) -> Any:
        theta = jnp.clip(params["theta"], 1.2, 12.0)
        beliefs = _beliefs(tree, settings, theta, batch, noise_key)
        log_prob = jax.nn.log_softmax(_logits(params, beliefs))
        choice = jax.random.categorical(choice_key, jax.lax.stop_gradient(log_prob))
        reward = -jnp.take_along_axis(batch["cost"], choice[:, None], 1)[:, 0]
        advantage = reward - reward.mean()
        actor = -jnp.mean(jnp.take_along_axis(log_prob, choice[:, None], 1)[:, 0] * advantage)
        # The critic: what a transfer costs later tells the load of its memory, so theta must explain it.
        gap = beliefs[:, jnp.asarray(tree.occupancy)] - batch["felt"]
        return actor + jnp.mean(gap**2)

    gradient = jax.grad(loss)(params)
    change, state = optimiser.update(gradient, state)
    return optax.apply_updates(params, change), state

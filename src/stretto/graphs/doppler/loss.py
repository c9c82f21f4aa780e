"""Log-probabilities of recorded episodes under given parameters, and the losses made of them."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from stretto.graphs.doppler.features import GraphTensors
from stretto.graphs.doppler.kernels.state import EpisodeRecord, Heads
from stretto.graphs.doppler.network import heads, leaky
from stretto.graphs.doppler.parameters import Params
from stretto.graphs.doppler.settings import DopplerSettings

_OUT = -1e9


class Selections(NamedTuple):
    """All candidates of all recorded steps with a choice, one row each, sorted by step; padded behind.

    Ready sets differ much in size: rows cost a quarter of what a padded table does.
    """

    step: Array  # [R] i32 episode * S + slot; padding belongs to the step behind the last
    candidate: Array  # [R] i32
    x: Array  # [R, Fs] f32
    target: Array  # [R] f32 share of the step's target


class UpdateBatch(NamedTuple):
    """Recorded episodes with their advantages; B episodes, S recorded steps."""

    selections: Selections
    task: Array  # [B, S] i32
    y: Array  # [B, S, m, Fp] f32
    allowed: Array  # [B, S, m] u8
    plc_target: Array  # [B, S, m] u8
    log_prob: Array  # [B, S] f32
    order: Array  # [B, n] i32
    device: Array  # [B, n] i32 of the tasks in that order
    slot_of_step: Array  # [n] i32 the first recorded step after each step
    step: Array  # [S] i32
    step_weight: Array  # [S] f32 discount
    advantage: Array  # [B] f32
    imitate: Array  # [B] f32 weight of the plain log-likelihood; 0 for episodes that are judged


def flatten(record: EpisodeRecord, num_rows: int) -> Selections | int:
    """Return the rows of a record's selections, or how many are needed when there is no room."""
    num, steps, width = record.candidate.shape
    count = np.where(record.num_candidates > 1, record.num_candidates, 0)
    inside = np.arange(width) < count[..., None]
    total = int(count.sum())
    if total > num_rows:
        return total
    rows = Selections(
        np.full(num_rows, num * steps, dtype=np.int32),
        np.zeros(num_rows, dtype=np.int32),
        np.zeros((num_rows, record.x.shape[3]), dtype=np.float32),
        np.zeros(num_rows, dtype=np.float32),
    )
    chosen = record.sel_target[inside].astype(np.float32)
    step = np.repeat(np.arange(num * steps, dtype=np.int32), count.ravel())
    size = np.bincount(step, weights=chosen, minlength=num * steps)
    rows.step[:total] = step
    rows.candidate[:total] = record.candidate[inside]
    rows.x[:total] = record.x[inside]
    rows.target[:total] = chosen / np.maximum(size, 1.0)[step]
    return rows


class LossWeights(NamedTuple):
    """Numbers of the loss that may change from update to update."""

    inverse_temperature: float
    entropy: float
    clip: float


def log_softmax(score: Array, allowed: Array) -> Array:
    """Return log-probabilities over the last axis; what is not allowed gets a very negative one."""
    score = jnp.where(allowed, score, _OUT)
    return score - jax.scipy.special.logsumexp(score, axis=-1, keepdims=True)


def selection_log_probs(net: Heads, rows: Selections, num_steps: int, inverse_temperature: float) -> Array:
    """Return SEL's log-probability of each row's candidate, [R]; ``num_steps`` counts those of all episodes."""
    hidden = leaky(net.sel_node[rows.candidate] + rows.x @ net.sel_in)
    score = (hidden @ net.sel_out + rows.x @ net.sel_skip + net.sel_bias[rows.candidate]) * inverse_temperature
    top = jax.ops.segment_max(jax.lax.stop_gradient(score), rows.step, num_steps + 1, indices_are_sorted=True)
    shifted = score - top[rows.step]
    total = jax.ops.segment_sum(jnp.exp(shifted), rows.step, num_steps + 1, indices_are_sorted=True)
    return shifted - jnp.log(total)[rows.step]


def of_selections(log_probs: Array, rows: Selections, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Return each step's log-probability of its target and its entropy, both [B, S]."""
    num_steps = shape[0] * shape[1]

    def by_step(values: Array) -> Array:
        sums = jax.ops.segment_sum(values, rows.step, num_steps + 1, indices_are_sorted=True)
        return sums[:num_steps].reshape(shape)

    decided = by_step(rows.target) > 0
    return by_step(rows.target * log_probs), jnp.where(decided, by_step(-jnp.exp(log_probs) * log_probs), 0.0)


def device_memory(net: Heads, batch: UpdateBatch, num_devices: int) -> Array:
    """Return what each device remembers of its tasks before each recorded step, [B, S, m, K]."""
    num_steps = batch.step.shape[0]

    def one(order: Array, device: Array) -> Array:
        cell = batch.slot_of_step * num_devices + device
        sums = jax.ops.segment_sum(net.plc_sum[order], cell, (num_steps + 1) * num_devices)
        return jnp.cumsum(sums.reshape(num_steps + 1, num_devices, -1)[:-1], axis=0)

    total = jax.vmap(one)(batch.order, batch.device)
    centred = total - total.mean(axis=2, keepdims=True)
    return centred * jax.lax.rsqrt(1.0 + batch.step.astype(jnp.float32))[None, :, None, None]


def placement_log_probs(net: Heads, batch: UpdateBatch, inverse_temperature: float) -> Array:
    """Return PLC's log-probabilities, [B, S, m]."""
    hidden = leaky(
        net.plc_node[batch.task][:, :, None] + batch.y @ net.plc_in + device_memory(net, batch, batch.y.shape[2])
    )
    score = hidden @ net.plc_out + batch.y @ net.plc_skip + net.plc_bias[batch.task]
    return log_softmax(score * inverse_temperature, batch.allowed != 0)


def of_targets(log_probs: Array, target: Array) -> Array:
    """Return the mean log-probability of each step's targets; 0 where there are none."""
    chosen = target.astype(jnp.float32)
    return (jnp.where(target != 0, log_probs, 0.0)).sum(-1) / jnp.maximum(chosen.sum(-1), 1.0)


def entropy_of(log_probs: Array, target: Array) -> Array:
    """Return the entropy of each step at which there was something to decide."""
    inside = log_probs > 0.5 * _OUT
    spread = -jnp.where(inside, jnp.exp(log_probs) * log_probs, 0.0).sum(-1)
    return jnp.where((target != 0).any(-1), spread, 0.0)


def loss(
    params: Params, g: GraphTensors, batch: UpdateBatch, weights: LossWeights, settings: DopplerSettings
) -> tuple[Array, dict[str, Array]]:
    """Return the loss of a batch and figures to watch."""
    num, num_steps, num_devices, _ = batch.y.shape
    net = heads(params, g, settings, num_devices)
    sel = selection_log_probs(net, batch.selections, num * num_steps, weights.inverse_temperature)
    sel_log, sel_spread = of_selections(sel, batch.selections, (num, num_steps))
    plc = placement_log_probs(net, batch, weights.inverse_temperature)
    log_prob = sel_log + of_targets(plc, batch.plc_target)
    return judged(log_prob, sel_spread + entropy_of(plc, batch.plc_target), batch, weights)


def judged(log_prob: Array, spread: Array, batch: UpdateBatch, weights: LossWeights) -> tuple[Array, dict[str, Array]]:
    """Return the loss of steps with these log-probabilities and entropies, [B, S] each.

    Judged episodes enter by the clipped ratio (PPO; with one update per batch this is REINFORCE), imitated
    ones by their log-likelihood.
    """
    ratio = jnp.exp(jnp.clip(log_prob - batch.log_prob, -20.0, 20.0))
    advantage = batch.advantage.reshape(len(batch.advantage), -1)  # of an episode, or of each step
    clipped = jnp.clip(ratio, 1.0 - weights.clip, 1.0 + weights.clip)
    clipped_gain = jnp.minimum(ratio * advantage, clipped * advantage)
    gain = jnp.where(batch.imitate[:, None] > 0, batch.imitate[:, None] * log_prob, clipped_gain)
    share = batch.step_weight[None, :] / (jnp.maximum((batch.step_weight > 0).sum(), 1) * gain.shape[0])
    total = -(gain * share).sum() - weights.entropy * (spread * share).sum()
    return total, {"entropy": (spread * share).sum(), "log_prob": (log_prob * share).sum()}

"""Message passing within the episode: the graph is encoded anew, with the placement so far, at every k-th step.

An ablation of encoding it once. Episodes go through the compiled steps in stretches of k; between them the encoder runs
for all episodes at once. The update repeats all these encodings, so it costs n/k times as much.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from research.doppler.batch import WholeBatch
from research.doppler.settings import AblationSettings

from stretto.core.csr import Ints
from stretto.graphs.doppler.features import GraphTensors
from stretto.graphs.doppler.kernels.rollout import conserving_makespan, play_steps
from stretto.graphs.doppler.kernels.state import EpisodePlans, EpisodeRecord, Heads, new_work
from stretto.graphs.doppler.loss import LossWeights, entropy_of, judged, log_softmax, of_targets
from stretto.graphs.doppler.network import heads, leaky
from stretto.graphs.doppler.parameters import Params
from stretto.graphs.doppler.rollout import PlayedEpisodes, Player, Sampling, as_kernel_net


def placed_heads(
    params: Params, g: GraphTensors, placed: Any, device: Any, settings: AblationSettings, num_devices: int
) -> Heads:
    """Encode the graph with a placement and return the heads.

    Parameters
    ----------
    placed
        1 where a task counts as placed, [N]; 0 elsewhere.
    device
        The devices of the tasks, [N]; of no meaning where a task has none.
    """
    columns = jnp.concatenate([placed[:, None], jax.nn.one_hot(device, num_devices) * (device >= 0)[:, None]], axis=1)
    wide = {**params, "enc_in": jnp.concatenate([params["enc_in"], params["enc_placed"]])}
    seen = g._replace(node=jnp.concatenate([jnp.asarray(g.node), columns], axis=1))
    net: Heads = heads(wide, seen, settings, num_devices)
    return net


@functools.lru_cache(maxsize=32)
def batched_heads(settings: AblationSettings, num_devices: int) -> Any:
    """Return the compiled encoding of one graph under many placements."""

    def every(params: Params, g: GraphTensors, placed: Any, device: Any) -> Any:
        return jax.vmap(lambda p, d: placed_heads(params, g, p, d, settings, num_devices))(placed, device)

    return jax.jit(every)


class StepwisePlayer(Player):
    """Plays episodes with an encoding per stretch of steps; acts with parameters instead of heads."""

    settings: AblationSettings

    def play(
        self,
        net: Any,
        seeds: Sequence[tuple[int, int]],
        sampling: Sampling | None = None,
        steps: Ints | None = None,
        plans: tuple[Ints, Ints] | None = None,
    ) -> PlayedEpisodes:
        """Play one episode per (seed, stream) pair, then retrace plans; as in :class:`Player`."""
        n, m, every = self.problem.num_tasks, self.problem.num_devices, self.settings.encode_every
        asked, found = self.prepare(seeds, steps, plans)
        rules, made = self._rules(sampling or Sampling()), EpisodePlans(found.order, found.assignment, found.makespan_s)
        works = [new_work(n, m, self.window, self.settings.head) for _ in found.makespan_s]
        p = self.problem.arrays
        for begin in range(0, n, every):
            end = min(n, begin + every)
            for b, heads_now in enumerate(self._encoded(net, found.assignment)):
                play_steps(p, self.fixed, heads_now, rules, asked, found.record, made, works[b], b, begin, end)
        if rules.conserving == 1:
            for b, work in enumerate(works):
                found.makespan_s[b] = conserving_makespan(p, work, found.order[b], found.assignment[b])
        return found

    def _encoded(self, params: Params, assignment: Ints) -> list[Heads]:
        """Return the heads of each episode under its present placement."""
        g, n = self.tensors, self.problem.num_tasks
        device = np.full((len(assignment), len(g.mask)), -1, dtype=np.int32)
        device[:, :n] = assignment
        placed = (device >= 0).astype(np.float32)
        nets = batched_heads(self.settings, self.problem.num_devices)(params, g, placed, device)
        parts = [np.asarray(part) for part in nets]
        return [as_kernel_net([part[b] for part in parts]) for b in range(len(assignment))]


class _Stretch(NamedTuple):
    """Some successive steps of an episode, or all of them; padded behind."""

    record: EpisodeRecord
    order: Any  # [k]
    device: Any  # [k]
    exists: Any  # [k] f32
    step: Any  # [k]


def stretch_log_probs(net: Heads, part: _Stretch, total: Any, inverse_temperature: Any) -> tuple[Any, Any, Any]:
    """Return SEL's [k, W] and PLC's [k, m] log-probabilities, and the devices' sums [m, K] behind the stretch."""
    row = part.record
    hidden = leaky(net.sel_node[row.candidate] + row.x @ net.sel_in)
    score = hidden @ net.sel_out + row.x @ net.sel_skip + net.sel_bias[row.candidate]
    inside = jnp.arange(row.candidate.shape[1]) < row.num_candidates[:, None]
    sel = log_softmax(score * inverse_temperature, inside)
    goes = jax.nn.one_hot(part.device, total.shape[0]) * part.exists[:, None]
    gains = goes[:, :, None] * net.plc_sum[part.order][:, None]
    before = total + jnp.cumsum(gains, axis=0) - gains
    centred = before - before.mean(axis=1, keepdims=True)
    memory = centred * jax.lax.rsqrt(1.0 + part.step.astype(jnp.float32))[:, None, None]
    hidden = leaky(net.plc_node[row.task][:, None] + row.y @ net.plc_in + memory)
    score = hidden @ net.plc_out + row.y @ net.plc_skip + net.plc_bias[row.task]
    plc = log_softmax(score * inverse_temperature, row.allowed != 0)
    return sel, plc, total + gains.sum(axis=0)


def stepwise_loss(
    params: Params, g: GraphTensors, batch: WholeBatch, weights: LossWeights, settings: AblationSettings
) -> tuple[Any, dict[str, Any]]:
    """Return the loss of a batch, all of whose steps are recorded, and figures to watch."""
    num_steps, m, k = batch.order.shape[1], batch.record.y.shape[2], settings.encode_every
    num_stretches = -(-num_steps // k)

    def cut(values: Any) -> Any:
        behind = [(0, num_stretches * k - num_steps)] + [(0, 0)] * (values.ndim - 1)
        return jnp.pad(values, behind).reshape(num_stretches, k, *values.shape[1:])

    def episode(row: Any) -> Any:
        record, order, device = row
        ones, count = jnp.ones(num_steps), jnp.arange(num_steps)
        parts = jax.tree.map(cut, _Stretch(record, order, device, ones, count))
        size = g.mask.shape[0]
        position = jnp.full(size, num_steps).at[order].set(count)
        device_of = jnp.full(size, -1).at[order].set(device)

        def advance(total: Any, at: Any) -> Any:
            begin, part = at
            placed = position < begin
            there = jnp.where(placed, device_of, -1)
            net = placed_heads(params, g, placed.astype(jnp.float32), there, settings, m)
            sel, plc, total = stretch_log_probs(net, part, total, weights.inverse_temperature)
            sel_target, plc_target = part.record.sel_target, part.record.plc_target
            spread = entropy_of(sel, sel_target) + entropy_of(plc, plc_target)
            return total, (of_targets(sel, sel_target) + of_targets(plc, plc_target), spread)

        begins = k * jnp.arange(num_stretches)
        _, (log_prob, spread) = jax.lax.scan(jax.checkpoint(advance), jnp.zeros((m, settings.head)), (begins, parts))
        return log_prob.reshape(-1)[:num_steps], spread.reshape(-1)[:num_steps]

    rows = jax.tree.map(jnp.asarray, (batch.record, batch.order, batch.device))
    log_prob, spread = jax.vmap(episode)(rows)
    return judged(log_prob, spread, batch, weights)

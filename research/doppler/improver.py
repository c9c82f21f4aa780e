"""A Placeto-style improver: a placement is there from the start, and tasks are visited in turn to be moved or left.

An ablation of building placements, after Addanki et al. (arXiv 1906.08879): the graph is encoded with the present
placement and with what has been visited, at every k-th step; what counts at a step is the improvement from there on.
It chooses no order: tasks run by falling b-level.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from research.doppler.batch import WholeBatch
from research.doppler.kernels.improve import ImproveRecord, times, visit
from research.doppler.settings import AblationSettings
from research.doppler.stepwise import batched_heads, placed_heads

from stretto.core.csr import Ints
from stretto.core.plan import Discipline
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.graphs.doppler.features import GraphTensors
from stretto.graphs.doppler.inference import heads_without_jax
from stretto.graphs.doppler.kernels.state import NUM_DEVICE_FEATURES, Heads
from stretto.graphs.doppler.loss import LossWeights, entropy_of, judged, log_softmax, of_targets
from stretto.graphs.doppler.network import leaky
from stretto.graphs.doppler.parameters import Params, init_params
from stretto.graphs.doppler.rollout import PlayedEpisodes, Player, Sampling, Teacher
from stretto.graphs.doppler.settings import DopplerSettings
from stretto.graphs.kernels.construct.ranks import ready_order

#: Random numbers of starts and of actions come from streams of their own.
_STREAM = 0x1A


class Visit(NamedTuple):
    """One step: the task, the placement [N] before it (-1 in padding), features and mask of the devices."""

    task: Any
    device: Any
    y: Any
    allowed: Any


def visit_log_probs(net: Heads, at: Visit, inverse_temperature: Any) -> Any:
    """Return the log-probabilities of the devices for the visited task, [m]."""
    num_devices = at.y.shape[0]
    there = jax.nn.one_hot(at.device, num_devices)  # rows of -1 are empty
    total = there.T @ net.plc_sum
    memory = (total - total.mean(axis=0)) * jax.lax.rsqrt(jnp.maximum(there.sum(), 1.0))
    hidden = leaky(net.plc_node[at.task] + at.y @ net.plc_in + memory)
    score = hidden @ net.plc_out + at.y @ net.plc_skip + net.plc_bias[at.task]
    return log_softmax(score * inverse_temperature, at.allowed != 0)


@functools.lru_cache(maxsize=1)
def _compiled_visit() -> Any:
    return jax.jit(jax.vmap(visit_log_probs, in_axes=(0, Visit(None, 0, 0, 0), None)))


class ImprovePlayer(Player):
    """Plays episodes of improvement; acts with parameters instead of heads."""

    settings: AblationSettings

    def __init__(
        self, problem: Problem, settings: AblationSettings, *, discipline: Discipline = "sequence", num_threads: int = 2
    ) -> None:
        if discipline != "sequence":
            raise InvalidInput(f"an improver learns plans of sequences, not {discipline!r}", field="discipline")
        super().__init__(problem, settings, discipline=discipline, num_threads=num_threads)
        self.order: Ints = ready_order(problem.arrays, self.fixed.at_place)
        self._taught: dict[Teacher, Ints] = {}

    def play(
        self,
        net: Any,
        seeds: Sequence[tuple[int, int]],
        sampling: Sampling | None = None,
        steps: Ints | None = None,
        plans: tuple[Ints, Ints] | None = None,
    ) -> PlayedEpisodes:
        """Improve one random placement per (seed, stream) pair, then turn others into the given plans'.

        All steps are recorded. The orders of plans are ignored: they are judged by our own.
        """
        how = sampling or Sampling()
        if how.mode == "epsilon":
            raise InvalidInput("an improver draws from the softmax or takes the best", field="mode")
        n = self.problem.num_tasks
        wanted = plans[1] if plans is not None else np.empty((0, n), dtype=np.int32)
        pairs = [*seeds, *((0, i) for i in range(len(wanted)))]
        rngs = [np.random.default_rng([_STREAM, seed, stream]) for seed, stream in pairs]
        record = self._new_record(len(pairs), n, self.problem.num_devices)
        record.start[:] = self._starts(rngs)
        draws = np.array([rng.random(n) for rng in rngs])
        assign = record.start.copy()
        labels = None if how.teacher is None else self._taught_by(how.teacher)
        for step, v in enumerate(self.order):
            times(self.problem.arrays, self.order, assign, record.makespan_s[:, step])
            if step % self.settings.encode_every == 0:
                encoded = self._encoded(net, assign, self.order[:step])
            log_probs = self._looked(encoded, record, assign, step, how)
            device = _choice(log_probs, draws[:, step], how)
            device[len(seeds) :] = wanted[:, v]
            rows = np.arange(len(device))
            record.allowed[rows[len(seeds) :], step, device[len(seeds) :]] = 1
            record.log_prob[:, step] = np.where(rows < len(seeds), log_probs[rows, device], 0.0)
            goal = device if labels is None else np.where(rows < len(seeds), labels[v], device)
            record.target[rows, step, goal] = record.allowed[:, step].sum(axis=1) > 1
            assign[:, v] = device
        times(self.problem.arrays, self.order, assign, record.makespan_s[:, n])
        record.taken[:] = assign
        orders = np.repeat(self.order[None], len(pairs), axis=0)
        return PlayedEpisodes(orders, assign, record.makespan_s[:, n].copy(), record, np.arange(n, dtype=np.int32))

    def _starts(self, rngs: Sequence[np.random.Generator]) -> Ints:
        """Return random placements of tasks on devices that can run them."""
        able = np.isfinite(self.problem.device_duration)
        rows = [np.where(able, rng.random(able.shape), -1.0).argmax(axis=1) for rng in rngs]
        return np.array(rows, dtype=np.int32)

    def _encoded(self, params: Params, assign: Ints, visited: Ints) -> Heads:
        """Return the heads under each episode's placement, stacked."""
        g, n = self.tensors, self.problem.num_tasks
        done = np.zeros((len(assign), len(g.mask)), dtype=np.float32)
        done[:, visited] = 1.0
        device = np.full(done.shape, -1, dtype=np.int32)
        device[:, :n] = assign
        nets: Heads = batched_heads(self.settings, self.problem.num_devices)(params, g, done, device)
        return nets

    def _looked(self, nets: Heads, record: ImproveRecord, assign: Ints, step: int, how: Sampling) -> Any:
        """Record what is seen of the devices, and return their log-probabilities, [B, m]."""
        y, allowed = np.empty_like(record.y[:, 0]), np.empty_like(record.allowed[:, 0])
        visit(self.problem.arrays, self.fixed, assign, self.order[step], y, allowed)
        record.y[:, step], record.allowed[:, step] = y, allowed
        device = np.full((len(assign), len(self.tensors.mask)), -1, dtype=np.int32)
        device[:, : self.problem.num_tasks] = assign
        at = Visit(self.order[step], device, y, allowed)
        return np.asarray(_compiled_visit()(nets, at, 1.0 / how.temperature))

    def _taught_by(self, teacher: Teacher) -> Ints:
        """Return the placement that a rule would make from nothing."""
        if teacher not in self._taught:
            plc = "lookahead" if teacher == "lookahead" else "earliest"
            plain = DopplerSettings(sel="b-level", plc=plc, tables=False, window=self.window)  # type: ignore[arg-type]
            rule = Player(self.problem, plain, num_threads=1)
            blank = heads_without_jax(init_params(plain, 0), rule.tensors, plain, self.problem.num_devices)
            self._taught[teacher] = rule.play(blank, [(0, 0)]).assignment[0]
        return self._taught[teacher]

    def _new_record(self, num: int, num_steps: int, num_devices: int) -> ImproveRecord:
        table = (num, num_steps, num_devices)
        return ImproveRecord(
            start=np.empty(table[:2], dtype=np.int32),
            taken=np.empty(table[:2], dtype=np.int32),
            target=np.zeros(table, dtype=np.uint8),
            y=np.zeros((*table, NUM_DEVICE_FEATURES), dtype=np.float32),
            allowed=np.zeros(table, dtype=np.uint8),
            makespan_s=np.empty((num, num_steps + 1)),
            log_prob=np.zeros(table[:2], dtype=np.float32),
        )


def _choice(log_probs: Any, draws: Any, how: Sampling) -> Ints:
    """Return an action per row: the likeliest, or the one that a number in [0, 1) falls upon."""
    if how.mode == "greedy":
        return np.asarray(log_probs.argmax(axis=1), dtype=np.int32)
    below = np.cumsum(np.exp(log_probs), axis=1)
    # Scaled by the last sum: rounding must not let a draw fall behind it, on a device that is not allowed.
    return np.asarray((draws[:, None] * below[:, -1:] >= below).sum(axis=1), dtype=np.int32)


def improve_loss(
    params: Params, g: GraphTensors, batch: WholeBatch, weights: LossWeights, settings: AblationSettings
) -> tuple[Any, dict[str, Any]]:
    """Return the loss of a batch of visits and figures to watch."""
    num_steps, m, k = batch.order.shape[1], batch.record.y.shape[2], settings.encode_every
    size = g.mask.shape[0]
    behind = (0, -num_steps % k)
    count = jnp.arange(num_steps)

    def episode(row: Any) -> Any:
        record, order = row
        position = jnp.full(size, -1).at[order].set(count)
        start = jnp.full(size, -1).at[:num_steps].set(record.start)
        taken = jnp.full(size, -1).at[:num_steps].set(record.taken)
        steps = jnp.pad(count, behind).reshape(-1, k)

        def before(step: Any) -> Any:
            return jnp.where((position >= 0) & (position < step), taken, start)

        def stretch(stretch_steps: Any) -> Any:
            first = stretch_steps[0]
            done = ((position >= 0) & (position < first)).astype(jnp.float32)
            net = placed_heads(params, g, done, before(first), settings, m)

            def one(step: Any) -> Any:
                at = Visit(order[step], before(step), record.y[step], record.allowed[step])
                return visit_log_probs(net, at, weights.inverse_temperature)

            return jax.vmap(one)(stretch_steps)

        log_probs = jax.lax.map(jax.checkpoint(stretch), steps).reshape(-1, m)[:num_steps]
        return of_targets(log_probs, record.target), entropy_of(log_probs, record.target)

    rows = jax.tree.map(jnp.asarray, (batch.record, batch.order))
    log_prob, spread = jax.vmap(episode)(rows)
    return judged(log_prob, spread, batch, weights)

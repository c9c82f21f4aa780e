"""Whole episodes in pairs: several racks run the same stream, and each decision is judged against its siblings.

Streams differ far more than decisions do: a burst of jobs, or a foreign load on the faster NIC, moves completion times
by more than any choice. Rollouts of one stream share arrivals, sizes and foreign load; what the siblings paid
from the same moment on is a baseline that takes all of that out (an input-dependent baseline), and as it does not
depend on the decision, the gradient stays unbiased. Without it, on two NICs, nine tenths of an advantage are luck.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.racks.simulator import Mask, RackBatch
from stretto.racks.symphony.world import World, observe

#: Episodes are padded to a multiple of this many steps, so that few lengths have to be compiled.
_PAD = 32

Reward = Callable[[RackBatch], Floats]


class Episodes(NamedTuple):
    """B episodes of at most T decisions, padded; what comes after an episode's end has ``is_live`` False."""

    rows: NDArray[np.float32]  # [T, B, D]
    mask: Mask  # [T, B, A]
    action: NDArray[np.int64]  # [T, B]
    cost: Floats  # [T, B] until the next decision
    step_s: Floats  # [T, B] to the next decision
    is_live: Mask  # [T, B]
    value: Floats  # [T, B] what the critic expected
    log_prob: Floats  # [T, B]


def play_episodes(
    world: World,
    batch: RackBatch,
    width: int,
    act: Callable[[Any, Any, int], tuple[Any, Any, Any]],
    reward: Reward,
) -> Episodes:
    """Play a batch that has begun until every episode is over.

    Parameters
    ----------
    width
        Numbers in a row of an observation.
    act
        Actions, their log-probabilities and values for rows and masks of a step.
    """
    lists: list[list[Any]] = [[] for _ in Episodes._fields]
    is_live = np.ones(batch.num_envs, np.bool_)
    for t in range(world.most_decisions):
        rows = np.empty((batch.num_envs, width), np.float32)
        observe(batch, rows)
        mask = batch.mask.copy()
        action, log_prob, value = (np.asarray(one) for one in act(rows, mask, t))
        batch.step(action)
        row = (rows, mask, action, -reward(batch), batch.cost[:, 0].copy(), is_live.copy(), value, log_prob)
        for kept, one in zip(lists, row, strict=True):
            kept.append(one)
        is_live &= ~batch.is_over
        if not is_live.any():
            break
    return Episodes(*(_padded(np.stack(kept)) for kept in lists))


def _padded(array: Any) -> Any:
    missing = -len(array) % _PAD
    return np.concatenate([array, np.zeros((missing, *array.shape[1:]), array.dtype)])


def costs_to_come(episodes: Episodes, horizon_s: float) -> Floats:
    """Return what each decision's episode pays from it on, discounted over time, not over decisions; [T, B]."""
    out = np.zeros_like(episodes.cost)
    later = np.zeros(out.shape[1])
    for t in range(len(out) - 1, -1, -1):
        later = np.exp(-episodes.step_s[t] / horizon_s) * later + episodes.cost[t]
        later = np.where(episodes.is_live[t], later, 0.0)
        out[t] = later
    return out


def against_siblings(values: Floats, episodes: Episodes, num_rollouts: int) -> Floats:
    """Return values less the mean of the siblings' values at the same moment; episodes of one stream lie together."""
    if num_rollouts == 1:
        return values
    at_s = np.cumsum(episodes.step_s, axis=0) - episodes.step_s
    length = episodes.is_live.sum(axis=0)
    out = values.copy()
    for b in range(values.shape[1]):
        first = b - b % num_rollouts
        here = at_s[: length[b], b]
        siblings = [j for j in range(first, first + num_rollouts) if j != b]
        seen = [np.interp(here, at_s[: length[j], j], values[: length[j], j], right=0.0) for j in siblings]
        out[: length[b], b] -= np.mean(seen, axis=0)
    return out

"""An exact filter of the sources below one root complex: the floor of what any belief can know of hidden switches.

The belief gives every source chances of its own. Two switches below one counted root are not independent given its
readings: what one has, the other has not. This filter keeps the joint chance of all levels of the sources below a root
(memory and two switches of ``hgx8``: 11 x 11 x 11), with the same motion, the same evidence of counters and of running
tasks, and everything else at the belief's means. It takes a hundred times as long as messages do.
"""

from __future__ import annotations

import math

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.kernels.compile import njit
from stretto.racks.kernels.belief import fill_means
from stretto.racks.kernels.evidence import NUM_VALUES, PERIOD_S, SHARE, fill_evidence
from stretto.racks.kernels.foreign import NUM_STATES, predict_outcome
from stretto.racks.kernels.progress import fill_progress
from stretto.racks.machine_work import RackModel
from stretto.racks.simulator import RackBatch

#: What is less likely than this does not move any mean.
_RARE = 1e-7
#: When within a window a source changes: points of a Gauss-Legendre rule, and their weights.
_AT = np.array([0.5 - math.sqrt(0.15), 0.5, 0.5 + math.sqrt(0.15)])
_WEIGHT = np.array([5.0, 8.0, 5.0]) / 18.0


class ExactFilter:
    """Follows the first rack of a batch beside its belief; an observer of :class:`stretto.racks.dispatch.RackEpisode`.

    Attributes
    ----------
    groups
        The sources below each root: its memory's, then those of its two switches; [G, 3].
    """

    def __init__(self, model: RackModel) -> None:
        self.groups = groups_below_roots(model)
        self._seen = np.array([_seen(model, group) for group in self.groups])
        self.joint = np.empty((len(self.groups), NUM_STATES, NUM_STATES, NUM_STATES))

    def forget(self, batch: RackBatch) -> None:
        """Go back to the prior."""
        for joint, (x, y, z) in zip(self.joint, batch.belief.prior[self.groups], strict=True):
            joint[:] = x[:, None, None] * y[:, None] * z

    def __call__(self, batch: RackBatch, length_s: float) -> None:
        """Take in the window that ends now."""
        rack = (batch.model.arrays, batch.counters, batch.state, batch.readings, batch.belief, batch.params)
        for group, seen, joint in zip(self.groups, self._seen, self.joint, strict=True):
            _follow(*rack, length_s, group, seen, joint)

    def loads(self, batch: RackBatch) -> tuple[Ints, Floats, Floats]:
        """Return the switches, and mean and median of the load of each for what runs now."""
        part, found = [], []
        for group, joint in zip(self.groups, self.joint, strict=True):
            outcome = _outcomes(batch.model.arrays, batch.state, batch.belief, group)
            for source in group[1:]:
                switch = int(np.flatnonzero(batch.model.arrays.source_demand[source] == 1.0)[0])
                load = np.clip(outcome[..., switch].ravel(), 0.0, 1.0)
                order = np.argsort(load)
                middle = load[order[np.searchsorted(np.cumsum(joint.ravel()[order]), 0.5)]]
                part.append(switch)
                found.append((float(load @ joint.ravel()), float(middle)))
        mean, median = np.array(found).T
        return np.array(part), mean, median


def groups_below_roots(model: RackModel) -> Ints:
    """Return memory and switches of every root complex that carries two switches."""
    demand = model.arrays.source_demand > 0
    groups = []
    for root in (r for r, kind in enumerate(model.resource_kind) if kind == "root-complex"):
        switches = np.flatnonzero(demand[:, root])
        memory = [
            f for f, kind in enumerate(model.source_kind) if kind == "memory" and (demand[f] & demand[switches]).any()
        ]
        if len(switches) == 2 and len(memory) == 1:
            groups.append([*memory, *switches])
    return np.array(groups, np.int64).reshape(-1, 3)


def _seen(model: RackModel, group: Ints) -> np.ndarray:
    """Return which loads and speeds the levels of these sources can change; [R + P]."""
    parts = (model.arrays.source_demand[group] > 0).any(axis=0)
    return np.concatenate([parts, (model.arrays.demand[..., parts] > 0).any(axis=(0, 2))])


@njit(cache=True, nogil=True)
def _outcomes(a, s, belief, group):
    """Return what every combination of levels leads to beside what runs now; [S, S, S, R + P]."""
    num_sources, num_res = a.source_demand.shape
    level = np.empty(num_sources)
    fill_means(belief, 0, level)
    out = np.empty((NUM_STATES, NUM_STATES, NUM_STATES, num_res + s.task.shape[1]))
    for i in range(NUM_STATES):
        level[group[0]] = belief.level[group[0], i]
        for j in range(NUM_STATES):
            level[group[1]] = belief.level[group[1], j]
            for k in range(NUM_STATES):
                level[group[2]] = belief.level[group[2], k]
                predict_outcome(a, s, 0, 0, level, out[i, j, k])
    return out


@njit(cache=True, nogil=True)
def _log_evidence(table, read, from_, to, part):
    """Return how likely all readings are when the window was a mix of two outcomes."""
    total = 0.0
    for x in range(read.shape[0]):
        load = (1.0 - part) * from_[read[x]] + part * to[read[x]]
        place = math.sqrt(min(max(load, 0.0), 1.0)) * (NUM_VALUES - 1)
        low = min(int(place), NUM_VALUES - 2)
        total += (low + 1 - place) * table[read[x], low] + (place - low) * table[read[x], low + 1]
    return total


@njit(cache=True, nogil=True)
def _motion(params, dt_s):
    """Return the chance of every change of a level within a window, [S, S], and that of none, [S]."""
    share = params[SHARE]
    leave = 1.0 / (params[PERIOD_S] * share)
    mixed = 1.0 - math.exp(-dt_s * (leave + 1.0 / (params[PERIOD_S] * (1.0 - share))))
    stays_on, comes, goes = math.exp(-dt_s * leave), share * mixed, (1.0 - share) * mixed
    change, stay = np.zeros((NUM_STATES, NUM_STATES)), np.full(NUM_STATES, stays_on)
    stay[0] = 1.0 - comes
    change[0, 1:] = comes / (NUM_STATES - 1)
    change[1:, 0] = goes
    change[1:, 1:] = max(0.0, 1.0 - stays_on - goes) / (NUM_STATES - 1)
    return change, stay


@njit(cache=True, nogil=True)
def _follow(a, c, s, readings, belief, params, dt_s, group, seen, joint):
    """Take in the readings of a window; at most one of the sources changes within it."""
    num_seen = seen.shape[0]
    table, is_read = np.empty((num_seen, NUM_VALUES)), np.zeros(num_seen, np.bool_)
    fill_evidence(a, c, 0, 0, readings, params, table, is_read)
    fill_progress(a, s, 0, 0, readings, belief, params, table, is_read)
    read = np.flatnonzero(is_read & seen)
    out = _outcomes(a, s, belief, group)
    change, stay = _motion(params, dt_s)
    place, new = np.zeros(3, np.int64), np.zeros(joint.shape)
    for i in range(NUM_STATES):
        for j in range(NUM_STATES):
            for k in range(NUM_STATES):
                weight, here = joint[i, j, k], out[i, j, k]
                if weight < _RARE:
                    continue
                calm = stay[i] * stay[j] * stay[k]
                new[i, j, k] += weight * calm * math.exp(_log_evidence(table, read, here, here, 0.0))
                for which in range(3):
                    place[0], place[1], place[2] = i, j, k
                    old = place[which]
                    for state in range(NUM_STATES):
                        chance = weight * calm / max(stay[old], 1e-12) * change[old, state]
                        if chance > _RARE * 1e-2:
                            place[which] = state
                            there, total = out[place[0], place[1], place[2]], 0.0
                            for t in range(3):
                                total += _WEIGHT[t] * math.exp(_log_evidence(table, read, here, there, _AT[t]))
                            new[place[0], place[1], place[2]] += chance * total
    total = new.sum()
    if total > 0.0:
        joint[:] = new / total

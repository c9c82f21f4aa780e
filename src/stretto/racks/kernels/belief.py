"""Belief about foreign load and utilization: messages between sources of load and the resources that counters watch.

A source is off or on at one of a few levels, and changes at random moments: that is its motion. What runs is known, so
the load of every resource follows from the levels by filling up (``rates.py``); to each other, sources are
changes of that load about its mean. A window's readings say how likely each load of a counted resource is
(``evidence.py``), the progress of running tasks how likely each of their speeds is (``progress.py``). Messages between
them (loopy belief propagation; the least known of the others by its chances, the rest of them as a Gaussian) give each
source's chances anew. A source may change within a window, which then shows the mean of both levels.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.racks.kernels.evidence import NUM_VALUES, PERIOD_S, SHARE, SPREAD, fill_evidence, likelihood
from stretto.racks.kernels.foreign import NUM_STATES, fill_changes, fill_pressure
from stretto.racks.kernels.progress import fill_progress, update_pace

_NUM_ON = NUM_STATES - 1
# What may have happened to a source within a window: it stayed, went off, came on, or came on anew.
_WENT_OFF, _CAME_ON, _ANEW = NUM_STATES, NUM_STATES + _NUM_ON, NUM_STATES + 2 * _NUM_ON
NUM_STORIES = NUM_STATES + 3 * _NUM_ON
#: What these may add to the load of a window: a level, or half of one.
NUM_PARTS = NUM_STATES + _NUM_ON
_SWEEPS = 2
#: No message says that something is impossible.
_LEAST = 1e-9
#: What is less likely than this is left out of the others' part, and a part with less variance is a Gaussian.
_RARE, _SHARP = 3e-4, 2e-5
_SQRT3 = math.sqrt(3.0)


class Belief(NamedTuple):
    """What is believed in B racks."""

    chance: np.ndarray  # [B, F, NUM_STATES] of each level of each source
    load: np.ndarray  # [B, R] utilization
    load_sd: np.ndarray  # [B, R]
    pressure: np.ndarray  # [B, R] demand over capacity, above one where it is more than there is
    level: np.ndarray  # [F, NUM_STATES] first 0
    prior: np.ndarray  # [F, NUM_STATES]
    pace: np.ndarray  # [B, P, 2] mean and variance of the log scale of the task there
    pace_task: np.ndarray  # [B, P] which task that is


@njit(cache=True, nogil=True)
def forget_all(belief, b):
    """Go back to the prior."""
    belief.chance[b] = belief.prior
    belief.load[b, :] = 0.0
    belief.load_sd[b, :] = 0.0
    belief.pressure[b, :] = 0.0
    belief.pace_task[b, :] = -1


@njit(cache=True, nogil=True)
def fill_means(belief, b, level):
    """Fill the mean level of every source."""
    for f in range(level.shape[0]):
        level[f] = 0.0
        for j in range(1, NUM_STATES):
            level[f] += belief.chance[b, f, j] * belief.level[f, j]


@njit(cache=True, nogil=True)
def fill_stories(chance, params, dt_s, story):
    """Fill the chance of everything that may have happened to a source in a window; [NUM_STORIES]."""
    share = params[SHARE]
    leave = 1.0 / (params[PERIOD_S] * share)
    mixed = 1.0 - math.exp(-dt_s * (leave + 1.0 / (params[PERIOD_S] * (1.0 - share))))
    stays_on = math.exp(-dt_s * leave)
    comes, goes = share * mixed, (1.0 - share) * mixed
    anew = max(0.0, 1.0 - stays_on - goes)
    on = 0.0
    story[0] = chance[0] * (1.0 - comes)
    for j in range(1, NUM_STATES):
        on += chance[j]
        story[j] = chance[j] * stays_on
        story[_WENT_OFF + j - 1] = chance[j] * goes
        story[_CAME_ON + j - 1] = chance[0] * comes / _NUM_ON
    for j in range(1, NUM_STATES):
        story[_ANEW + j - 1] = on * anew / _NUM_ON


@njit(cache=True, nogil=True)
def _told(change, f, r, z):
    """Return how a story changes the mean load of a window, and the variance of that."""
    if z < NUM_STATES:
        return change[f, z, r], 0.0
    if z >= _ANEW:
        return change[f, z - _ANEW + 1, r], 0.0
    j = z - _WENT_OFF + 1 if z < _CAME_ON else z - _CAME_ON + 1
    off, on = change[f, 0, r], change[f, j, r]
    return 0.5 * (off + on), (on - off) ** 2 / 12.0


@njit(cache=True, nogil=True)
def update_belief(a, c, s, b, readings, belief, params, dt_s):
    """Take in the readings of a window of ``dt_s`` in which what runs did not change."""
    num_sources, num_res = a.source_demand.shape
    num_seen = num_res + s.task.shape[1]  # loads of resources, then speeds of tasks
    level, base = np.empty(num_sources), np.empty(num_seen)
    change = np.empty((num_sources, NUM_STATES, num_seen))
    table, is_read = np.empty((num_seen, NUM_VALUES)), np.zeros(num_seen, np.bool_)
    cavity = np.zeros((num_seen, 2))
    story = np.empty((num_sources, NUM_STORIES))
    fill_means(belief, b, level)
    for f in range(num_sources):
        fill_stories(belief.chance[b, f], params, dt_s, story[f])
    for m in range(a.proc_ptr.shape[0] - 1):
        fill_evidence(a, c, b, m, readings, params, table, is_read)
        fill_changes(a, s, b, m, belief.level, level, base, change)
        fill_progress(a, s, b, m, readings, belief, params, table, is_read)
        _propagate(a, m, table, is_read, base, change, story, cavity)
        for p in range(a.proc_ptr[m], a.proc_ptr[m + 1]):
            if is_read[num_res + p]:
                update_pace(readings, belief, params, b, p, cavity[num_res + p, 0], cavity[num_res + p, 1])
    for f in range(num_sources):
        _settle(story[f], belief.chance[b, f])


@njit(cache=True, nogil=True)
def _settle(story, chance):
    """Add the chances of the stories up to those of the states in which they end."""
    total = max(story.sum(), 1e-300)
    chance[:] = story[:NUM_STATES] / total
    for j in range(1, NUM_STATES):
        chance[0] += story[_WENT_OFF + j - 1] / total
        chance[j] += (story[_CAME_ON + j - 1] + story[_ANEW + j - 1]) / total


@njit(cache=True, nogil=True)
def _places(a, m, is_read):
    """Return the resources of a machine that were read, then the processors whose tasks' progress was measured."""
    num_res, num = a.demand.shape[2], 0
    places = np.empty(is_read.shape[0], np.int64)
    for r in range(is_read.shape[0]):
        is_here = a.res_ptr[m] <= r < a.res_ptr[m + 1] or a.proc_ptr[m] <= r - num_res < a.proc_ptr[m + 1]
        if is_here and is_read[r]:
            places[num] = r
            num += 1
    return places[:num]


@njit(cache=True, nogil=True)
def _propagate(a, m, table, is_read, base, change, story, cavity):
    """Multiply the stories of a machine's sources by the messages of all that was read there.

    ``cavity`` is filled with mean and variance of each of these by all messages but its own; [R + P, 2].
    """
    first, num = a.source_ptr[m], a.source_ptr[m + 1] - a.source_ptr[m]
    places = _places(a, m, is_read)
    message = np.ones((num, len(places), NUM_STORIES))
    mean, variance = np.empty(num + 1), np.empty(num + 1)
    mean[num], variance[num] = 0.0, _SHARP  # stands for nobody
    part = np.empty((2, NUM_PARTS, 3))
    for _ in range(_SWEEPS):
        for x in range(len(places)):
            r = places[x]
            total, spread = base[r], 0.0
            top = second = num
            for f in range(num):
                mean[f], variance[f] = _without(story[first + f], message[f, x], change, first + f, r)
                total += mean[f]
                spread += variance[f]
                if variance[f] > variance[top]:
                    top, second = f, top
                elif variance[f] > variance[second]:
                    second = f
            cavity[r, 0], cavity[r, 1] = total, spread
            _fill_part(story, message, change, first, top, x, r, part[0])
            _fill_part(story, message, change, first, second, x, r, part[1])
            for f in range(num):
                if abs(change[first + f, 0, r] - change[first + f, NUM_STATES - 1, r]) > 1e-6:
                    other = second if f == top else top
                    taken = variance[f] + (variance[other] if other < num else 0.0)
                    _send(
                        table[r],
                        total - mean[f] - mean[other],
                        max(spread - taken, 0.0),
                        part[1 if f == top else 0],
                        change,
                        first + f,
                        r,
                        message[f, x],
                        story[first + f],
                    )


@njit(cache=True, nogil=True)
def _fill_part(story, message, change, first, f, x, r, part):
    """Fill what a source adds to a load by all messages but one: weight, value and variance of each possibility.

    The others' sum counts as a Gaussian, but not the one that is least known of them: it is off or on, not between.
    """
    part[:, :] = 0.0
    if f == message.shape[0]:
        part[0, 0] = 1.0
        return
    total = 0.0
    for z in range(NUM_STORIES):
        weight = story[first + f, z] / message[f, x, z]
        place = z if z < NUM_STATES else z - _ANEW + 1
        if NUM_STATES <= z < _ANEW:
            place = NUM_STATES + (z - _WENT_OFF if z < _CAME_ON else z - _CAME_ON)
        part[place, 0] += weight
        part[place, 1], part[place, 2] = _told(change, first + f, r, z)
        total += weight
    for place in range(NUM_PARTS):
        part[place, 0] /= total
        if part[place, 0] < _RARE:
            part[place, 0] = 0.0


@njit(cache=True, nogil=True)
def _without(story, message, change, f, r):
    """Return mean and variance of a source's part of a load, by all messages but that of the resource itself."""
    total = mean = square = 0.0
    for z in range(NUM_STORIES):
        weight = story[z] / message[z]
        gap, own = _told(change, f, r, z)
        total += weight
        mean += weight * gap
        square += weight * (gap * gap + own)
    mean /= total
    return mean, max(square / total - mean * mean, 0.0)


@njit(cache=True, nogil=True)
def _send(row, others, variance, part, change, f, r, message, story):
    """Replace a resource's message to a source: the likelihood of its readings, the others' part taken out."""
    new = np.empty(NUM_STORIES)
    greatest = 0.0
    for z in range(NUM_STORIES):
        gap, own = _told(change, f, r, z)
        new[z] = 0.0
        for place in range(NUM_PARTS):
            if part[place, 0] > 0.0:
                at, sd = others + gap + part[place, 1], math.sqrt(variance + own + part[place, 2])
                new[z] += part[place, 0] * _mean_likelihood(row, at, sd)
        greatest = max(greatest, new[z])
    total = 0.0
    for z in range(NUM_STORIES):
        fresh = max(new[z] / max(greatest, 1e-300), _LEAST)
        story[z] *= fresh / message[z]
        message[z] = fresh
        total += story[z]
    story /= total


@njit(cache=True, nogil=True)
def _mean_likelihood(row, at, sd):
    """Return the mean likelihood over a Gaussian; three points have its moments."""
    if sd <= 1e-4:
        return likelihood(row, at)
    outer = likelihood(row, at - _SQRT3 * sd) + likelihood(row, at + _SQRT3 * sd)
    return 2.0 / 3.0 * likelihood(row, at) + outer / 6.0


@njit(cache=True, nogil=True)
def fill_belief(a, s, b, belief, params):
    """Fill mean and spread of utilization for what runs now."""
    num_sources, num_res = a.source_demand.shape
    num_seen = num_res + s.task.shape[1]
    level, base = np.empty(num_sources), np.empty(num_seen)
    change = np.empty((num_sources, NUM_STATES, num_seen))
    fill_means(belief, b, level)
    for m in range(a.proc_ptr.shape[0] - 1):
        fill_changes(a, s, b, m, belief.level, level, base, change)
        for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
            load, variance = base[r], 0.0
            for f in range(a.source_ptr[m], a.source_ptr[m + 1]):
                mean = square = 0.0
                for j in range(NUM_STATES):
                    mean += belief.chance[b, f, j] * change[f, j, r]
                    square += belief.chance[b, f, j] * change[f, j, r] ** 2
                load += mean
                variance += max(square - mean * mean, 0.0)
            belief.load[b, r] = min(max(load, 0.0), 1.0)
            belief.load_sd[b, r] = params[SPREAD] * math.sqrt(variance)
        fill_pressure(a, s, b, m, level, belief.pressure[b])

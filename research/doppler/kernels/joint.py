"""Doppler episodes of a joint policy: one choice among all pairs of a ready task and a device.

An ablation: every step looks at all devices for all candidates, which is what two policies save.
"""

# Not cached on disk: the cache of these files would not see changes in the kernels of the package.
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.graphs.doppler.kernels.choice import score_candidates, score_devices, take
from stretto.graphs.doppler.kernels.features import candidate_features, device_features, device_masks
from stretto.graphs.doppler.kernels.rollout import conserving_makespan, renamed_device
from stretto.graphs.doppler.kernels.state import (
    NUM_DEVICE_FEATURES,
    TAKEN,
    TEACH_LOOKAHEAD,
    begin_episode,
    bring_in,
    leave_window,
    new_work,
    place_task,
)


class JointRecord(NamedTuple):
    """What the update needs, per episode and recorded step; W candidates at most."""

    num_candidates: Any  # [B, S] i32
    candidate: Any  # [B, S, W] i32
    x: Any  # [B, S, W, Fs] f32
    y: Any  # [B, S, W, m, Fp] f32
    allowed: Any  # [B, S, W, m] u8; 0 behind the last candidate
    target: Any  # [B, S, W, m] u8
    log_prob: Any  # [B, S] f32


class Pairs(NamedTuple):
    """Scratch space: all pairs of one step."""

    y: Any  # [W, m, Fp] f32
    allowed: Any  # [W * m] u8
    wished: Any  # [W * m] u8 what the teacher would take
    score: Any  # [W * m]


@njit(nogil=True)
def play_joint(p, fixed, net, rules, asked, record, found, first, last):
    """Play or retrace episodes ``first`` to ``last``; arguments as of ``play`` in ``stretto.graphs.doppler``."""
    order, assign = found.order, found.assign
    num_sampled = asked.num_sampled
    n = order.shape[1]
    m = p.device_class.shape[0]
    work = new_work(n, m, rules.window, net.sel_out.shape[0])
    size = rules.window * m
    pairs = Pairs(
        np.zeros((rules.window, m, NUM_DEVICE_FEATURES), dtype=np.float32),
        np.zeros(size, dtype=np.uint8),
        np.zeros(size, dtype=np.uint8),
        np.empty(size),
    )
    for b in range(first, last):
        begin_episode(p, fixed, work, assign[b])
        end = 0.0
        for step in range(n):
            at = -1
            if b >= num_sampled:
                at = bring_in(fixed, work, asked.plan_order[b - num_sampled, step])
            candidate_features(p, fixed, work)
            _look_at_pairs(p, fixed, rules, work, assign[b], pairs)
            if at >= 0:
                v = work.window[at]
                d = renamed_device(fixed, work, asked.plan_assign[b - num_sampled, v], rules.symmetric)
                pairs.allowed[at * m + d] = 1
                log_prob = 0.0
            else:
                _score_pairs(net, work, pairs, step)
                pair, log_prob = take(
                    pairs.score,
                    pairs.allowed,
                    work.counters[0] * m,
                    rules.mode,
                    rules.epsilon,
                    rules.inverse_temperature,
                    asked.states[b : b + 1],
                )
                at = pair // m
                d = pair % m
            v = work.window[at]
            if asked.slot[step] >= 0:
                taken = b >= num_sampled or rules.label == TAKEN
                _record(work, pairs, record, b, asked.slot[step], taken, at * m + d)
                record.log_prob[b, asked.slot[step]] = log_prob
            leave_window(fixed, work, at)
            order[b, step] = v
            end = max(end, place_task(p, fixed, net, work, assign[b], v, d))
        found.makespan[b] = conserving_makespan(p, work, order[b], assign[b]) if rules.conserving == 1 else end


@njit(nogil=True)
def _look_at_pairs(p, fixed, rules, work, assign, pairs):
    """Fill features, masks and the teacher's wishes of all candidates on all devices."""
    m = work.free.shape[0]
    count = work.counters[0]
    highest = -np.inf
    for i in range(count):
        highest = max(highest, fixed.level[work.window[i]])
    for i in range(count):
        v = work.window[i]
        device_masks(p, fixed, work, assign, v, rules.symmetric)
        device_features(p, fixed, work, assign, v)
        best = np.inf
        best_end = np.inf
        for d in range(m):
            pairs.allowed[i * m + d] = work.allowed[d]
            pairs.y[i, d] = work.y[d]
            if work.allowed[d] != 0:
                value, end = _judged(p, rules, work, v, d)
                if value < best or (value == best and end < best_end):
                    best = value
                    best_end = end
        for d in range(m):
            value, end = _judged(p, rules, work, v, d)
            wished = work.allowed[d] != 0 and fixed.level[v] == highest and value == best and end == best_end
            pairs.wished[i * m + d] = 1 if wished else 0


@njit(nogil=True)
def _judged(p, rules, work, v, d):
    """Return what the teacher minimises, and what decides among equals."""
    if rules.label == TEACH_LOOKAHEAD:
        return work.look_on[d], work.start_on[d] + p.duration[v, p.device_class[d]]
    return work.start_on[d], 0.0


@njit(nogil=True)
def _score_pairs(net, work, pairs, step):
    """Fill the scores of all pairs: SEL's of the task plus PLC's of the device."""
    m = work.free.shape[0]
    count = work.counters[0]
    score_candidates(net, work, work.score)
    for i in range(count):
        for d in range(m):
            work.allowed[d] = pairs.allowed[i * m + d]
            work.y[d] = pairs.y[i, d]
        part = pairs.score[i * m : (i + 1) * m]
        score_devices(net, work, work.window[i], step, part)
        for d in range(m):
            part[d] += work.score[i]


@njit(nogil=True)
def _record(work, pairs, record, b, s, taken, chosen):
    m = work.free.shape[0]
    count = work.counters[0]
    num = 0
    for i in range(count * m):
        num += pairs.allowed[i]
    record.num_candidates[b, s] = count
    record.target[b, s] = 0
    record.allowed[b, s] = 0
    record.candidate[b, s] = 0
    record.x[b, s] = 0.0
    record.y[b, s] = 0.0
    for i in range(count):
        record.candidate[b, s, i] = work.window[i]
        record.x[b, s, i] = work.x[i]
        for d in range(m):
            record.y[b, s, i, d] = pairs.y[i, d]
            record.allowed[b, s, i, d] = pairs.allowed[i * m + d]
            hit = i * m + d == chosen if taken else pairs.wished[i * m + d] == 1
            if hit and num > 1:
                record.target[b, s, i, d] = 1

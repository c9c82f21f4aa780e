"""Doppler episodes in one compiled loop: SEL takes a ready task, PLC its device, until all are placed.

Tasks are appended to their devices at their earliest start, so the makespan of the ``sequence``
discipline without contention is known at the end of the episode. Features do not depend on the network, so a
record of an episode can be learned from under any later weights.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.graphs.doppler.kernels.choice import least, score_candidates, score_devices, take
from stretto.graphs.doppler.kernels.features import candidate_features, device_features, device_masks
from stretto.graphs.doppler.kernels.state import (
    BY_LEVEL,
    EARLIEST,
    LEARNED,
    TAKEN,
    TEACH_LOOKAHEAD,
    begin_episode,
    bring_in,
    leave_window,
    new_work,
    place_task,
)
from stretto.graphs.kernels.simulate.run_priority import run_priority


@njit(cache=True, nogil=True)
def play(p, fixed, net, rules, asked, record, found, first, last):
    """Play episodes ``first`` to ``last``; sampled ones follow the policy, the others retrace plans."""
    n = found.order.shape[1]
    work = new_work(n, p.device_class.shape[0], rules.window, net.sel_out.shape[0])
    for b in range(first, last):
        play_steps(p, fixed, net, rules, asked, record, found, work, b, 0, n)
        if rules.conserving == 1:
            found.makespan[b] = conserving_makespan(p, work, found.order[b], found.assign[b])


@njit(cache=True, nogil=True, _nrt=False)
def play_steps(p, fixed, net, rules, asked, record, found, work, b, first_step, last_step):
    """Play some steps of episode b, whose state stays in ``work``; its makespan is that of the steps so far."""
    order, assign = found.order[b], found.assign[b]
    forced = b >= asked.num_sampled
    row = b - asked.num_sampled if forced else b
    if first_step == 0:
        begin_episode(p, fixed, work, assign)
        found.makespan[b] = 0.0
    end = found.makespan[b]
    for step in range(first_step, last_step):
        slot = asked.slot[step]
        if forced:
            at = bring_in(fixed, work, asked.plan_order[row, step])
            sel_log = 0.0
            candidate_features(p, fixed, work)
        else:
            candidate_features(p, fixed, work)
            at, sel_log = _select(fixed, net, work, rules, asked.states[row : row + 1])
        v = work.window[at]
        if slot >= 0:
            _record_selection(fixed, work, rules, forced, record, b, slot, at)
        num_allowed = device_masks(p, fixed, work, assign, v, rules.symmetric)
        device_features(p, fixed, work, assign, v)
        if forced:
            d = renamed_device(fixed, work, asked.plan_assign[row, v], rules.symmetric)
            work.allowed[d] = 1
            plc_log = 0.0
        else:
            d, plc_log = _place(net, work, rules, v, step, num_allowed, asked.states[row : row + 1])
        if slot >= 0:
            _record_placement(p, work, rules, forced, record, b, slot, v, d)
            record.log_prob[b, slot] = sel_log + plc_log
        leave_window(fixed, work, at)
        order[step] = v
        end = max(end, place_task(p, fixed, net, work, assign, v, d))
    found.makespan[b] = end


@njit(cache=True, nogil=True, _nrt=False)
def _select(fixed, net, work, rules, state):
    """Return the place in the window of the next task, and the log of its chance."""
    count = work.counters[0]
    if rules.sel_rule == BY_LEVEL:
        for i in range(count):
            work.score[i] = -fixed.level[work.window[i]]
        return least(work.score, work.everyone, count, state), 0.0
    if count == 1:
        return 0, 0.0
    score_candidates(net, work, work.score)
    return take(work.score, work.everyone, count, rules.mode, rules.epsilon, rules.inverse_temperature, state)


@njit(cache=True, nogil=True, _nrt=False)
def _place(net, work, rules, v, step, num_allowed, state):
    """Return the device of task v, and the log of its chance."""
    m = work.free.shape[0]
    if rules.plc_rule == EARLIEST:
        return least(work.start_on, work.allowed, m, state), 0.0
    if rules.plc_rule != LEARNED:
        return least(work.look_on, work.allowed, m, state), 0.0
    if num_allowed == 1:
        return least(work.start_on, work.allowed, m, state), 0.0
    score_devices(net, work, v, step, work.score)
    return take(work.score, work.allowed, m, rules.mode, rules.epsilon, rules.inverse_temperature, state)


@njit(cache=True, nogil=True, _nrt=False)
def renamed_device(fixed, work, d, symmetric):
    """Return our name for the device of a retraced plan: the first empty twin at first use."""
    if symmetric == 0:
        return d
    if work.relabel[d] < 0:
        for a in range(fixed.twin[d], work.num_on.shape[0]):
            if fixed.twin[a] == fixed.twin[d] and work.num_on[a] == 0:
                work.relabel[d] = a
                break
    return work.relabel[d]


@njit(cache=True, nogil=True, _nrt=False)
def _record_selection(fixed, work, rules, forced, record, b, s, at):
    count = work.counters[0]
    record.num_candidates[b, s] = count
    record.task[b, s] = work.window[at]
    highest = work.window[0]
    for i in range(count):
        if fixed.level[work.window[i]] > fixed.level[highest]:
            highest = work.window[i]
    taken = forced or rules.label == TAKEN
    ignored = taken and rules.sel_rule != LEARNED
    for i in range(record.candidate.shape[2]):
        record.sel_target[b, s, i] = 0
        if i >= count:
            record.candidate[b, s, i] = 0
            for f in range(work.x.shape[1]):
                record.x[b, s, i, f] = 0.0
            continue
        record.candidate[b, s, i] = work.window[i]
        for f in range(work.x.shape[1]):
            record.x[b, s, i, f] = work.x[i, f]
        if ignored or count == 1:
            continue
        hit = i == at if taken else fixed.level[work.window[i]] == fixed.level[highest]
        if hit:
            record.sel_target[b, s, i] = 1


@njit(cache=True, nogil=True, _nrt=False)
def _record_placement(p, work, rules, forced, record, b, s, v, chosen):
    m = work.free.shape[0]
    num = 0
    best_start = np.inf
    best_look = np.inf
    best_end = np.inf
    for d in range(m):
        if work.allowed[d] == 0:
            continue
        num += 1
        best_start = min(best_start, work.start_on[d])
        end = work.start_on[d] + p.duration[v, p.device_class[d]]
        if work.look_on[d] < best_look or (work.look_on[d] == best_look and end < best_end):
            best_look = work.look_on[d]
            best_end = end
    taken = forced or rules.label == TAKEN
    ignored = taken and rules.plc_rule != LEARNED
    for d in range(m):
        record.allowed[b, s, d] = work.allowed[d]
        record.plc_target[b, s, d] = 0
        for f in range(work.y.shape[1]):
            record.y[b, s, d, f] = work.y[d, f]
        if ignored or num < 2 or work.allowed[d] == 0:
            continue
        if taken:
            hit = d == chosen
        elif rules.label == TEACH_LOOKAHEAD:
            end = work.start_on[d] + p.duration[v, p.device_class[d]]
            hit = work.look_on[d] == best_look and end == best_end
        else:
            hit = work.start_on[d] == best_start
        if hit:
            record.plc_target[b, s, d] = 1


@njit(cache=True, nogil=True)
def conserving_makespan(p, work, order, assign):
    """Return the makespan when devices take the ready task that was selected first."""
    n = order.shape[0]
    seconds = np.empty(n)
    for i in range(n):
        v = order[i]
        work.rank[v] = i
        seconds[v] = p.duration[v, p.device_class[assign[v]]]
    run_priority(p, assign, order, work.rank, seconds, work.start, work.finish)
    return work.finish.max()

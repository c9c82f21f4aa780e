"""Episodes under a rule, and a search that knows everything: true levels, true scales, the whole future."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.racks.kernels.belief import fill_belief
from stretto.racks.kernels.counters import since_decision
from stretto.racks.kernels.episode import restart, to_decision
from stretto.racks.kernels.foreign import fill_pressure
from stretto.racks.kernels.moves import act, fill_mask
from stretto.racks.kernels.rules import choose, expected_speed, free_at
from stretto.racks.kernels.state import IDLE, OVER, TICK, begin, copy_row
from stretto.racks.kernels.time import happen, pass_time

# What a rule knows of contention.
BLIND, RAW, BELIEVED, TRUE = range(4)


@njit(cache=True, nogil=True)
def fill_true_pressure(a, w, s, b, pressure):
    """Fill what is asked of each resource at this moment, foreign load included."""
    level = np.empty(a.source_demand.shape[0])
    for f in range(level.shape[0]):
        level[f] = w.flow_level[s.instance[b], f, s.flow_place[b, f]]
    for m in range(a.proc_ptr.shape[0] - 1):
        fill_pressure(a, s, b, m, level, pressure)


@njit(cache=True, nogil=True)
def fill_raw_pressure(c, readings, b, pressure):
    """Fill pressures with the mean of the traffic counters as they were read; what has no counter counts as free."""
    num = np.zeros(pressure.shape[0])
    pressure[:] = 0.0
    for x in range(c.resource.shape[0]):
        value = since_decision(readings, b, x)
        if c.exponent[x] == 1.0 and np.isfinite(value):
            pressure[c.resource[x]] += value
            num[c.resource[x]] += 1.0
    for r in range(pressure.shape[0]):
        pressure[r] = max(0.0, pressure[r] / max(num[r], 1.0))


@njit(cache=True, nogil=True)
def play_rule(a, w, c, s, readings, belief, params, b, instance, rule, knowledge, duration, state):
    """Play one instance by a rule in rack b; return how many decisions it took."""
    num_actions = a.duration_s.shape[0] * (a.duration_s.shape[1] + a.fpgas.shape[0]) + 1
    mask = np.zeros(num_actions, np.bool_)
    pressure = np.zeros(s.load.shape[1])
    restart(a, w, s, readings, belief, b, instance)
    is_believing = knowledge == BELIEVED
    is_over = to_decision(a, w, c, s, readings, belief, params, b, state, mask, False, is_believing)
    num = 0
    while not is_over:
        if knowledge == TRUE:
            fill_true_pressure(a, w, s, b, pressure)
        elif knowledge == RAW:
            fill_raw_pressure(c, readings, b, pressure)
        elif knowledge == BELIEVED:
            fill_belief(a, s, b, belief, params)
            pressure[:] = belief.pressure[b]
        action = choose(a, w, s, b, rule, duration, pressure, mask, state)
        act(a, w, s, b, action)
        num += 1
        is_over = to_decision(
            a, w, c, s, readings, belief, params, b, state, mask, action == num_actions - 1, is_believing
        )
    return num


@njit(cache=True, nogil=True)
def total_flow(w, s, b):
    """Return the sum of job completion times, infinite when a job did not end."""
    total = 0.0
    for job in range(s.job_end_s.shape[1]):
        if w.arrival_s[s.instance[b], job] < np.inf:
            end = s.job_end_s[b, job]
            total += end - w.arrival_s[s.instance[b], job] if end == end else np.inf
    return total


@njit(cache=True, nogil=True)
def _to_true_decision(a, w, s, b, mask, must_pass):
    """Go on to the next decision without counters or beliefs."""
    while True:
        if not must_pass and fill_mask(a, s, b, mask):
            return False
        must_pass = False
        event = TICK
        while event == TICK:
            event = pass_time(a, w, s, b, np.inf)
        if event == OVER:
            return True
        happen(a, w, s, b)


@njit(cache=True, nogil=True)
def roll_out(a, w, s, b, rule, mask, pressure, must_pass, state):
    """Play on by a rule that knows the true pressures; return the sum of completion times."""
    last = mask.shape[0] - 1
    while not _to_true_decision(a, w, s, b, mask, must_pass):
        fill_true_pressure(a, w, s, b, pressure)
        action = choose(a, w, s, b, rule, a.duration_s, pressure, mask, state)
        act(a, w, s, b, action)
        must_pass = action == last
    return total_flow(w, s, b)


@njit(cache=True, nogil=True)
def play_oracle(a, w, s, instance, rule, width, state):
    """Play an instance in rack 0, each decision by full roll-outs of its best candidates in rack 1.

    ``width`` bounds the candidates; the best way seen in any roll-out is the way that is followed, so the result is
    never worse than the rule's own. Returns the sum of completion times.
    """
    num_actions = a.duration_s.shape[0] * (a.duration_s.shape[1] + a.fpgas.shape[0]) + 1
    mask = np.zeros(num_actions, np.bool_)
    begin(a, w, s, 0, instance)
    must_pass = False
    while not _to_true_decision(a, w, s, 0, mask, must_pass):
        best_action = best_candidate(a, w, s, rule, width, mask, state)
        act(a, w, s, 0, best_action)
        must_pass = best_action == num_actions - 1
    return total_flow(w, s, 0)


@njit(cache=True, nogil=True)
def best_candidate(a, w, s, rule, width, mask, state):
    """Return the candidate of rack 0 whose roll-out in rack 1 is the cheapest; the rule's own comes first."""
    last = mask.shape[0] - 1
    pressure, scratch = np.zeros(s.load.shape[1]), np.zeros(mask.shape[0], np.bool_)
    fill_true_pressure(a, w, s, 0, pressure)
    scores = _candidate_scores(a, w, s, 0, pressure, mask)
    scores[choose(a, w, s, 0, rule, a.duration_s, pressure, mask, state)] = -np.inf
    best_action, best = last, np.inf
    for _ in range(width):
        action = np.argmin(scores)
        if scores[action] == np.inf:
            break
        scores[action] = np.inf
        copy_row(s, 0, 1)
        act(a, w, s, 1, action)
        value = roll_out(a, w, s, 1, rule, scratch, pressure, action == last, state)
        if value < best - 1e-9:
            best_action, best = action, value
    return best_action


@njit(cache=True, nogil=True)
def _candidate_scores(a, w, s, b, pressure, mask):
    """Return by when each valid action would be done with a task, over the best for that task; inf where invalid.

    Of processors of one machine that cannot be told apart, only the first counts.
    """
    num_kernels, num_procs = a.duration_s.shape
    num_fpgas = a.fpgas.shape[0]
    scores = np.full(mask.shape[0], np.inf)
    for k in range(num_kernels):
        if s.head[b, k] < 0:
            continue
        best = np.inf
        for p in range(num_procs):
            if a.duration_s[k, p] < np.inf:
                seconds = a.duration_s[k, p] / expected_speed(a, k, p, a.proc_machine[p], pressure)
                best = min(best, free_at(a, w, s, b, p, a.duration_s, pressure) + seconds)
        for p in range(num_procs):
            if s.task[b, p] == IDLE and a.duration_s[k, p] < np.inf and not has_twin(a, s, b, k, p):
                seconds = a.duration_s[k, p] / expected_speed(a, k, p, a.proc_machine[p], pressure)
                if mask[k * num_procs + p]:
                    scores[k * num_procs + p] = seconds / best
                for q in range(num_fpgas):
                    place = num_kernels * num_procs + k * num_fpgas + q
                    if a.fpgas[q] == p and mask[place]:
                        scores[place] = (seconds + a.reconfigure_s[p]) / best
    if mask[mask.shape[0] - 1]:
        scores[mask.shape[0] - 1] = 1.5
    return scores


@njit(cache=True, nogil=True)
def has_twin(a, s, b, k, p):
    """Say whether an idle processor before p in its machine is just like it for kernel k."""
    if a.reconfigure_s[p] > 0:
        return False
    for other in range(a.proc_ptr[a.proc_machine[p]], p):
        if s.task[b, other] == IDLE and a.proc_kind[other] == a.proc_kind[p]:
            is_same = a.duration_s[k, other] == a.duration_s[k, p]
            for r in range(a.demand.shape[2]):
                is_same = is_same and a.demand[k, other, r] == a.demand[k, p, r]
            if is_same:
                return True
    return False

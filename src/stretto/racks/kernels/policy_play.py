"""Deciding with Symphony's network, and whole episodes by it: with the belief, or with a cheap stand-in for it."""

from __future__ import annotations

import math

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.racks.kernels.counters import normal
from stretto.racks.kernels.episode import restart, to_decision
from stretto.racks.kernels.foreign import fill_pressure
from stretto.racks.kernels.moves import act
from stretto.racks.kernels.oracle import _to_true_decision, total_flow
from stretto.racks.kernels.policy_inputs import NUM_INPUTS, fill_candidates, fill_inputs
from stretto.racks.kernels.policy_score import fill_scores
from stretto.racks.kernels.state import begin


@njit(cache=True, nogil=True)
def network_action(a, w, s, b, weights, pressure, load_sd, mask):
    """Return the candidate with the highest score; ties by lower number."""
    actions = np.empty(mask.shape[0], np.int64)
    num = fill_candidates(a, s, b, mask, actions)
    if num == 1:
        return actions[0]
    x, scores = np.empty((num, NUM_INPUTS)), np.empty(num)
    fill_inputs(a, w, s, b, pressure, load_sd, actions, num, x)
    fill_scores(weights, x, num, scores)
    best = 0
    for c in range(1, num):
        if scores[c] > scores[best]:
            best = c
    return actions[best]


@njit(cache=True, nogil=True)
def fill_noisy(a, w, s, b, error, state, pressure, load_sd):
    """Fill what a belief with errors of this relative size would hold: a stand-in that costs a tenth of one."""
    num_sources = a.source_demand.shape[0]
    level, sd = np.empty(num_sources), np.empty(num_sources)
    for f in range(num_sources):
        true = w.flow_level[s.instance[b], f, s.flow_place[b, f]]
        sd[f] = error * (0.05 + true) * abs(normal(state))
        level[f] = max(true + sd[f] * normal(state), 0.0)
    for m in range(a.proc_ptr.shape[0] - 1):
        fill_pressure(a, s, b, m, level, pressure)
        for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
            total = 0.0
            for f in range(a.source_ptr[m], a.source_ptr[m + 1]):
                total += (a.source_demand[f, r] * sd[f]) ** 2
            load_sd[r] = math.sqrt(total)


@njit(cache=True, nogil=True)
def play_noisy(a, w, s, b, instance, weights, error, state):
    """Play an instance with the stand-in; return the sum of completion times."""
    num_actions = a.duration_s.shape[0] * (a.duration_s.shape[1] + a.fpgas.shape[0]) + 1
    mask = np.zeros(num_actions, np.bool_)
    pressure, load_sd = np.zeros(s.load.shape[1]), np.zeros(s.load.shape[1])
    begin(a, w, s, b, instance)
    must_pass = False
    while not _to_true_decision(a, w, s, b, mask, must_pass):
        fill_noisy(a, w, s, b, error, state, pressure, load_sd)
        action = network_action(a, w, s, b, weights, pressure, load_sd, mask)
        act(a, w, s, b, action)
        must_pass = action == num_actions - 1
    return total_flow(w, s, b)


@njit(cache=True, nogil=True)
def play_network(a, w, c, s, readings, belief, params, b, instance, weights, state):
    """Play an instance with the belief; return the sum of completion times."""
    num_actions = a.duration_s.shape[0] * (a.duration_s.shape[1] + a.fpgas.shape[0]) + 1
    mask = np.zeros(num_actions, np.bool_)
    restart(a, w, s, readings, belief, b, instance)
    is_over = to_decision(a, w, c, s, readings, belief, params, b, state, mask, False, True)
    while not is_over:
        action = network_action(a, w, s, b, weights, belief.pressure[b], belief.load_sd[b], mask)
        act(a, w, s, b, action)
        is_over = to_decision(a, w, c, s, readings, belief, params, b, state, mask, action == num_actions - 1, True)
    return total_flow(w, s, b)

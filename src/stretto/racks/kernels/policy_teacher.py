"""What Symphony's network learns from: every candidate of a decision, priced by playing its stream to the end.

All candidates meet the same future, that of the stream itself. It is one draw from what a scheduler could expect, so
costs are noisy and unbiased, and a network that is fitted to many decisions averages over futures.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import below, uniform
from stretto.racks.kernels.moves import act
from stretto.racks.kernels.oracle import _to_true_decision, fill_true_pressure, total_flow
from stretto.racks.kernels.policy_inputs import fill_candidates, fill_inputs
from stretto.racks.kernels.policy_play import fill_noisy, network_action
from stretto.racks.kernels.policy_score import fill_scores
from stretto.racks.kernels.state import begin, copy_row


@njit(cache=True, nogil=True)
def collect(a, w, s, instance, weights, error, share, explore, state, inputs, costs, nums):
    """Play an instance in rack 0 and price a share of its decisions in rack 1; return how many were priced.

    Parameters
    ----------
    error
        Relative error of what stands in for the belief.
    explore
        How often a random candidate is taken, so that other states are seen.
    inputs, costs, nums
        Filled with the numbers of candidates [n, C, NUM_INPUTS], their sums of completion times [n, C], and how many
        candidates there are [n]. Of more than C candidates, the best by score and a random one are priced.
    """
    num_actions = a.duration_s.shape[0] * (a.duration_s.shape[1] + a.fpgas.shape[0]) + 1
    mask = np.zeros(num_actions, np.bool_)
    actions = np.empty(num_actions, np.int64)
    pressure, load_sd = np.zeros(s.load.shape[1]), np.zeros(s.load.shape[1])
    begin(a, w, s, 0, instance)
    must_pass = False
    priced = 0
    while not _to_true_decision(a, w, s, 0, mask, must_pass):
        fill_noisy(a, w, s, 0, error, state, pressure, load_sd)
        num = fill_candidates(a, s, 0, mask, actions)
        action = actions[0]
        if num > 1:
            x, scores = np.empty((num, inputs.shape[2])), np.empty(num)
            fill_inputs(a, w, s, 0, pressure, load_sd, actions, num, x)
            fill_scores(weights, x, num, scores)
            action = actions[np.argmax(scores)]
            if priced < nums.shape[0] and uniform(state) < share:
                nums[priced] = _price(a, w, s, weights, actions, x, scores, state, inputs[priced], costs[priced])
                priced += 1
            if uniform(state) < explore:
                action = actions[below(state, num)]
        act(a, w, s, 0, action)
        must_pass = action == num_actions - 1
    return priced


@njit(cache=True, nogil=True)
def _price(a, w, s, weights, actions, x, scores, state, inputs, costs):
    """Fill inputs and costs of the best candidates and, where there is no room for all, of a random other one."""
    num, room = scores.shape[0], costs.shape[0]
    order = np.argsort(-scores, kind="mergesort")
    if num > room:
        order[room - 1] = order[room - 1 + below(state, num - room + 1)]
    for c in range(min(num, room)):
        inputs[c] = x[order[c]]
        copy_row(s, 0, 1)
        costs[c] = play_out(a, w, s, 1, weights, actions[order[c]])
    return min(num, room)


@njit(cache=True, nogil=True)
def play_out(a, w, s, b, weights, action):
    """Take an action in rack b and play to the end by the network with true pressures; return the sum of flows."""
    num_actions = a.duration_s.shape[0] * (a.duration_s.shape[1] + a.fpgas.shape[0]) + 1
    mask = np.zeros(num_actions, np.bool_)
    pressure, nothing = np.zeros(s.load.shape[1]), np.zeros(s.load.shape[1])
    act(a, w, s, b, action)
    while not _to_true_decision(a, w, s, b, mask, action == num_actions - 1):
        fill_true_pressure(a, w, s, b, pressure)
        action = network_action(a, w, s, b, weights, pressure, nothing, mask)
        act(a, w, s, b, action)
    return total_flow(w, s, b)

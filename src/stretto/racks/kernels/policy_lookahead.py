"""Look-ahead: candidates of a decision priced by playing drawn futures on with the network, under common randomness."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.racks.kernels.futures import draw_future, rough_rest
from stretto.racks.kernels.moves import act
from stretto.racks.kernels.oracle import _to_true_decision, fill_true_pressure
from stretto.racks.kernels.policy_inputs import NUM_INPUTS, fill_candidates, fill_inputs
from stretto.racks.kernels.policy_play import network_action
from stretto.racks.kernels.policy_score import fill_scores
from stretto.racks.kernels.state import ARRIVED, FINISHED, copy_row


@njit(cache=True, nogil=True)
def rank_candidates(a, w, s, b, weights, pressure, load_sd, mask, actions, scores):
    """Fill all candidates and their scores, the highest first; return how many."""
    found = np.empty(mask.shape[0], np.int64)
    num = fill_candidates(a, s, b, mask, found)
    x, given = np.empty((num, NUM_INPUTS)), np.empty(num)
    fill_inputs(a, w, s, b, pressure, load_sd, found, num, x)
    fill_scores(weights, x, num, given)
    order = np.argsort(-given, kind="mergesort")
    for place in range(num):
        actions[place] = found[order[place]]
        scores[place] = given[order[place]]
    return num


@njit(cache=True, nogil=True)
def play_on(a, w, racks, b, weights, must_pass, most_decisions):
    """Play on by the network that knows the drawn load, until the known jobs are done; return the job-seconds."""
    num_actions = a.duration_s.shape[0] * (a.duration_s.shape[1] + a.fpgas.shape[0]) + 1
    mask = np.zeros(num_actions, np.bool_)
    pressure, nothing = np.zeros(racks.load.shape[1]), np.zeros(racks.load.shape[1])
    known = racks.num[b, ARRIVED]
    num = 0
    while num < most_decisions and not _are_done(racks, b, known):
        if _to_true_decision(a, w, racks, b, mask, must_pass):
            return racks.cost[b, 1]
        fill_true_pressure(a, w, racks, b, pressure)
        action = network_action(a, w, racks, b, weights, pressure, nothing, mask)
        act(a, w, racks, b, action)
        must_pass = action == num_actions - 1
        num += 1
    return racks.cost[b, 1] + rough_rest(w, racks, b)


@njit(cache=True, nogil=True)
def _are_done(racks, b, known):
    """Say whether the jobs that were there at the decision are done."""
    if racks.num[b, FINISHED] < 1:
        return False
    for job in range(known):
        if racks.job_left[b, job] > 0:
            return False
    return True


@njit(cache=True, nogil=True)
def price_candidates(a, w, s, b, belief, params, weights, scale_sd, future, racks, actions, is_in, most, state, costs):
    """Fill the job-seconds that each candidate still in leads to in futures drawn anew; [num, futures]."""
    num_actions = a.duration_s.shape[0] * (a.duration_s.shape[1] + a.fpgas.shape[0]) + 1
    for f in range(costs.shape[1]):
        draw_future(
            a, w, s, b, belief.chance[b], belief.level, params, belief.pressure[b], scale_sd, future, 0, racks, state
        )
        for c in range(actions.shape[0]):
            if is_in[c]:
                copy_row(racks, 0, 1)
                act(a, future, racks, 1, actions[c])
                is_wait = actions[c] == num_actions - 1
                costs[c, f] = play_on(a, future, racks, 1, weights, is_wait, most)

"""Scores of the two heads, and the choice of an action from scores."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import below, uniform
from stretto.graphs.doppler.kernels.state import EPSILON, GREEDY

_SLOPE = np.float32(0.1)


@njit(cache=True, nogil=True, _nrt=False)
def _activate(hidden, out):
    """Return ``out . leaky_relu(hidden)``, summed in four lanes."""
    width = hidden.shape[0]
    a = b = c = d = np.float32(0.0)
    for k in range(0, width - 3, 4):
        a += out[k] * max(hidden[k], _SLOPE * hidden[k])
        b += out[k + 1] * max(hidden[k + 1], _SLOPE * hidden[k + 1])
        c += out[k + 2] * max(hidden[k + 2], _SLOPE * hidden[k + 2])
        d += out[k + 3] * max(hidden[k + 3], _SLOPE * hidden[k + 3])
    for k in range(width - width % 4, width):
        a += out[k] * max(hidden[k], _SLOPE * hidden[k])
    return a + b + (c + d)


@njit(cache=True, nogil=True, _nrt=False)
def score_candidates(net, work, score):
    """Fill the scores of the tasks in the window."""
    hidden = work.hidden
    for i in range(work.counters[0]):
        v = work.window[i]
        for k in range(hidden.shape[0]):
            hidden[k] = net.sel_node[v, k]
        total = net.sel_bias[v]
        for f in range(work.x.shape[1]):
            value = work.x[i, f]
            total += net.sel_skip[f] * value
            for k in range(hidden.shape[0]):
                hidden[k] += value * net.sel_in[f, k]
        score[i] = total + _activate(hidden, net.sel_out)


@njit(cache=True, nogil=True, _nrt=False)
def score_devices(net, work, v, num_placed, score):
    """Fill the scores of the devices for task v; those not allowed are left out."""
    hidden = work.hidden
    m, width = work.total.shape
    shrink = np.float32(1.0 / np.sqrt(1.0 + num_placed))
    share = np.float32(1.0 / m)
    for d in range(m):
        if work.allowed[d] == 0:
            continue
        for k in range(width):
            mean = np.float32(0.0)
            for a in range(m):
                mean += work.total[a, k]
            hidden[k] = net.plc_node[v, k] + (work.total[d, k] - mean * share) * shrink
        total = net.plc_bias[v, d]
        for f in range(work.y.shape[1]):
            value = work.y[d, f]
            total += net.plc_skip[f] * value
            for k in range(width):
                hidden[k] += value * net.plc_in[f, k]
        score[d] = total + _activate(hidden, net.plc_out)


@njit(cache=True, nogil=True, _nrt=False)
def take(score, allowed, count, mode, epsilon, inverse_temperature, state):
    """Choose among the allowed of ``count`` actions; return it and the log of its chance.

    Scores become, in place, log-probabilities under the softmax.
    """
    top = -np.inf
    best = -1
    num = 0
    for i in range(count):
        if allowed[i] == 0:
            continue
        num += 1
        score[i] *= inverse_temperature
        if score[i] > top:
            top = score[i]
            best = i
    total = 0.0
    for i in range(count):
        if allowed[i] != 0:
            total += np.exp(score[i] - top)
    shift = top + np.log(total)
    for i in range(count):
        score[i] = score[i] - shift if allowed[i] != 0 else -np.inf
    if mode == GREEDY:
        return best, score[best]
    if mode == EPSILON:
        action = best
        if uniform(state) < epsilon:
            skip = below(state, num)
            for i in range(count):
                if allowed[i] != 0:
                    if skip == 0:
                        action = i
                        break
                    skip -= 1
        chance = epsilon / num + (1.0 - epsilon if action == best else 0.0)
        return action, np.log(max(chance, 1e-30))
    rest = uniform(state)
    action = best
    for i in range(count):
        if allowed[i] != 0:
            rest -= np.exp(score[i])
            if rest < 0.0:
                action = i
                break
    return action, score[action]


@njit(cache=True, nogil=True, _nrt=False)
def least(value, allowed, count, state):
    """Return an allowed index of least value; equal ones are drawn at random."""
    best = -1
    ties = 0
    for i in range(count):
        if allowed[i] == 0:
            continue
        if best < 0 or value[i] < value[best]:
            best = i
            ties = 1
        elif value[i] == value[best]:
            ties += 1
            # The t-th of equal ones takes over with chance 1/t: all end up equally likely.
            if below(state, ties) == 0:
                best = i
    return best

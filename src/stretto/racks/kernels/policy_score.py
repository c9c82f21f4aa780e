"""The forward pass of Symphony's network: messages over parts and kernels, then a score per candidate.

Twin in numpy: ``racks/symphony/reference_network.py``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.racks.kernels.policy_inputs import NUM_INPUTS, NUM_KERNEL_INPUTS, split_action

#: Kinds of parts, one number each beside pressure, load and standard deviation.
NUM_KINDS = 6
NUM_PART_INPUTS = 3 + NUM_KINDS
#: Units of an embedding, and of the hidden layer of a score.
WIDTH, HIDDEN = 4, 12
NUM_HIDDEN_INPUTS = NUM_INPUTS + 3 * WIDTH


class NetGraph(NamedTuple):
    """The graphs that messages pass over."""

    part_kind: np.ndarray  # [R]
    near_ptr: np.ndarray  # [R+1]
    near: np.ndarray  # parts next to each part
    own_ptr: np.ndarray  # [P+1]
    own: np.ndarray  # parts next to each processor
    follows: np.ndarray  # [K, K] which kernels come right after each, rows sum to at most one


class NetWeights(NamedTuple):
    """Weights, shared over parts, processors, kernels and candidates."""

    part_in: np.ndarray  # [NUM_PART_INPUTS, WIDTH]
    part_own: np.ndarray  # [WIDTH, WIDTH]
    part_near: np.ndarray  # [WIDTH, WIDTH]
    kernel_in: np.ndarray  # [NUM_KERNEL_INPUTS, WIDTH]
    kernel_own: np.ndarray  # [WIDTH, WIDTH]
    kernel_next: np.ndarray  # [WIDTH, WIDTH]
    hidden: np.ndarray  # [NUM_HIDDEN_INPUTS, HIDDEN]
    bias: np.ndarray  # [HIDDEN]
    out: np.ndarray  # [HIDDEN]
    direct: np.ndarray  # [NUM_INPUTS]


@njit(cache=True, nogil=True)
def _fill_parts(graph, weights, pressure, load, load_sd, at_part):
    """Fill the embedding of each part: its estimated load, and one round of messages from its neighbors."""
    num_parts = graph.part_kind.shape[0]
    seen = np.empty((num_parts, WIDTH))
    for r in range(num_parts):
        for u in range(WIDTH):
            total = weights.part_in[3 + graph.part_kind[r], u]
            total += min(pressure[r], 3.0) * weights.part_in[0, u]
            total += load[r] * weights.part_in[1, u]
            total += min(load_sd[r], 1.0) * weights.part_in[2, u]
            seen[r, u] = math.tanh(total)
    for r in range(num_parts):
        first, last = graph.near_ptr[r], graph.near_ptr[r + 1]
        for u in range(WIDTH):
            total = 0.0
            for v in range(WIDTH):
                total += seen[r, v] * weights.part_own[v, u]
                heard = 0.0
                for e in range(first, last):
                    heard += seen[graph.near[e], v]
                total += heard / max(last - first, 1) * weights.part_near[v, u]
            at_part[r, u] = seen[r, u] + math.tanh(total)


@njit(cache=True, nogil=True)
def _fill_kernels(a, s, b, graph, weights, at_kernel):
    """Fill the embedding of each kernel: its features, and one round of messages from the kernels after it."""
    num_kernels = a.duration_s.shape[0]
    seen = np.empty((num_kernels, WIDTH))
    x = np.empty(NUM_KERNEL_INPUTS)
    for k in range(num_kernels):
        fill_kernel_inputs(a, s, b, k, x)
        for u in range(WIDTH):
            total = 0.0
            for v in range(NUM_KERNEL_INPUTS):
                total += x[v] * weights.kernel_in[v, u]
            seen[k, u] = math.tanh(total)
    for k in range(num_kernels):
        for u in range(WIDTH):
            total = 0.0
            for v in range(WIDTH):
                heard = 0.0
                for j in range(num_kernels):
                    heard += graph.follows[k, j] * seen[j, v]
                total += seen[k, v] * weights.kernel_own[v, u] + heard * weights.kernel_next[v, u]
            at_kernel[k, u] = seen[k, u] + math.tanh(total)


@njit(cache=True, nogil=True)
def fill_kernel_inputs(a, s, b, k, x):
    """Fill what is told of a kernel: what waits and runs of it, durations, demands where it is fastest."""
    best, worst, num, place = np.inf, 0.0, 0, 0
    for p in range(a.duration_s.shape[1]):
        seconds = a.duration_s[k, p]
        if seconds < np.inf:
            num += 1
            worst = max(worst, seconds)
            if seconds < best:
                best, place = seconds, p
    m = a.proc_machine[place]
    most = 0.0
    for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
        most = max(most, a.demand[k, place, r])
    x[0] = 1.0
    x[1] = s.head[b, k] >= 0
    x[2] = math.log1p(s.num_ready[b, k])
    x[3] = math.log1p(s.num_left[b, k])
    x[4] = math.log(best)
    x[5] = math.log(worst / best)
    x[6] = most
    x[7] = num / a.duration_s.shape[1]


@njit(cache=True, nogil=True)
def fill_scores(a, s, b, graph, weights, pressure, load, load_sd, actions, num, x, scores):
    """Fill the score of each candidate."""
    num_parts, num_kernels = graph.part_kind.shape[0], a.duration_s.shape[0]
    at_part, at_kernel = np.empty((num_parts, WIDTH)), np.empty((num_kernels, WIDTH))
    _fill_parts(graph, weights, pressure, load, load_sd, at_part)
    _fill_kernels(a, s, b, graph, weights, at_kernel)
    row = np.empty(NUM_HIDDEN_INPUTS)
    for c in range(num):
        k, p = split_action(a, actions[c])
        row[:NUM_INPUTS] = x[c]
        row[NUM_INPUTS:] = 0.0
        if k >= 0:
            _fill_embeddings(a, graph, at_part, at_kernel, k, p, row)
        total = 0.0
        for v in range(NUM_INPUTS):
            total += x[c, v] * weights.direct[v]
        for u in range(HIDDEN):
            inner = weights.bias[u]
            for v in range(NUM_HIDDEN_INPUTS):
                inner += row[v] * weights.hidden[v, u]
            total += math.tanh(inner) * weights.out[u]
        scores[c] = total


@njit(cache=True, nogil=True)
def _fill_embeddings(a, graph, at_part, at_kernel, k, p, row):
    """Fill embeddings of the parts that the pair would use (by its demands), of the processor's, of the kernel."""
    m = a.proc_machine[p]
    for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
        share = a.demand[k, p, r]
        if share > 0:
            for u in range(WIDTH):
                row[NUM_INPUTS + u] += min(share, 1.0) * at_part[r, u]
    first, last = graph.own_ptr[p], graph.own_ptr[p + 1]
    for u in range(WIDTH):
        for e in range(first, last):
            row[NUM_INPUTS + WIDTH + u] += at_part[graph.own[e], u] / (last - first)
        row[NUM_INPUTS + 2 * WIDTH + u] = at_kernel[k, u]

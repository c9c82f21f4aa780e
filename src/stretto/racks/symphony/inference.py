"""The policy's forward pass in plain numpy, for deciding: no jax, a fraction of a millisecond for a rack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.racks.kernels.features import NUM_KERNEL, NUM_PAIR, NUM_PROC
from stretto.racks.symphony.settings import PARAMS, NetSettings, NetShape

Array = NDArray[np.float32]


class NumpyPolicy:
    """Weights and shape, ready to score one rack at a time; the same numbers as ``network.forward``."""

    def __init__(self, params: Mapping[str, Any], shape: NetShape, settings: NetSettings) -> None:
        self.p = {name: np.ascontiguousarray(value, np.float32) for name, value in params.items()}
        self.shape, self.settings = shape, settings
        self._proc_kind = np.asarray(shape.proc_kind, np.float32)
        self._resource_kind = np.asarray(shape.resource_kind, np.float32)
        self._follows = np.asarray(shape.follows, np.float32)
        num_nodes = shape.num_resources + shape.num_procs
        self._hears = np.zeros((num_nodes, len(shape.target)), np.float32)
        self._hears[shape.target, np.arange(len(shape.target))] = 1.0

    def new_core(self) -> Array:
        return np.zeros(self.settings.core, np.float32)

    def logits(self, row: Array, core: Array) -> tuple[Array, Array]:
        """Return the score of each action and the next state of the core."""
        p, shape = self.p, self.shape
        k, m = shape.num_kernels, shape.num_procs
        ends = np.cumsum([k * m * NUM_PAIR, m * NUM_PROC, k * NUM_KERNEL])
        pair = row[: ends[0]].reshape(k, m, NUM_PAIR)
        proc = row[ends[0] : ends[1]].reshape(m, NUM_PROC)
        kernel = row[ends[1] : ends[2]].reshape(k, NUM_KERNEL)
        at_proc = _relu(np.concatenate([proc, self._proc_kind], -1) @ p["proc_in"])
        if self.settings.is_believing:
            seen = np.concatenate([row[ends[2] :].reshape(shape.num_resources, 3), self._resource_kind], -1)
            nodes = self._topology(np.concatenate([_relu(seen @ p["resource_in"]), at_proc]))
            at_proc, whole = nodes[shape.num_resources :], nodes.mean(0)
        else:
            whole = _relu(_relu(_relu(row[ends[2] :] @ p["counter0"]) @ p["counter1"]) @ p["counter2"])
            at_proc = at_proc + p["proc_name"] + whole
        at_kernel = _relu(kernel @ p["kernel_in"]) + p["kernel_name"]
        coming = self._follows @ (at_kernel @ p["kernel_edge"])
        at_kernel = at_kernel + _relu(np.concatenate([at_kernel, coming], -1) @ p["kernel_node"])
        core = self._gru(np.concatenate([whole, at_kernel.mean(0)]), core)
        shared = core @ p["pair_core"] + p["pair_bias"]
        hidden = pair @ p["pair_edge"]
        hidden += (at_proc @ p["pair_proc"] + shared)[None]
        hidden += (at_kernel @ p["pair_kernel"])[:, None]
        out = np.maximum(hidden, 0.0, out=hidden) @ p["pair_out"]
        is_open = (kernel[:, None, 0] > 0) & (proc[None, :, 0] > 0)
        gap = np.where(is_open, pair[..., 3], PARAMS.gap_none).min()
        wait = core @ p["wait"] + p["wait_bias"] + PARAMS.gap_scale * gap * p["wait_gap"]
        if self.settings.guide > 0:
            is_ready = kernel[:, 0] > 0
            order = kernel[:, 4] - np.where(is_ready, kernel[:, 4], np.inf).min()
            rule = np.where(is_ready, PARAMS.guide_order * order, 0.0)[:, None] + pair[..., 3]
            out = out - self.settings.guide * rule[..., None]
            wait = wait - self.settings.guide * PARAMS.guide_patience
        execute = out[..., 0].ravel()
        if not self.settings.is_believing:
            execute = execute + core @ p["actor"]
        return np.concatenate([execute, out[:, shape.fpgas, 1].ravel(), wait]), core

    def _topology(self, nodes: Array) -> Array:
        shape, p, width = self.shape, self.p, self.settings.width
        for turn in range(self.settings.rounds):
            weight = p[f"edge{turn}"]
            ends = (nodes @ weight[:width])[shape.source] + (nodes @ weight[width:])[shape.target]
            heard = self._hears @ (_relu(ends) @ p[f"edge{turn}_out"])
            nodes = nodes + _relu(np.concatenate([nodes, heard], -1) @ p[f"node{turn}"])
        return nodes

    def _gru(self, x: Array, core: Array) -> Array:
        size, weight, bias = len(core), self.p["gate"], self.p["gate_bias"]
        gates = 1.0 / (1.0 + np.exp(-(np.concatenate([x, core]) @ weight[:, : 2 * size] + bias[: 2 * size])))
        keep, reset = gates[:size], gates[size:]
        fresh = np.tanh(np.concatenate([x, reset * core]) @ weight[:, 2 * size :] + bias[2 * size :])
        next_core: Array = (keep * core + (1.0 - keep) * fresh).astype(np.float32)
        return next_core


def _relu(x: Array) -> Array:
    return np.maximum(x, 0.0)

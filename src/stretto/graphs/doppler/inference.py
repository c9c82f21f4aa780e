"""The networks' static halves in plain numpy, for acting without jax: nothing to import, nothing to compile.

The same sums as ``network.heads`` for the light encoder without tables; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stretto.core.csr import Ints
from stretto.errors import InvalidInput
from stretto.graphs.doppler.features import GraphTensors, Singles
from stretto.graphs.doppler.kernels.state import Heads
from stretto.graphs.doppler.parameters import PAPER_FEATURES
from stretto.graphs.doppler.settings import DopplerSettings

Arrays = Mapping[str, Singles]


def heads_without_jax(params: Arrays, g: GraphTensors, settings: DopplerSettings, num_devices: int) -> Heads:
    """Encode the graph and return the heads with everything static in them computed."""
    if settings.encoder != "light" or settings.tables:
        raise InvalidInput("only weights of the light encoder without tables can be used without jax", field="settings")
    h = _encode(params, g, settings.rounds)
    z = _leaky(g.node[:, :PAPER_FEATURES] @ params["static_in"] + params["static_bias"]) * g.mask[:, None]
    on_b = _over_tasks(_along(g.below, h), g.mask)
    on_t = _over_tasks(_along(g.above, h), g.mask)
    parts = (
        np.concatenate([z, h, on_b, on_t], axis=1) @ params["sel_static"] + params["sel_static_bias"],
        np.zeros(len(g.mask)),
        params["sel_in"],
        params["sel_out"][:, 0],
        params["sel_skip"],
        np.concatenate([z, h], axis=1) @ params["plc_static"] + params["plc_static_bias"],
        np.zeros((len(g.mask), num_devices)),
        params["plc_in"],
        params["plc_out"][:, 0],
        params["plc_skip"],
        h @ params["plc_sum"],
    )
    return Heads(*(np.ascontiguousarray(part, dtype=np.float32) for part in parts))


def _encode(params: Arrays, g: GraphTensors, rounds: int) -> Singles:
    size = len(g.mask)
    mask = g.mask[:, None]
    h = _leaky(g.node @ params["enc_in"] + params["enc_in_bias"]) * mask
    by_target, by_source = _Sums(g.target, size), _Sums(g.source, size)
    down_share = 1.0 / np.sqrt(np.maximum(by_target(g.edge_mask[:, None]), 1.0))
    up_share = 1.0 / np.sqrt(np.maximum(by_source(g.edge_mask[:, None]), 1.0))
    gates = []
    for way in ("down", "up"):
        weight, bias = params[f"gate_{way}"]
        gates.append(2.0 / (1.0 + np.exp(-(g.edge[:, None] * weight + bias))) * g.edge_mask[:, None])
    for _ in range(rounds):
        from_above = by_target((h @ params["message_down"])[g.source] * gates[0]) * down_share
        from_below = by_source((h @ params["message_up"])[g.target] * gates[1]) * up_share
        mixed = np.concatenate([h, from_above, from_below], axis=1) @ params["mix"] + params["mix_bias"]
        h = (h + _leaky(mixed)) * mask
        h = h / np.sqrt(np.mean(h * h, axis=1, keepdims=True) + 1e-3)
    return np.asarray(h * mask, dtype=np.float32)


class _Sums:
    """Adds up the rows that belong to one task each."""

    def __init__(self, owner: Ints, size: int) -> None:
        self.by_owner = np.argsort(owner, kind="stable")
        count = np.bincount(owner, minlength=size)
        self.owners = np.flatnonzero(count)
        self.begin = (np.cumsum(count) - count)[self.owners]
        self.size = size

    def __call__(self, rows: Singles) -> Singles:
        sums = np.zeros((self.size, rows.shape[1]), dtype=np.float32)
        sums[self.owners] = np.add.reduceat(rows[self.by_owner], self.begin, axis=0)
        return sums


def _leaky(x: Singles) -> Singles:
    bent: Singles = np.maximum(x, 0.1 * x)
    return bent


def _over_tasks(values: Singles, mask: Singles) -> Singles:
    count = max(float(mask.sum()), 1.0)
    mean = (values * mask[:, None]).sum(axis=0) / count
    centred = (values - mean) * mask[:, None]
    scaled: Singles = centred / np.sqrt((centred * centred).sum(axis=0) / count + 1e-6)
    return scaled


def _along(chain: Ints, values: Singles) -> Singles:
    sums = values
    for jump in chain:
        sums = sums + sums[jump]
    return sums

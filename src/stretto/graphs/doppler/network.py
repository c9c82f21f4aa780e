"""Doppler's networks in jax: an encoder of the graph, and the static halves of the two heads.

Parameters are a flat dictionary of arrays, so that a checkpoint is a dictionary of arrays too.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from stretto.graphs.doppler.features import GraphTensors
from stretto.graphs.doppler.kernels.state import Heads
from stretto.graphs.doppler.parameters import PAPER_FEATURES, Params
from stretto.graphs.doppler.settings import DopplerSettings

#: Tables learn faster than weights, as each of their numbers is seen once per episode.
TABLE_GAIN = 10.0


def leaky(x: Array) -> Array:
    return jnp.maximum(x, 0.1 * x)


def encode(params: Params, g: GraphTensors, settings: DopplerSettings) -> Array:
    """Return an embedding of each task, [N, hidden]; message passing over both directions."""
    if settings.encoder == "paper":
        return _encode_paper(params, g, settings)
    size = g.node.shape[0]
    mask = g.mask[:, None]
    h = leaky(g.node @ params["enc_in"] + params["enc_in_bias"]) * mask
    in_degree = jax.ops.segment_sum(g.edge_mask, g.target, size)
    out_degree = jax.ops.segment_sum(g.edge_mask, g.source, size)
    down_share = jax.lax.rsqrt(jnp.maximum(in_degree, 1.0))[:, None]
    up_share = jax.lax.rsqrt(jnp.maximum(out_degree, 1.0))[:, None]

    def gate(way: str) -> Array:
        weight, bias = params[f"gate_{way}"]
        return 2.0 * jax.nn.sigmoid(g.edge[:, None] * weight + bias) * g.edge_mask[:, None]

    gate_down, gate_up = gate("down"), gate("up")

    def exchange(h: Array, _: None) -> tuple[Array, None]:
        sent = (h @ params["message_down"])[g.source] * gate_down
        from_above = jax.ops.segment_sum(sent, g.target, size) * down_share
        sent = (h @ params["message_up"])[g.target] * gate_up
        from_below = jax.ops.segment_sum(sent, g.source, size) * up_share
        mixed = jnp.concatenate([h, from_above, from_below], axis=1) @ params["mix"] + params["mix_bias"]
        h = (h + leaky(mixed)) * mask
        return h * jax.lax.rsqrt(jnp.mean(h * h, axis=1, keepdims=True) + 1e-3), None

    return jax.lax.scan(exchange, h, length=settings.rounds)[0] * mask


def _encode_paper(params: Params, g: GraphTensors, settings: DopplerSettings) -> Array:
    """NNConv with a GRU on the bidirected graph: one matrix per edge, from its transfer time."""
    size, width = g.node.shape[0], settings.hidden
    mask = g.mask[:, None]
    h = jax.nn.relu(g.node[:, :PAPER_FEATURES] @ params["enc_in"] + params["enc_in_bias"]) * mask
    lifted = jax.nn.relu(g.edge[:, None] @ params["edge_in"] + params["edge_in_bias"])
    matrix = (lifted @ params["edge_out"] + params["edge_out_bias"]).reshape(-1, width, width)
    matrix = matrix * g.edge_mask[:, None, None]
    for _ in range(settings.rounds):
        down = jax.ops.segment_sum(jnp.einsum("eh,ehk->ek", h[g.source], matrix), g.target, size)
        up = jax.ops.segment_sum(jnp.einsum("eh,ehk->ek", h[g.target], matrix), g.source, size)
        message = jax.nn.relu(down + up + params["conv_bias"])
        a = message @ params["gru_message"] + params["gru_bias"][0]
        b = h @ params["gru_state"] + params["gru_bias"][1]
        reset, update = jax.nn.sigmoid((a + b)[:, : 2 * width]).reshape(size, 2, width).transpose(1, 0, 2)
        new = jnp.tanh(a[:, 2 * width :] + reset * b[:, 2 * width :])
        h = ((1.0 - update) * new + update * h) * mask
    return leaky(h)


def _over_tasks(values: Array, mask: Array) -> Array:
    """Standardise columns over the tasks that exist."""
    count = jnp.maximum(mask.sum(), 1.0)
    mean = (values * mask[:, None]).sum(axis=0) / count
    centred = (values - mean) * mask[:, None]
    return centred * jax.lax.rsqrt((centred * centred).sum(axis=0) / count + 1e-6)


def _along(chain: Array, values: Array) -> Array:
    """Return the sum of a value along the chain that begins at each task."""
    # A loop of the compiled program, not of ours: unrolled, it doubles the time to compile.
    return jax.lax.scan(lambda sums, jump: (sums + sums[jump], None), values, chain)[0]


def heads(params: Params, g: GraphTensors, settings: DopplerSettings, num_devices: int) -> Heads:
    """Encode the graph and return the heads with everything static in them computed.

    Rows after the last task are padding and mean nothing.
    """
    h = encode(params, g, settings)
    z = leaky(g.node[:, :PAPER_FEATURES] @ params["static_in"] + params["static_bias"]) * g.mask[:, None]
    on_b = _over_tasks(_along(g.below, h), g.mask)
    on_t = _over_tasks(_along(g.above, h), g.mask)
    sel = jnp.concatenate([z, h, on_b, on_t], axis=1) @ params["sel_static"] + params["sel_static_bias"]
    plc = jnp.concatenate([z, h], axis=1) @ params["plc_static"] + params["plc_static_bias"]
    if settings.tables:
        sel_bias, plc_bias = TABLE_GAIN * params["sel_table"], TABLE_GAIN * params["plc_table"]
    else:
        sel_bias, plc_bias = jnp.zeros(g.mask.shape), jnp.zeros((*g.mask.shape, num_devices))
    net = Heads(
        sel_node=sel,
        sel_bias=sel_bias,
        sel_in=params["sel_in"],
        sel_out=params["sel_out"][:, 0],
        sel_skip=params["sel_skip"],
        plc_node=plc,
        plc_bias=plc_bias,
        plc_in=params["plc_in"],
        plc_out=params["plc_out"][:, 0],
        plc_skip=params["plc_skip"],
        plc_sum=h @ params["plc_sum"],
    )
    return _blind(net, plc_bias + h[: len(plc_bias)] @ params["plc_devices"]) if settings.plc == "one-shot" else net


def _blind(net: Heads, by_device: Array) -> Heads:
    """Return the heads with a PLC that sees only what the graph says about each device."""
    none = jnp.zeros_like
    return net._replace(plc_bias=by_device, plc_out=none(net.plc_out), plc_skip=none(net.plc_skip))

"""Doppler's networks in jax: an encoder of the graph, and the static halves of the two heads.

Parameters are a flat dictionary of arrays, so that a checkpoint is a dictionary of arrays too.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stretto.kernels.doppler_state import NUM_CANDIDATE_FEATURES, NUM_DEVICE_FEATURES, Net
from stretto.learned.doppler.features import NUM_TASK_FEATURES, GraphTensors
from stretto.learned.doppler.settings import NetSettings

Params = dict[str, Any]
#: Tables learn faster than weights, as each of their numbers is seen once per episode.
TABLE_GAIN = 10.0
_PAPER_FEATURES = 5


def init_params(settings: NetSettings, seed: int, num_tasks: int = 0, num_devices: int = 0) -> Params:
    """Return fresh parameters: orthogonal weights and zero biases, as in the released code.

    The sizes of the graph matter only to tables and to the one-shot placement.
    """
    rng = np.random.default_rng([seed, 0xD0])
    h, k = settings.hidden, settings.head
    params: dict[str, Any] = {}

    def linear(name: str, rows: int, columns: int, gain: float = 1.0) -> None:
        params[name] = (gain * orthogonal(rng, rows, columns)).astype(np.float32)

    if settings.encoder == "paper":
        linear("enc_in", _PAPER_FEATURES, h)
        linear("edge_in", 1, h)
        params["edge_in_bias"] = np.zeros(h, np.float32)
        linear("edge_out", h, h * h, 0.1)
        params["edge_out_bias"] = np.zeros(h * h, np.float32)
        params["conv_bias"] = np.zeros(h, np.float32)
        linear("gru_message", h, 3 * h)
        linear("gru_state", h, 3 * h)
        params["gru_bias"] = np.zeros((2, 3 * h), np.float32)
    else:
        linear("enc_in", NUM_TASK_FEATURES, h)
        for way in ("down", "up"):
            linear(f"message_{way}", h, h)
            params[f"gate_{way}"] = np.zeros((2, h), np.float32)
        linear("mix", 3 * h, h)
        params["mix_bias"] = np.zeros(h, np.float32)
    params["enc_in_bias"] = np.zeros(h, np.float32)
    linear("static_in", _PAPER_FEATURES, h)
    params["static_bias"] = np.zeros(h, np.float32)
    linear("sel_static", 4 * h, k)
    params["sel_static_bias"] = np.zeros(k, np.float32)
    linear("sel_in", NUM_CANDIDATE_FEATURES, k)
    linear("sel_out", k, 1, 0.1)
    params["sel_skip"] = np.zeros(NUM_CANDIDATE_FEATURES, np.float32)
    linear("plc_static", 2 * h, k)
    params["plc_static_bias"] = np.zeros(k, np.float32)
    linear("plc_in", NUM_DEVICE_FEATURES, k)
    linear("plc_out", k, 1, 0.1)
    params["plc_skip"] = np.zeros(NUM_DEVICE_FEATURES, np.float32)
    linear("plc_sum", h, k, 0.1)
    if settings.plc == "one-shot":
        linear("plc_devices", h, num_devices, 0.1)
    if settings.tables:
        params["sel_table"] = np.zeros(num_tasks, np.float32)
        params["plc_table"] = np.zeros((num_tasks, num_devices), np.float32)
    return params


def orthogonal(rng: np.random.Generator, rows: int, columns: int) -> Any:
    """Return a matrix with orthonormal rows or columns, whichever are fewer."""
    tall = rng.standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(tall)
    q = q * np.sign(np.diag(r))
    return q if rows >= columns else q.T


def leaky(x: Any) -> Any:
    return jnp.maximum(x, 0.1 * x)


def encode(params: Params, g: GraphTensors, settings: NetSettings) -> Any:
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

    def gate(way: str) -> Any:
        weight, bias = params[f"gate_{way}"]
        return 2.0 * jax.nn.sigmoid(g.edge[:, None] * weight + bias) * g.edge_mask[:, None]

    gate_down, gate_up = gate("down"), gate("up")

    def exchange(h: Any, _: Any) -> Any:
        sent = (h @ params["message_down"])[g.source] * gate_down
        from_above = jax.ops.segment_sum(sent, g.target, size) * down_share
        sent = (h @ params["message_up"])[g.target] * gate_up
        from_below = jax.ops.segment_sum(sent, g.source, size) * up_share
        mixed = jnp.concatenate([h, from_above, from_below], axis=1) @ params["mix"] + params["mix_bias"]
        h = (h + leaky(mixed)) * mask
        return h * jax.lax.rsqrt(jnp.mean(h * h, axis=1, keepdims=True) + 1e-3), None

    return jax.lax.scan(exchange, h, length=settings.rounds)[0] * mask


def _encode_paper(params: Params, g: GraphTensors, settings: NetSettings) -> Any:
    """NNConv with a GRU on the bidirected graph: one matrix per edge, from its transfer time."""
    size, width = g.node.shape[0], settings.hidden
    mask = g.mask[:, None]
    h = jax.nn.relu(g.node[:, :_PAPER_FEATURES] @ params["enc_in"] + params["enc_in_bias"]) * mask
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


def _over_tasks(values: Any, mask: Any) -> Any:
    """Standardise columns over the tasks that exist."""
    count = jnp.maximum(mask.sum(), 1.0)
    mean = (values * mask[:, None]).sum(axis=0) / count
    centred = (values - mean) * mask[:, None]
    return centred * jax.lax.rsqrt((centred * centred).sum(axis=0) / count + 1e-6)


def _along(chain: Any, values: Any) -> Any:
    """Return the sum of a value along the chain that begins at each task."""
    # A loop of the compiled program, not of ours: unrolled, it doubles the time to compile.
    return jax.lax.scan(lambda sums, jump: (sums + sums[jump], None), values, chain)[0]


def heads(params: Params, g: GraphTensors, settings: NetSettings, num_devices: int) -> Net:
    """Encode the graph and return the heads with everything static in them computed.

    Rows behind the last task are padding, of no meaning.
    """
    h = encode(params, g, settings)
    z = leaky(g.node[:, :_PAPER_FEATURES] @ params["static_in"] + params["static_bias"]) * g.mask[:, None]
    on_b = _over_tasks(_along(g.below, h), g.mask)
    on_t = _over_tasks(_along(g.above, h), g.mask)
    sel = jnp.concatenate([z, h, on_b, on_t], axis=1) @ params["sel_static"] + params["sel_static_bias"]
    plc = jnp.concatenate([z, h], axis=1) @ params["plc_static"] + params["plc_static_bias"]
    if settings.tables:
        sel_bias, plc_bias = TABLE_GAIN * params["sel_table"], TABLE_GAIN * params["plc_table"]
    else:
        sel_bias, plc_bias = jnp.zeros(g.mask.shape), jnp.zeros((*g.mask.shape, num_devices))
    net = Net(
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


def _blind(net: Net, by_device: Any) -> Net:
    """Return the heads with a PLC that sees only what the graph says about each device."""
    none = jnp.zeros_like
    return net._replace(plc_bias=by_device, plc_out=none(net.plc_out), plc_skip=none(net.plc_skip))

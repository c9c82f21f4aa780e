"""The policy: graph networks over topology and kernels, a recurrent core, a score for every pair, and a value.

Pure jax. Two variants of one size: *belief* labels the topology with believed utilization and passes messages over it
(as the paper does, with smaller blocks than its Table 2); *rnn* knows no topology: three dense layers over raw
counters, a free vector per processor, and free weights from the core to every pair.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from research.symphony.recurrent_settings import PARAMS, NetSettings, NetShape

from stretto.racks.kernels.features import NUM_KERNEL, NUM_PAIR, NUM_PROC

Params = dict[str, jax.Array]


def init_params(shape: NetShape, settings: NetSettings, seed: int) -> Params:
    """Return fresh weights."""
    rng = np.random.default_rng(seed)
    w, c = settings.width, settings.core

    def dense(num_in: int, num_out: int, gain: float = 1.0) -> jax.Array:
        return jnp.asarray(rng.normal(size=(num_in, num_out)) * gain * (2.0 / num_in) ** 0.5, jnp.float32)

    def zeros(*dims: int) -> jax.Array:
        return jnp.zeros(dims, jnp.float32)

    params: Params = {
        "proc_in": dense(NUM_PROC + 4, w),
        "kernel_in": dense(NUM_KERNEL, w),
        "kernel_name": jnp.asarray(rng.normal(size=(shape.num_kernels, w)) * 0.3, jnp.float32),
        "kernel_edge": dense(w, w),
        "kernel_node": dense(2 * w, w),
        "gate": dense(2 * w + c, 3 * c, 0.7),
        "gate_bias": zeros(3 * c),
        "pair_proc": dense(w, c),
        "pair_kernel": dense(w, c),
        "pair_core": dense(c, c),
        "pair_edge": dense(NUM_PAIR, c),
        "pair_bias": zeros(c),
        "pair_out": dense(c, 2, 0.1),
        "wait": dense(c, 1, 0.1),
        "wait_bias": zeros(1),
        "wait_gap": jnp.ones(1, jnp.float32),
        "value": dense(c, c),
        "value_bias": zeros(c),
        "value_out": dense(c, 1, 0.1),
    }
    if settings.has_topology:
        params["resource_in"] = dense(3 + 6, w)
        for turn in range(settings.rounds):
            params[f"edge{turn}"] = dense(2 * w, 2 * w)
            params[f"edge{turn}_out"] = dense(2 * w, w, 0.5)
            params[f"node{turn}"] = dense(2 * w, w)
    else:
        params["counter0"] = dense(3 * shape.num_resources if settings.has_parts else 2 * shape.num_counters, 4 * w)
        params["counter1"] = dense(4 * w, 2 * w)
        params["counter2"] = dense(2 * w, w)
        params["proc_name"] = jnp.asarray(rng.normal(size=(shape.num_procs, w)) * 0.3, jnp.float32)
        params["actor"] = dense(c, shape.num_kernels * shape.num_procs, 0.1)
    return params


def num_weights(params: Params) -> int:
    return int(sum(np.prod(np.shape(value)) for value in params.values()))


def forward(
    params: Params, shape: NetShape, settings: NetSettings, rows: jax.Array, core: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return logits [B, A] before masking, values [B] and the next state of the core [B, c]."""
    num_kernels, num_procs, num_res = shape.num_kernels, shape.num_procs, shape.num_resources
    batch = rows.shape[0]
    ends = np.cumsum([num_kernels * num_procs * NUM_PAIR, num_procs * NUM_PROC, num_kernels * NUM_KERNEL])
    pair = rows[:, : ends[0]].reshape(batch, num_kernels, num_procs, NUM_PAIR)
    proc = rows[:, ends[0] : ends[1]].reshape(batch, num_procs, NUM_PROC)
    kernel = rows[:, ends[1] : ends[2]].reshape(batch, num_kernels, NUM_KERNEL)
    rest = rows[:, ends[2] :]
    proc_kind = jnp.broadcast_to(jnp.asarray(shape.proc_kind, jnp.float32), (batch, num_procs, 4))
    at_proc = jax.nn.relu(jnp.concatenate([proc, proc_kind], -1) @ params["proc_in"])
    if settings.has_topology:
        seen = rest.reshape(batch, num_res, 3)
        kind = jnp.broadcast_to(jnp.asarray(shape.resource_kind, jnp.float32), (batch, num_res, 6))
        at_res = jax.nn.relu(jnp.concatenate([seen, kind], -1) @ params["resource_in"])
        nodes = _topology(params, shape, settings, jnp.concatenate([at_res, at_proc], 1))
        at_proc, whole = nodes[:, num_res:], nodes.mean(1)
    else:
        seen = jax.nn.relu(rest @ params["counter0"])
        seen = jax.nn.relu(seen @ params["counter1"])
        whole = jax.nn.relu(seen @ params["counter2"])
        at_proc = at_proc + params["proc_name"] + whole[:, None]
    at_kernel = jax.nn.relu(kernel @ params["kernel_in"]) + params["kernel_name"]
    coming = jnp.einsum("kj,bjw->bkw", jnp.asarray(shape.follows, jnp.float32), at_kernel @ params["kernel_edge"])
    at_kernel = at_kernel + jax.nn.relu(jnp.concatenate([at_kernel, coming], -1) @ params["kernel_node"])
    core = _gru(params, jnp.concatenate([whole, at_kernel.mean(1)], -1), core)
    hidden = jax.nn.relu(
        (at_proc @ params["pair_proc"])[:, None]
        + (at_kernel @ params["pair_kernel"])[:, :, None]
        + (core @ params["pair_core"])[:, None, None]
        + pair @ params["pair_edge"]
        + params["pair_bias"]
    )
    out = hidden @ params["pair_out"]  # [B, K, P, 2] execute, configure
    # To wait is worth it when what is idle is slower than what will be free: the core cannot see that of single pairs.
    is_open = (kernel[:, :, None, 0] > 0) & (proc[:, None, :, 0] > 0)
    gap = jnp.where(is_open, pair[..., 3], PARAMS.gap_none).min((1, 2))
    wait = core @ params["wait"] + params["wait_bias"] + PARAMS.gap_scale * gap[:, None] * params["wait_gap"]
    is_ready = kernel[..., 0] > 0
    order = kernel[..., 4] - jnp.where(is_ready, kernel[..., 4], jnp.inf).min(1, keepdims=True)
    rule = jnp.where(is_ready, PARAMS.guide_order * order, 0.0)[:, :, None] + pair[..., 3]  # [B, K, P]
    out = out - settings.guide * rule[..., None]
    wait = wait - settings.guide * PARAMS.guide_patience
    execute = out[..., 0].reshape(batch, -1)
    if not settings.has_topology:  # who knows no topology needs weights of its own for every pair
        execute = execute + core @ params["actor"]
    configure = out[:, :, shape.fpgas, 1].reshape(batch, -1)
    value = jax.nn.relu(core @ params["value"] + params["value_bias"]) @ params["value_out"]
    return jnp.concatenate([execute, configure, wait], -1), value[:, 0], core


def _topology(params: Params, shape: NetShape, settings: NetSettings, nodes: jax.Array) -> jax.Array:
    """Pass messages along the links."""
    # Who sends and who hears as matrices: on a CPU, small products are faster than gathering and scattering.
    num_nodes, width = nodes.shape[1], settings.width
    sends = jnp.asarray(np.eye(num_nodes)[shape.source], jnp.float32)  # [E, N]
    hears = jnp.asarray(np.eye(num_nodes)[shape.target], jnp.float32)
    for turn in range(settings.rounds):
        weight = params[f"edge{turn}"]
        sent = jnp.einsum("en,bnw->bew", sends, nodes @ weight[:width])
        met = jnp.einsum("en,bnw->bew", hears, nodes @ weight[width:])
        message = jax.nn.relu(sent + met) @ params[f"edge{turn}_out"]
        heard = jnp.einsum("en,bew->bnw", hears, message)
        nodes = nodes + jax.nn.relu(jnp.concatenate([nodes, heard], -1) @ params[f"node{turn}"])
    return nodes


def _gru(params: Params, x: jax.Array, core: jax.Array) -> jax.Array:
    """Return the next state of a gated recurrent unit."""
    size = core.shape[-1]
    weight, bias = params["gate"], params["gate_bias"]
    both = jnp.concatenate([x, core], -1)
    keep, reset = jnp.split(jax.nn.sigmoid(both @ weight[:, : 2 * size] + bias[: 2 * size]), 2, -1)
    fresh = jnp.tanh(jnp.concatenate([x, reset * core], -1) @ weight[:, 2 * size :] + bias[2 * size :])
    return keep * core + (1.0 - keep) * fresh

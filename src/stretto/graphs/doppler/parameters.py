"""Fresh parameters of Doppler's networks: a flat dictionary of arrays, made without jax."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.shapes import Floats, Singles
from stretto.graphs.doppler.features import NUM_TASK_FEATURES
from stretto.graphs.doppler.kernels.state import NUM_CANDIDATE_FEATURES, NUM_DEVICE_FEATURES
from stretto.graphs.doppler.settings import DopplerSettings

Params = dict[str, Singles]
PAPER_FEATURES = 5


def init_params(settings: DopplerSettings, seed: int, num_tasks: int = 0, num_devices: int = 0) -> Params:
    """Return fresh parameters: orthogonal weights and zero biases, as in the released code.

    The sizes of the graph matter only to tables and to the one-shot placement.
    """
    rng = np.random.default_rng([seed, 0xD0])
    h, k = settings.hidden, settings.head
    params: Params = {}

    def linear(name: str, rows: int, columns: int, gain: float = 1.0) -> None:
        params[name] = (gain * orthogonal(rng, rows, columns)).astype(np.float32)

    if settings.encoder == "paper":
        linear("enc_in", PAPER_FEATURES, h)
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
    linear("static_in", PAPER_FEATURES, h)
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


def orthogonal(rng: np.random.Generator, rows: int, columns: int) -> Floats:
    """Return a matrix with orthonormal rows or columns, whichever are fewer."""
    tall = rng.standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(tall)
    q = q * np.sign(np.diag(r))
    return q if rows >= columns else q.T

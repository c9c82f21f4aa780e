"""A joint policy over (ready task, device) pairs: the ablation that asks what two policies bring.

The score of a pair is SEL's score of the task plus PLC's of the device, so the networks and their inputs are those
of the two policies; only the choice is one.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from research.doppler.batch import WholeBatch
from research.doppler.kernels.joint import JointRecord, play_joint

from stretto.graphs.doppler.features import GraphTensors
from stretto.graphs.doppler.kernels.state import NUM_CANDIDATE_FEATURES, NUM_DEVICE_FEATURES, Heads
from stretto.graphs.doppler.loss import (
    LossWeights,
    device_memory,
    entropy_of,
    judged,
    log_softmax,
    of_targets,
)
from stretto.graphs.doppler.network import heads, leaky
from stretto.graphs.doppler.parameters import Params
from stretto.graphs.doppler.rollout import Player
from stretto.graphs.doppler.settings import DopplerSettings


class JointPlayer(Player):
    """Plays episodes in which a pair is chosen at each step."""

    kernel = staticmethod(play_joint)

    def _new_record(self, num: int, num_steps: int, num_devices: int) -> JointRecord:
        w, m = self.window, num_devices
        return JointRecord(
            num_candidates=np.empty((num, num_steps), dtype=np.int32),
            candidate=np.empty((num, num_steps, w), dtype=np.int32),
            x=np.empty((num, num_steps, w, NUM_CANDIDATE_FEATURES), dtype=np.float32),
            y=np.empty((num, num_steps, w, m, NUM_DEVICE_FEATURES), dtype=np.float32),
            allowed=np.empty((num, num_steps, w, m), dtype=np.uint8),
            target=np.empty((num, num_steps, w, m), dtype=np.uint8),
            log_prob=np.empty((num, num_steps), dtype=np.float32),
        )


def pair_log_probs(net: Heads, record: JointRecord, memory: Any, inverse_temperature: Any) -> Any:
    """Return the log-probabilities of all pairs of one episode, [S, W * m]; ``memory`` is [S, m, K]."""
    task = record.candidate
    hidden = leaky(net.sel_node[task] + record.x @ net.sel_in)
    sel = hidden @ net.sel_out + record.x @ net.sel_skip + net.sel_bias[task]
    hidden = leaky(net.plc_node[task][:, :, None] + record.y @ net.plc_in + memory[:, None])
    plc = hidden @ net.plc_out + record.y @ net.plc_skip + net.plc_bias[task]
    score = (sel[:, :, None] + plc).reshape(len(task), -1)
    return log_softmax(score * inverse_temperature, record.allowed.reshape(score.shape) != 0)


def joint_loss(
    params: Params, g: GraphTensors, batch: WholeBatch, weights: LossWeights, settings: DopplerSettings
) -> tuple[Any, dict[str, Any]]:
    """Return the loss of a batch and figures to watch."""
    num_devices = batch.record.y.shape[3]
    net = heads(params, g, settings, num_devices)
    memory = device_memory(net, batch, num_devices)

    def one(row: Any) -> Any:
        record, held = row
        log_probs = pair_log_probs(net, record, held, weights.inverse_temperature)
        target = record.target.reshape(log_probs.shape)
        return of_targets(log_probs, target), entropy_of(log_probs, target)

    # Episode by episode, and anew for the gradient: all pairs of a whole batch would fill the memory.
    log_prob, spread = jax.lax.map(jax.checkpoint(one), (jax.tree.map(jnp.asarray, batch.record), memory))
    return judged(log_prob, spread, batch, weights)

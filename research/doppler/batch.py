"""The batch of policies whose record and log-probabilities are not those of the two heads."""

from __future__ import annotations

from typing import Any, NamedTuple


class WholeBatch(NamedTuple):
    """Recorded episodes; apart from the record as :class:`stretto.graphs.doppler.loss.UpdateBatch`."""

    record: Any
    log_prob: Any  # [B, S] f32
    order: Any  # [B, n] i32
    device: Any  # [B, n] i32 of the tasks in that order
    slot_of_step: Any  # [n] i32
    step: Any  # [S] i32
    step_weight: Any  # [S] f32
    advantage: Any  # [B] or [B, S] f32
    imitate: Any  # [B] f32

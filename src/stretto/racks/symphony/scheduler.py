"""Deciding with a trained policy, one rack at a time, and what happens when its counters cannot be trusted.

Readings that are missing, stale or absurd are counted before each decision. With too many of them the policy's eyes are
gone: decisions then come from a contention-blind rule, and ``reason`` says so until enough counters are back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.core.kernels.rng import seeded
from stretto.errors import InvalidInput
from stretto.racks.kernels.features import fill_rows
from stretto.racks.kernels.rules import MCT, choose
from stretto.racks.simulator import RackBatch
from stretto.racks.symphony.inference import NumpyPolicy
from stretto.racks.symphony.settings import NetSettings, NetShape, shape_of
from stretto.racks.symphony.weights import weight_shapes

#: Below this share of counters that can be used, decisions are made blind.
LEAST_SANE = 0.3
#: A reading older than this many seconds says nothing about now.
STALE_S = 60.0
_ABSURD = 20.0


class SymphonyScheduler:
    """Acts in the first environment of a batch.

    Parameters
    ----------
    batch_size
        Decisions taken from one look at the rack; more of them cost less and see less (the paper's task batching).
    """

    def __init__(self, policy: NumpyPolicy, batch: RackBatch, *, batch_size: int = 1) -> None:
        if batch_size < 1:
            raise InvalidInput(f"{batch_size} must be at least 1", field="batch_size")
        if policy.shape.num_actions != batch.model.num_actions:
            raise InvalidInput(
                f"the policy knows {policy.shape.num_actions} actions, the rack has {batch.model.num_actions}; "
                "a changed set of kernels or processors needs training",
                field="policy",
            )
        self.policy, self.batch, self.batch_size = policy, batch, batch_size
        self.reason: str | None = None  # why the rule decides, None while the policy does
        self.num_fallbacks = 0
        self._core = policy.new_core()
        self._row = np.zeros((1, policy.shape.row_length(policy.settings)), np.float32)
        self._scores: NDArray[np.float32] | None = None
        self._num_left = 0
        self._random = seeded(0)

    def restart(self) -> None:
        """Forget the episode before."""
        self._core = self.policy.new_core()
        self._scores, self._num_left = None, 0

    def decide(self) -> int:
        """Return an action that is valid now."""
        mask = self.batch.mask[0]
        self.reason = self.distrust()
        if self.reason is None:
            if self._scores is None or self._num_left == 0:
                self._look()
            assert self._scores is not None
            self._num_left -= 1
            return int(np.argmax(np.where(mask, self._scores, -np.inf)))
        self.num_fallbacks += 1
        batch, arrays = self.batch, self.batch.model.arrays
        nothing = np.zeros(arrays.demand.shape[2])
        return int(choose(arrays, batch.streams, batch.state, 0, MCT, arrays.duration_s, nothing, mask, self._random))

    def _look(self) -> None:
        batch = self.batch
        fill_rows(
            batch.model.arrays, batch.streams, batch.state, batch.belief, batch.readings, batch.is_believing, self._row
        )
        scores, self._core = self.policy.logits(self._row[0], self._core)
        if not np.all(np.isfinite(scores)):
            scores = np.zeros_like(scores)
        self._scores, self._num_left = scores, self.batch_size

    def distrust(self) -> str | None:
        """Return why the counters cannot be used, None when they can, or before anything has run."""
        readings = self.batch.readings
        if float(self.batch.state.now_s[0]) <= 0:
            return None
        with np.errstate(invalid="ignore"):
            absurd = ~(np.isfinite(readings.mean[0]) & (np.abs(readings.mean[0]) < _ABSURD))
            stale = ~(readings.age_s[0] < STALE_S)
        share = float(np.mean(~(absurd | stale)))
        if share >= LEAST_SANE:
            return None
        num = len(absurd)
        return (
            f"{int(absurd.sum())} of {num} counters are absurd and {int((stale & ~absurd).sum())} stale: "
            "deciding without regard to contention"
        )


def save_policy(
    path: str | Path, params: Mapping[str, Any], settings: NetSettings, shape: NetShape, meta: Mapping[str, Any]
) -> None:
    """Write a policy to a file."""
    from stretto.files import checkpoint

    about = {
        "kind": "symphony",
        "net": asdict(settings),
        "num_actions": shape.num_actions,
    }
    arrays = {name: np.asarray(value, np.float32) for name, value in params.items()}
    checkpoint.save(path, {**arrays, "follows": np.asarray(shape.follows)}, {**about, **meta})


def load_policy(path: str | Path, batch: RackBatch) -> tuple[NumpyPolicy, dict[str, Any]]:
    """Read a policy for a rack, or say why it does not fit."""
    from dataclasses import replace

    from stretto.files import checkpoint
    from stretto.files.checked_arrays import from_meta, take

    source = str(path)
    arrays, meta = checkpoint.load(path)
    if meta.get("kind") != "symphony":
        raise InvalidInput("the checkpoint holds no policy of Symphony", source=source, field="kind")
    # Older policies had no guide.
    settings = from_meta(lambda: NetSettings(**({"guide": 0.0} | meta["net"])), source=source, field="net")
    shape = shape_of(batch.model, len(batch.counters.resource), batch.streams)
    if meta.get("num_actions") != shape.num_actions:
        raise InvalidInput(
            f"trained for {meta.get('num_actions')} actions, the rack has {shape.num_actions}", source=source
        )
    arrays.setdefault("wait_gap", np.zeros(1, np.float32))  # older policies did not look at it
    follows = take(arrays, "follows", shape.follows.shape, source=source)
    params = {name: take(arrays, name, found, source=source) for name, found in weight_shapes(shape, settings).items()}
    return NumpyPolicy(params, replace(shape, follows=follows), settings), meta


def pretrained(batch: RackBatch) -> tuple[NumpyPolicy, dict[str, Any]]:
    """Return the policy that comes with Stretto, which knows the small rack and its kernels only."""
    return load_policy(Path(__file__).with_name("pretrained.npz"), batch)

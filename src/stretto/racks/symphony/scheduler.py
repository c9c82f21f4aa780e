"""Deciding with a policy of Symphony, one rack at a time, and the fallback when its counters cannot be trusted.

Readings that are missing, stale or absurd are counted before each decision. With too many of them a rule that ignores
contention decides, and ``reason`` says so until enough counters are back. The weights that come with Stretto are
untrained: their decisions are those of the guide in ``settings.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.core.kernels.rng import seeded
from stretto.errors import InvalidInput
from stretto.racks.dispatch import Decider, RandomState
from stretto.racks.kernels.features import fill_rows
from stretto.racks.kernels.rules import MCT, choose
from stretto.racks.simulator import RackBatch
from stretto.racks.symphony.inference import NumpyPolicy
from stretto.racks.symphony.settings import PARAMS, NetSettings, NetShape, shape_of, weight_shapes

#: The weights that come with Stretto: untrained.
SHIPPED = Path(__file__).with_name("shipped.npz")


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
            absurd = ~(np.isfinite(readings.mean[0]) & (np.abs(readings.mean[0]) < PARAMS.absurd))
            stale = ~(readings.age_s[0] < PARAMS.stale_s)
        share = float(np.mean(~(absurd | stale)))
        if share >= PARAMS.least_sane:
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
            f"these weights are for a rack with {meta.get('num_actions')} actions, this one has {shape.num_actions}:"
            " make weights for it with stretto train symphony CASE --save FILE, and give them with --weights FILE",
            source=source,
        )
    arrays.setdefault("wait_gap", np.zeros(1, np.float32))  # older policies did not look at it
    follows = take(arrays, "follows", shape.follows.shape, source=source)
    params = {name: take(arrays, name, found, source=source) for name, found in weight_shapes(shape, settings).items()}
    return NumpyPolicy(params, replace(shape, follows=follows), settings), meta


def shipped_policy(batch: RackBatch) -> tuple[NumpyPolicy, dict[str, Any]]:
    """Return the policy that comes with Stretto: untrained, and for the small rack and its kernels only."""
    return load_policy(SHIPPED, batch)


def training_state(meta: Mapping[str, Any]) -> str:
    """Say how long the weights of a checkpoint were trained."""
    num = meta.get("iterations") or 0
    return f"trained for {num:,} iteration{'s' * (num != 1)}" if num else "untrained"


@dataclass(frozen=True)
class SymphonyDispatcher:
    """Symphony as a dispatcher: with weights of a file, or with those that come with Stretto."""

    weights: str | None = None
    summary = "Symphony, beliefs and a graph network; its shipped weights are untrained and fit small-rack only"

    def policy(self, batch: RackBatch) -> tuple[NumpyPolicy, dict[str, Any]]:
        """Return the policy and what its checkpoint says of itself."""
        return shipped_policy(batch) if self.weights is None else load_policy(self.weights, batch)

    def decider(self, batch: RackBatch, *, seed: int, random: RandomState) -> Decider:
        return SymphonyScheduler(self.policy(batch)[0], batch)


SYMPHONY = SymphonyDispatcher()

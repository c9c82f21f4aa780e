"""Symphony's network: its weights and their files.

No shape of a weight depends on a rack. The forward pass is compiled: ``racks/kernels/policy_score.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stretto.core.csr import Floats
from stretto.errors import InvalidInput
from stretto.racks.kernels import policy_inputs as inputs
from stretto.racks.kernels.policy_score import HIDDEN, NetWeights
from stretto.racks.symphony.settings import PARAMS

#: The weights that come with Stretto.
SHIPPED = Path(__file__).with_name("shipped.npz")

SHAPES: dict[str, tuple[int, ...]] = {
    "hidden": (inputs.NUM_INPUTS, HIDDEN),
    "bias": (HIDDEN,),
    "out": (HIDDEN,),
    "direct": (inputs.NUM_INPUTS,),
}
assert tuple(SHAPES) == NetWeights._fields


def fresh_weights(seed: int) -> NetWeights:
    """Return the untrained start: the network is silent, a rule's weights decide; the seed is for what is behind it."""
    rng = np.random.default_rng(seed)
    made = {name: rng.normal(size=shape) / np.sqrt(shape[0]) for name, shape in SHAPES.items()}
    made["bias"][:] = 0.0
    made["out"][:] = 0.0
    made["direct"][:] = 0.0
    made["direct"][inputs.BEHIND] = PARAMS.start_behind
    made["direct"][inputs.FORECAST] = PARAMS.start_forecast
    made["direct"][inputs.TASKS_LEFT] = PARAMS.start_tasks_left
    made["direct"][inputs.IS_WAIT] = PARAMS.start_wait
    return NetWeights(**made)


def flat(weights: NetWeights) -> Floats:
    """Return all weights in one row."""
    return np.concatenate([np.ravel(part) for part in weights])


def unflat(row: Floats) -> NetWeights:
    """Return the weights that :func:`flat` put in a row."""
    ends = np.cumsum([int(np.prod(shape)) for shape in SHAPES.values()])
    parts = np.split(np.asarray(row, np.float64), ends[:-1])
    return NetWeights(
        *(np.ascontiguousarray(part.reshape(shape)) for part, shape in zip(parts, SHAPES.values(), strict=True))
    )


def save_weights(path: str | Path, weights: NetWeights, meta: Mapping[str, Any]) -> None:
    """Write weights to a file."""
    from stretto.files import checkpoint

    arrays = {name: np.asarray(value, np.float32) for name, value in weights._asdict().items()}
    checkpoint.save(path, arrays, {"kind": "symphony", "version": 3, **meta})


def load_weights(path: str | Path = SHIPPED) -> tuple[NetWeights, dict[str, Any]]:
    """Read weights, or say why the file holds none."""
    from stretto.files import checkpoint
    from stretto.files.checked_arrays import take

    source = str(path)
    arrays, meta = checkpoint.load(path)
    if meta.get("kind") != "symphony":
        raise InvalidInput("the checkpoint holds no weights of Symphony", source=source, field="kind")
    if meta.get("version") != 3:
        raise InvalidInput(
            "these weights are of an earlier version with other inputs; train again with stretto train symphony",
            source=source,
            field="version",
        )
    taken = {name: take(arrays, name, shape, source=source) for name, shape in SHAPES.items()}
    return NetWeights(**{name: np.ascontiguousarray(value, np.float64) for name, value in taken.items()}), meta

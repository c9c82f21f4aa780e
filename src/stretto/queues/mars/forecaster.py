"""The forecaster that comes with Stretto: loading, saving, and several networks as one."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from stretto.errors import InvalidInput
from stretto.queues.mars.kernels.forecast import NUM_HEADS, NUM_INPUTS, Forecaster

#: What comes with Stretto; ``python -m research.mars.make_forecaster ship`` makes it.
SHIPPED = Path(__file__).with_name("forecaster.npz")


@functools.cache
def shipped() -> Forecaster:
    """Return the forecaster that comes with Stretto."""
    return load_forecaster(SHIPPED)[0]


def blend(parts: Sequence[Forecaster]) -> Forecaster:
    """Return one forecaster that says the mean of what several say: each errs, but not in the same way."""
    if not parts:
        raise InvalidInput("nothing to blend", field="forecasters")
    return Forecaster(
        np.concatenate([one.first for one in parts], axis=1),
        np.concatenate([one.bias for one in parts]),
        np.concatenate([one.out for one in parts]) / len(parts),
        np.mean([one.out_bias for one in parts], axis=0),
    )


def save_forecaster(path: str | Path, forecaster: Forecaster, meta: Mapping[str, object]) -> None:
    """Write the weights to a file."""
    from stretto.files import checkpoint

    arrays = {name: array.astype(np.float32) for name, array in forecaster._asdict().items()}
    checkpoint.save(path, arrays, {"kind": "mars-forecaster", **meta})


def load_forecaster(path: str | Path) -> tuple[Forecaster, dict[str, object]]:
    """Read weights and what is said of them."""
    from stretto.files import checkpoint

    arrays, meta = checkpoint.load(path)
    if meta.get("kind") != "mars-forecaster":
        raise InvalidInput("the checkpoint does not hold a forecaster of MARS", source=str(path), field="kind")
    for name in Forecaster._fields:
        if name not in arrays:
            raise InvalidInput(f"the forecaster has no {name}", source=str(path), field=name)
        if arrays[name].dtype.kind != "f" or arrays[name].ndim == 0:
            raise InvalidInput(f"{name} is not an array of floats", source=str(path), field=name)
    num_hidden = len(arrays["bias"])
    shapes = ((NUM_INPUTS, num_hidden), (num_hidden,), (num_hidden, NUM_HEADS), (NUM_HEADS,))
    for name, shape in zip(Forecaster._fields, shapes, strict=True):
        if arrays[name].shape != shape:
            raise InvalidInput(f"{name} has shape {arrays[name].shape}, expected {shape}", source=str(path), field=name)
        if not np.all(np.isfinite(arrays[name])):
            raise InvalidInput(f"{name} holds a value that is not finite", source=str(path), field=name)
    return Forecaster(*(np.ascontiguousarray(arrays[name], np.float64) for name in Forecaster._fields)), meta

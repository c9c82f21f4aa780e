"""Networks that order the waiting jobs: weights by name, as a file, and those that come with Stretto."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.errors import InvalidInput
from stretto.queues.mars.kernels import score as features

_PARTS = ("weight", "reserve")
#: What ``stretto train mars`` calls the network that it trains, for ``--default`` beside ``--nets``.
TRAINED = "trained"


@dataclass(frozen=True, eq=False)
class MarsNet:
    """One network.

    Attributes
    ----------
    net
        Its weights, as kernels see them.
    """

    name: str
    net: features.ScoreNet

    def __post_init__(self) -> None:
        for part, shape in zip(_PARTS, ((features.NUM_JOB,), (1,)), strict=True):
            array = getattr(self.net, part)
            if array.shape != shape:
                raise InvalidInput(f"{part} has shape {array.shape}, expected {shape}", field=part)
            if not np.all(np.isfinite(array)):
                raise InvalidInput(f"{part} holds a value that is not a finite number", field=part)

    def to_arrays(self) -> dict[str, Floats]:
        """Return the weights by name."""
        return {part: getattr(self.net, part) for part in _PARTS}

    def order_only(self) -> MarsNet:
        """Return a network that holds no job back: what somebody else can follow who starts the jobs."""
        return MarsNet(self.name, self.net._replace(reserve=np.zeros(1)))


def linear_net(name: str, weights: Mapping[int, float], *, reserve: float = 0.0) -> MarsNet:
    """Return a network of some weights.

    Parameters
    ----------
    weights
        Of features, per natural logarithm where a feature is one.
    reserve
        Jobs with a long forecast leave room for so many short ones, of the mean width of the latest.
    """
    every = np.zeros(features.NUM_JOB)
    for feature, weight in weights.items():
        every[feature] = weight if feature in (features.SHARE, features.URGENCY) else weight * features.SCALE
    return MarsNet(name, features.ScoreNet(every, np.array([reserve])))


def net_of(name: str, arrays: Mapping[str, NDArray[np.generic]]) -> MarsNet:
    """Return the network of some arrays."""
    missing = [part for part in _PARTS if part not in arrays]
    if missing:
        message = f"the network {name!r} has no {missing[0]}; files of earlier versions must be trained anew"
        raise InvalidInput(message, field=missing[0])
    for part in _PARTS:
        if np.asarray(arrays[part]).dtype.kind != "f":
            raise InvalidInput(f"{part} holds {np.asarray(arrays[part]).dtype}, expected floats", field=part)
        if np.ndim(arrays[part]) == 0:
            raise InvalidInput(f"{part} is a single number, expected an array", field=part)
    return MarsNet(name, features.ScoreNet(*(np.ascontiguousarray(arrays[part], np.float64) for part in _PARTS)))


def save_nets(path: str | Path, nets: list[MarsNet], meta: Mapping[str, object]) -> None:
    """Write networks to one file."""
    from stretto.files import checkpoint

    arrays = {f"{net.name}.{part}": array for net in nets for part, array in net.to_arrays().items()}
    checkpoint.save(path, arrays, {"kind": "mars", "nets": [net.name for net in nets], **meta})


def load_nets(path: str | Path) -> tuple[list[MarsNet], dict[str, object]]:
    """Read networks and what is said of them."""
    from stretto.files import checkpoint

    arrays, meta = checkpoint.load(path)
    if meta.get("kind") != "mars":
        raise InvalidInput("the checkpoint does not hold networks of MARS", source=str(path), field="kind")
    names = named_nets(meta, str(path))
    try:
        nets = [
            net_of(name, {key.removeprefix(f"{name}."): arrays[key] for key in arrays if key.startswith(f"{name}.")})
            for name in names
        ]
    except InvalidInput as error:
        raise error.at(str(path)) from None
    return nets, meta


def named_nets(meta: Mapping[str, object], source: str) -> list[str]:
    """Return the names of the networks in a checkpoint."""
    names = meta.get("nets")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or not names:
        raise InvalidInput("is not a list of names of networks", source=source, field="nets")
    return names


@functools.cache
def shipped_nets() -> tuple[MarsNet, ...]:
    """Return the ensemble that comes with Stretto, trained on public logs (``research/mars/make_ensemble.py``)."""
    nets, _ = load_nets(Path(__file__).with_name("ensemble.npz"))
    return tuple(nets)

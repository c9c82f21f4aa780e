"""Weights of the scoring network, by name and as a file.

All classic orders but UNICEP, with EASY or without backfilling, are points in the space of these weights
(``classic_net``): training starts from one of them and can only depart from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.mars.kernels import policy as features

#: What the score of each classic order is made of: feature and weight.
CLASSICS: Mapping[str, Mapping[int, float]] = {
    "fcfs": {features.LOG_WAIT: 1.0},
    "sjf": {features.LOG_ESTIMATE: -1.0},
    "ljf": {features.LOG_ESTIMATE: 1.0},
    "saf": {features.LOG_ESTIMATE: -1.0, features.LOG_PROCS: -1.0},
    "laf": {features.LOG_ESTIMATE: 1.0, features.LOG_PROCS: 1.0},
    "smallest": {features.LOG_PROCS: -1.0},
    "largest": {features.LOG_PROCS: 1.0},
    "expansion": {features.LOG_EXPANSION: 1.0},
    "wfp3": {features.LOG_WAIT: 3.0, features.LOG_ESTIMATE: -3.0, features.LOG_PROCS: 1.0},
    "f1": {features.SUBMITTED: -1.0, features.F1: -1.0},
    "f2": {features.SUBMITTED: -1.0, features.F2: -1.0},
    "f3": {features.SUBMITTED: -1.0, features.F3: -1.0},
    "f4": {features.SUBMITTED: -1.0, features.F4: -1.0},
    "sjf-believed": {features.LOG_BELIEVED: -1.0},
    "saf-believed": {features.LOG_BELIEVED: -1.0, features.LOG_PROCS: -1.0},
    # Smith's rule for the sum of slowdowns: the cost of a second of waiting over the work that is left.
    "smith": {features.LOG_SHARP: -1.0, features.LOG_BELIEVED: -1.0, features.LOG_PROCS: -1.0},
    "smith-aged": {
        features.LOG_SHARP: -1.0,
        features.LOG_BELIEVED: -1.0,
        features.LOG_PROCS: -1.0,
        features.LOG_WAIT: 1.0,
    },
    "wfp3-believed": {features.LOG_WAIT: 3.0, features.LOG_BELIEVED: -3.0, features.LOG_PROCS: 1.0},
}
_PARTS = ("skip", "gate", "hidden", "bias", "out", "patience", "trust", "reserve", "foresight")
#: Parts that older files have under another name.
_FORMER_PARTS = {"spare": "reserve"}


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
        num_hidden = len(self.net.bias)
        shapes = ((features.NUM_JOB,), (features.NUM_FEATURES + 1,), (num_hidden, features.NUM_FEATURES))
        for part, shape in zip(_PARTS, (*shapes, (num_hidden,), (num_hidden,), (1,), (1,), (1,), (1,)), strict=True):
            array = getattr(self.net, part)
            if array.shape != shape:
                raise InvalidInput(f"{part} has shape {array.shape}, expected {shape}", field=part)
            if np.any(np.isnan(array)):
                raise InvalidInput(f"{part} holds a value that is not a number", field=part)

    @property
    def num_hidden(self) -> int:
        return len(self.net.bias)

    def to_arrays(self) -> dict[str, Floats]:
        """Return the weights by name."""
        return {part: getattr(self.net, part) for part in _PARTS}

    def with_hidden(self, num_hidden: int, seed: int, scale: float = 0.3) -> MarsNet:
        """Return the same policy with a hidden layer whose output weights are zero."""
        rng = np.random.default_rng(seed)
        hidden = rng.normal(size=(num_hidden, features.NUM_FEATURES)) * scale
        bias = rng.normal(size=num_hidden) * scale
        return replace(self, net=self.net._replace(hidden=hidden, bias=bias, out=np.zeros(num_hidden)))


def net_of(name: str, arrays: Mapping[str, NDArray[np.generic]]) -> MarsNet:
    """Return the network of some arrays."""
    # Older files lack these parts: estimates are then trusted, nothing is kept free, and no forecaster is asked.
    arrays = {_FORMER_PARTS.get(part, part): array for part, array in arrays.items()}
    arrays = {"trust": np.zeros(1), "reserve": np.zeros(1), "foresight": np.zeros(1), **arrays}
    missing = [part for part in _PARTS if part not in arrays]
    if missing:
        raise InvalidInput(f"the network {name!r} has no {missing[0]}", field=missing[0])
    for part in _PARTS:
        if np.asarray(arrays[part]).dtype.kind != "f":
            raise InvalidInput(f"{part} holds {np.asarray(arrays[part]).dtype}, expected floats", field=part)
        if np.ndim(arrays[part]) == 0:
            raise InvalidInput(f"{part} is a single number, expected an array", field=part)
    return MarsNet(name, features.ScoreNet(*(np.ascontiguousarray(arrays[part], np.float64) for part in _PARTS)))


def classic_net(
    name: str,
    *,
    backfill: bool = True,
    patience_s: float = math.inf,
    trust: float = 0.0,
    reserve: float = 0.0,
    foresight: float = 0.0,
) -> MarsNet:
    """Return a network that orders as a classic strategy does.

    Parameters
    ----------
    backfill
        EASY, or none at all.
    patience_s
        Jobs that have waited longer come first.
    trust
        Whether reservations use user estimates (0), forecasts of run times (1), or a mix.
    reserve
        Share of the machine that jobs with long forecasts leave free for shorter ones.
    foresight
        Whether forecasts are means over like jobs (0), the forecaster's (1), or a mix.
    """
    if name not in CLASSICS:
        raise UnknownName("order of MARS", name, CLASSICS)
    skip = np.zeros(features.NUM_JOB)
    for feature, weight in CLASSICS[name].items():
        skip[feature] = weight
    gate = np.zeros(features.NUM_FEATURES + 1)
    gate[-1] = 1.0 if backfill else -1.0
    empty = np.zeros(0)
    hidden = np.zeros((0, features.NUM_FEATURES))
    return MarsNet(
        name if backfill else f"{name}-none",
        features.ScoreNet(
            skip,
            gate,
            hidden,
            empty,
            empty.copy(),
            *(np.array([value]) for value in (patience_s, trust, reserve, foresight)),
        ),
    )


#: What ``stretto train mars`` calls the network that it trains, for ``--default`` beside ``--nets``.
TRAINED = "trained"


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

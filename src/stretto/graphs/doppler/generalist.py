"""Weights made elsewhere: the policies that come with Stretto, and networks of a checkpoint."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stretto.core.csr import Floats
from stretto.core.kernels.shapes import Singles
from stretto.files.checked_arrays import from_meta, take
from stretto.files.checkpoint import load
from stretto.graphs.doppler.linear import NUM_WEIGHTS
from stretto.graphs.doppler.parameters import init_params
from stretto.graphs.doppler.settings import DopplerSettings, saved_settings

#: Linear policies, trained on many graphs and good on others; the first one is best alone.
GENERALIST = Path(__file__).with_name("generalist.npz")
_MAX_BYTES = 64 << 20
_PREFIX = "params/"


class NetworkWeights(NamedTuple):
    """Parameters with the shape of the network that they belong to."""

    params: Mapping[str, Singles]
    settings: DopplerSettings
    meta: Mapping[str, object]


@functools.cache
def load_policies(path: Path = GENERALIST) -> Floats:
    """Read linear policies [K, weights], the best one first."""
    arrays, _ = load(path, max_bytes=_MAX_BYTES)
    source = str(path)
    rows = np.shape(arrays.get("policies", 0.0))[:1]
    taken = take(arrays, "policies", (max(1, *rows), NUM_WEIGHTS) if rows else (1, NUM_WEIGHTS), source=source)
    return np.asarray(taken, dtype=np.float64)


@functools.cache
def load_network(path: Path) -> NetworkWeights:
    """Read networks without their tables from a checkpoint, and refuse shapes that its own settings do not make."""
    arrays, meta = load(path, max_bytes=_MAX_BYTES)
    source = str(path)
    settings = from_meta(
        lambda: DopplerSettings(**{**saved_settings(meta["settings"]), "tables": False}),
        source=source,
        field="settings",
    )
    params = {name.removeprefix(_PREFIX): value for name, value in arrays.items() if name.startswith(_PREFIX)}
    expected = {name: value.shape for name, value in init_params(settings, 0).items()}
    taken = {name: take(params, name, shape, source=source) for name, shape in expected.items()}
    return NetworkWeights({name: np.asarray(value, dtype=np.float32) for name, value in taken.items()}, settings, meta)

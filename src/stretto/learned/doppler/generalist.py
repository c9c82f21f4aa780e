"""The weights that come with Stretto, trained on many graphs and good on others."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stretto.errors import InvalidInput
from stretto.formats.checkpoint import load
from stretto.learned.doppler.parameters import init_params
from stretto.learned.doppler.settings import NetSettings

#: Where they are.
GENERALIST = Path(__file__).with_name("generalist.npz")
_MAX_BYTES = 64 << 20
_PREFIX = "params/"


class Weights(NamedTuple):
    """Parameters with the shape of the network that they belong to."""

    params: Mapping[str, Any]
    settings: NetSettings
    meta: Mapping[str, Any]


@functools.cache
def load_weights(path: Path = GENERALIST) -> Weights:
    """Read weights without tables from a checkpoint, and refuse shapes that its own settings do not make."""
    arrays, meta = load(path, max_bytes=_MAX_BYTES)
    settings = NetSettings(**{**meta["settings"], "tables": False})
    params = {name.removeprefix(_PREFIX): value for name, value in arrays.items() if name.startswith(_PREFIX)}
    expected = {name: value.shape for name, value in init_params(settings, 0).items()}
    for name, shape in expected.items():
        if name not in params or params[name].shape != shape:
            found = params[name].shape if name in params else "nothing"
            raise InvalidInput(f"expected shape {shape}, found {found}", source=str(path), field=name)
    return Weights({name: np.asarray(params[name], dtype=np.float32) for name in expected}, settings, meta)

"""A placement as a device map for ``accelerate.dispatch_model``: JSON."""

from __future__ import annotations

import json

from stretto.errors import InvalidInput
from stretto.reports.placement import Placement
from stretto.reports.torch_placement import TorchPlacement


def emit(placement: Placement) -> bytes:
    """Return the device of each module; GPUs by number, as ``dispatch_model`` wants them."""
    if not isinstance(placement, TorchPlacement):
        raise InvalidInput("a device map is for PyTorch modules; this placement is of something else", field="--emit")
    return (json.dumps(placement.device_map(), indent=2) + "\n").encode()

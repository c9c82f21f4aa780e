"""``stretto place --emit json``: the placement as one document, for any program that can read JSON."""

from __future__ import annotations

import json

from stretto.reports.placement import Placement


def emit(placement: Placement) -> bytes:
    """Return the document of a placement: operations, devices, memory, and where the costs come from."""
    return (json.dumps(placement.to_json(), indent=1, allow_nan=False) + "\n").encode()

"""A placement as a zip of ONNX submodels, with a manifest that says in which order and where they run."""

from __future__ import annotations

import io
import json
import zipfile

from stretto.errors import InvalidInput
from stretto.reports.onnx_placement import OnnxPlacement
from stretto.reports.placement import Placement

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same placement gives the same bytes


def emit(placement: Placement) -> bytes:
    """Return the zip: ``manifest.json``, and ``part0.onnx`` to the last in the order in which they run."""
    if not isinstance(placement, OnnxPlacement):
        raise InvalidInput("submodels are for ONNX models; this placement is of something else", field="--emit")
    parts = placement.split()
    manifest = {
        "format": "stretto-onnx-parts",
        "version": 1,
        "simulated_s": placement.makespan_s,
        "notes": list(placement.notes),
        "results": [value.name for value in placement.program.model.graph.output],
        "parts": [
            {
                "file": f"part{number}.onnx",
                "device": part.device,
                "inputs": list(part.inputs),
                "outputs": list(part.outputs),
            }
            for number, part in enumerate(parts)
        ],
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as out:
        out.writestr(zipfile.ZipInfo("manifest.json", _EPOCH), json.dumps(manifest, indent=2) + "\n")
        for number, part in enumerate(parts):
            out.writestr(zipfile.ZipInfo(f"part{number}.onnx", _EPOCH), part.model.SerializeToString())
    return buffer.getvalue()

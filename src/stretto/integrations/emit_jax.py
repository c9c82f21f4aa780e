"""``stretto place --emit jax``: a placed JAX function as a file of exported stretches, which runs without its source.

The file is a zip archive: ``program.json`` says which stretch reads and writes what on which device, ``stretch_N.bin``
are the stretches as ``jax.export`` serializes them, ``prepare.bin`` cuts weights into the parts that stretches read,
and ``constants.npz`` holds arrays that the function closes over.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stretto.engines.jax_program import equations_of, group_function
from stretto.engines.jax_stretches import stretches
from stretto.errors import InvalidInput
from stretto.files.graphs.jax_equations import FlatEquation
from stretto.files.graphs.jax_trace import JaxProgram
from stretto.reports.placement import Placement

_FORMAT, _VERSION = "stretto-jax-program", 1


def emit(placement: Placement) -> bytes:
    """Return the archive of a placed function."""
    program = placement.program
    if not isinstance(program, JaxProgram):
        raise InvalidInput("the model is no function of JAX; --emit json writes any placement", field="--emit jax")
    flat, data = program.flat, io.BytesIO()
    cut = stretches(program.operations, placement.schedule)
    needed = {v for one in program.operations for v in one.reads} | {v for v in flat.outputs if isinstance(v, int)}
    rows = []
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, stretch in enumerate(cut):
            own = [v for task in stretch.operations for v in program.operations[task].writes]
            inner = [v for task in stretch.operations for v in program.operations[task].reads]
            reads = [v for v in dict.fromkeys(inner) if v not in own]
            writes = [v for v in own if v in needed]
            equations = equations_of(program, stretch.operations)
            archive.writestr(f"stretch_{number}.bin", _exported(program, equations, reads, writes))
            rows.append({"device": stretch.device, "reads": reads, "writes": writes})
        document = _document(placement, program, rows)
        parts, prepare = [flat.equations[number] for number in program.arguments.parts], document["prepare"]
        archive.writestr("prepare.bin", _exported(program, parts, prepare["reads"], prepare["writes"]))
        archive.writestr("constants.npz", _constants(program))
        archive.writestr("program.json", json.dumps(document, indent=1))
    return data.getvalue()


def _exported(
    program: JaxProgram, equations: Sequence[FlatEquation], reads: Sequence[int], writes: Sequence[int]
) -> bytes:
    """Return equations as one serialized function."""
    import jax
    from jax import export

    avals = [program.flat.avals[value] for value in reads]
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
    return bytes(export.export(jax.jit(group_function(equations, reads, writes)))(*shapes).serialize())


def _document(placement: Placement, program: JaxProgram, rows: list[dict[str, Any]]) -> dict[str, Any]:
    flat, origin = program.flat, program.arguments.origin
    read = {value for row in rows for value in row["reads"]}
    parts = [value for value in origin if value in read]
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "name": flat.name,
        "devices": [device.name for device in placement.result.problem.cluster.devices],
        "costs": placement.costs,
        "inputs": list(flat.inputs),
        "outputs": [v if isinstance(v, int) else {"value": np.asarray(v.val).tolist()} for v in flat.outputs],
        # All weights that are cut, for the equations that cut them.
        "prepare": {"reads": list(dict.fromkeys(origin.values())), "writes": parts},
        "stretches": rows,
    }


def _constants(program: JaxProgram) -> bytes:
    data = io.BytesIO()
    np.savez(data, **{str(value): np.asarray(one) for value, one in program.flat.constants.items()})  # type: ignore[arg-type]
    return data.getvalue()


def load_program(path: str | Path, devices: Sequence[Any] | None = None) -> Any:
    """Return the function of such a file: it takes the leaves of the arguments, and returns those of the result.

    Parameters
    ----------
    devices
        A device of JAX for each device of the placement; by default ``jax.devices()``.
    """
    import jax
    from jax import export

    with zipfile.ZipFile(path) as archive:
        document = json.loads(archive.read("program.json"))
        if document.get("format") != _FORMAT or document.get("version") != _VERSION:
            raise InvalidInput("is not what stretto place --emit jax writes", source=str(path))
        names = ["prepare.bin", *(f"stretch_{number}.bin" for number in range(len(document["stretches"])))]
        prepare, *calls = [jax.jit(export.deserialize(bytearray(archive.read(name))).call) for name in names]
        with np.load(io.BytesIO(archive.read("constants.npz")), allow_pickle=False) as arrays:
            constants = {int(name): arrays[name] for name in arrays.files}
    chosen = tuple(devices or jax.devices())
    if len(chosen) < len(document["devices"]):
        raise InvalidInput(f"{len(chosen)} devices of JAX for {len(document['devices'])}", field="devices")

    def run(*leaves: Any) -> list[Any]:
        values = dict(zip(document["inputs"], leaves, strict=True)) | constants
        cut = document["prepare"]
        values.update(zip(cut["writes"], prepare(*[values[v] for v in cut["reads"]]), strict=True))
        for row, call in zip(document["stretches"], calls, strict=True):
            operands = [jax.device_put(values[v], chosen[row["device"]]) for v in row["reads"]]
            values.update(zip(row["writes"], call(*operands), strict=True))
        return [values[v] if isinstance(v, int) else v["value"] for v in document["outputs"]]

    return run

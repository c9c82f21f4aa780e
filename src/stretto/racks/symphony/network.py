"""Symphony's network: its weights, their files, and the graphs of a rack that its messages pass over.

No shape of a weight depends on a rack. The forward pass is compiled: ``racks/kernels/policy_score.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stretto.core.csr import Floats
from stretto.errors import InvalidInput
from stretto.racks.kernels import policy_inputs as inputs
from stretto.racks.kernels.policy_score import (
    HIDDEN,
    NUM_HIDDEN_INPUTS,
    NUM_PART_INPUTS,
    WIDTH,
    NetGraph,
    NetWeights,
)
from stretto.racks.kernels.state import Streams
from stretto.racks.machine_work import RackModel
from stretto.racks.symphony.settings import PARAMS

#: Kinds of parts in the order of their numbers.
PART_KINDS = ("core", "memory", "pcie-switch", "root-complex", "socket-link", "nic")
#: The weights that come with Stretto.
SHIPPED = Path(__file__).with_name("shipped.npz")

SHAPES: dict[str, tuple[int, ...]] = {
    "part_in": (NUM_PART_INPUTS, WIDTH),
    "part_own": (WIDTH, WIDTH),
    "part_near": (WIDTH, WIDTH),
    "kernel_in": (inputs.NUM_KERNEL_INPUTS, WIDTH),
    "kernel_own": (WIDTH, WIDTH),
    "kernel_next": (WIDTH, WIDTH),
    "hidden": (NUM_HIDDEN_INPUTS, HIDDEN),
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


def graph_of(model: RackModel, streams: Streams) -> NetGraph:
    """Return the graphs of a rack and its kernels; the streams say which kernel follows which."""
    place = {name: r for r, name in enumerate(model.resources)}
    near: list[set[int]] = [set() for _ in model.resources]
    own: list[set[int]] = [set() for _ in model.processors]
    proc = {name: p for p, name in enumerate(model.processors)}
    for machine in model.rack.machines:
        for link in machine.links:
            ends = [f"{machine.name}/{name}" for name in link]
            for here, there in (ends, ends[::-1]):
                if here in place and there in place:
                    near[place[here]].add(place[there])
                if here in proc and there in place:
                    own[proc[here]].add(place[there])
    for name, p in proc.items():
        if name in place:  # a NIC is a shared part and may be a processor as well
            own[p].add(place[name])
    kinds = np.array([PART_KINDS.index(kind) for kind in model.resource_kind], np.int64)
    return NetGraph(kinds, *_packed(near), *_packed(own), _follows(model, streams))


def _packed(rows: Sequence[set[int]]) -> tuple[np.ndarray, np.ndarray]:
    ptr = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    return ptr, np.array([one for row in rows for one in sorted(row)], np.int64)


def _follows(model: RackModel, streams: Streams) -> Floats:
    """Return which kernels come right after each, rows sum to at most one; [K, K]."""
    found = np.zeros((len(model.kernels), len(model.kernels)))
    for i in range(len(streams.kernel)):
        ptr = streams.after_ptr[i]
        before = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        found[streams.kernel[i, before], streams.kernel[i, streams.after[i, : len(before)]]] = 1.0
    follows: Floats = found / np.maximum(found.sum(axis=1, keepdims=True), 1.0)
    return follows


def save_weights(path: str | Path, weights: NetWeights, meta: Mapping[str, Any]) -> None:
    """Write weights to a file."""
    from stretto.files import checkpoint

    arrays = {name: np.asarray(value, np.float32) for name, value in weights._asdict().items()}
    checkpoint.save(path, arrays, {"kind": "symphony", "version": 2, **meta})


def load_weights(path: str | Path = SHIPPED) -> tuple[NetWeights, dict[str, Any]]:
    """Read weights, or say why the file holds none."""
    from stretto.files import checkpoint
    from stretto.files.checked_arrays import take

    source = str(path)
    arrays, meta = checkpoint.load(path)
    if meta.get("kind") != "symphony":
        raise InvalidInput("the checkpoint holds no weights of Symphony", source=source, field="kind")
    if meta.get("version") != 2:
        raise InvalidInput(
            "these weights are of an earlier version, which fitted one rack; train again with stretto train symphony",
            source=source,
            field="version",
        )
    taken = {name: take(arrays, name, shape, source=source) for name, shape in SHAPES.items()}
    return NetWeights(**{name: np.ascontiguousarray(value, np.float64) for name, value in taken.items()}), meta

"""PipeDream profiles: layers with measured forward and backward times (text).

A layer line reads ``node7 -- LSTM(2048, 1024) -- forward_compute_time=3.19, ...``, in
milliseconds and bytes; an edge line, indented, reads ``node6 -- node7``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.core.provenance import DURATIONS, MEASURED
from stretto.files.document import Document
from stretto.files.sniff import graph_name

_LAYER = re.compile(r"^(\S+) -- (.*) -- (forward_compute_time=.*)$")
_EDGE = re.compile(r"^\s+(\S+) -- (\S+)\s*$")
_ITEM = re.compile(r"^__getitem__\((\d{1,9})\)$")
_CLASS = re.compile(r"^[A-Za-z_]+[A-Za-z_0-9]*")
Passes = Literal["forward", "training"]
_T = TypeVar("_T")


@dataclass(frozen=True)
class _Layer:
    name: str
    description: str
    forward_s: float
    backward_s: float
    output_bytes: tuple[float, ...]
    parameter_bytes: float
    readers: list[int] = field(default_factory=list)

    @property
    def category(self) -> str:
        match = _CLASS.match(self.description)
        name = match.group() if match else "layer"
        return "Input" if name.startswith("Input") else name


@dataclass(frozen=True)
class PipeDreamFormat:
    """Reads one task per layer, whose outputs are objects that all readers share.

    A layer with several outputs (an LSTM) has one object each, and a ``__getitem__(k)`` layer
    reads only the k-th. The profile was taken on one kind of GPU, so its times are ``work_s``.

    Attributes
    ----------
    passes
        ``forward``: one task per layer, its forward time; the backward times are in
        ``meta["backward_s"]``. ``training``: a backward task per layer as well, which needs
        its layer's outputs and the gradients from the backward tasks of the layer's readers.
    """

    passes: Passes = "forward"
    summary: str = "PipeDream layer profile (text): forward and backward times, activations, weights"
    endings: tuple[str, ...] = ("txt",)

    def matches(self, document: Document) -> bool:
        first = document.head.lstrip().split(b"\n", 1)[0]
        return b" -- " in first and b"forward_compute_time=" in first

    def read(self, document: Document) -> TaskGraph:
        layers = _parse(document)
        build = GraphBuilder(graph_name(document))
        build.meta[DURATIONS] = MEASURED
        build.meta["backward_s"] = tuple(layer.backward_s for layer in layers)
        outputs = _add_forward(build, layers)
        if self.passes == "training":
            _add_backward(build, layers, outputs)
        return build.graph()


def _parse(document: Document) -> list[_Layer]:
    layers: list[_Layer] = []
    index: dict[str, int] = {}
    for line, text in enumerate(document.text.splitlines(), start=1):
        if match := _LAYER.match(text):
            layer = _layer(document, line, *match.groups())
            if layer.name in index:
                document.fail(f"layer {layer.name!r} stands here twice", line=line)
            index[layer.name] = len(layers)
            layers.append(layer)
        elif match := _EDGE.match(text):
            for name in match.groups():
                if name not in index:
                    document.fail(f"the edge names the unknown layer {name!r}", line=line)
            source, target = (index[name] for name in match.groups())
            if source == target:
                document.fail(f"layer {match.group(1)!r} depends on itself", line=line)
            layers[source].readers.append(target)
        elif text.strip():
            document.fail(f"{text[:80]!r} is neither a layer nor an edge", line=line)
    return layers


def _layer(document: Document, line: int, name: str, description: str, values: str) -> _Layer:
    pairs = dict(part.partition("=")[::2] for part in values.split(", "))

    def number(key: str) -> float:
        return document.number(pairs.get(key), key, line=line)

    sizes = pairs.get("activation_size", "")
    parts = sizes.strip("[]").split(";") if sizes.startswith("[") else [sizes]
    return _Layer(
        name,
        description,
        number("forward_compute_time") / 1e3,
        number("backward_compute_time") / 1e3,
        tuple(document.number(part, "activation_size", line=line) for part in parts),
        number("parameter_size"),
    )


def _add_forward(build: GraphBuilder, layers: list[_Layer]) -> list[list[int]]:
    """Add the forward tasks and reads; return the objects of each layer."""
    outputs: list[list[int]] = []
    for layer in layers:
        task = build.task(layer.name, layer.forward_s, resident_bytes=layer.parameter_bytes, category=layer.category)
        outputs.append([build.object(task, size) for size in layer.output_bytes])
    for source, layer in enumerate(layers):
        for target in layer.readers:
            for handle in _picked(outputs[source], layers[target]):
                build.read(target, handle)
    return outputs


def _add_backward(build: GraphBuilder, layers: list[_Layer], outputs: list[list[int]]) -> None:
    tasks = [build.task(f"{x.name}.backward", x.backward_s, category=f"{x.category}.backward") for x in layers]
    for source, layer in enumerate(layers):
        for handle in outputs[source]:
            build.read(tasks[source], handle)
        for target in dict.fromkeys(layer.readers):
            # A reader sends back a gradient as large as what it read.
            build.edge(tasks[target], tasks[source], sum(_picked(list(layer.output_bytes), layers[target])))


def _picked(outputs: list[_T], reader: _Layer) -> list[_T]:
    """Return what a reader takes of several outputs: all, or the one it indexes."""
    match = _ITEM.match(reader.description)
    if match and len(outputs) > 1 and int(match.group(1)) < len(outputs):
        return [outputs[int(match.group(1))]]
    return outputs


FORMAT = PipeDreamFormat()

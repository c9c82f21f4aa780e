"""A placed ONNX model: its nodes on devices, submodels for each stretch, and a runner over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.core.provenance import DURATIONS
from stretto.engines.onnx_program import OnnxPart, OnnxProgram, fill_weights, missing_weights, split_model
from stretto.errors import InvalidInput, MissingExtra
from stretto.files.document import Document, read_document
from stretto.files.graphs.onnx_model import FORMAT, MAX_ONNX_BYTES, NODES, Proto, parse_model
from stretto.files.graphs.roofline import costs_of
from stretto.graphs.evaluate import Setting, evaluate
from stretto.reports.place_devices import Devices
from stretto.reports.placement import Placement
from stretto.runlog.record import Json

if TYPE_CHECKING:
    from stretto.engines.onnx_program import OnnxRunner


@dataclass(frozen=True, eq=False, repr=False)
class OnnxPlacement(Placement):
    """The nodes of an ONNX model on devices, with times; printing it shows the gist."""

    program: OnnxProgram = None  # type: ignore[assignment]  # the base has a default

    def node_of(self, operation: str) -> tuple[int, str]:
        """Return the node of an operation: its index in the model's graph, and the name of its first output."""
        index, output = self.graph.meta[NODES][self.graph.index_of[operation]]
        return int(index), str(output)

    def jit(self, devices: Sequence[object] | None = None) -> NoReturn:
        """Refuse: this is the way of JAX."""
        raise InvalidInput("an ONNX model runs as placement.runner()", field="jit")

    def split(self, *, merge: bool = True, random_weights: int | None = None) -> list[OnnxPart]:
        """Return one submodel per stretch of a device, in the order in which they run.

        Parameters
        ----------
        merge
            Join stretches of a device where nothing between them is needed: fewer submodels, less overlap of devices.
        random_weights
            A seed: weights whose values the file lost are filled at random, so that the parts can run.
        """
        program = self.program
        missing = missing_weights(program.model)
        if missing and random_weights is None:
            raise InvalidInput(
                f"the file has no values for {len(missing)} weights, such as {missing[0].name!r}; "
                "pass random_weights=SEED to fill them at random",
                field="split",
            )
        if missing and random_weights is not None:
            filled = type(program.model)()
            filled.CopyFrom(program.model)
            fill_weights(filled, random_weights)
            program = replace(program, model=filled)
        names = [device.name for device in self.result.problem.cluster.devices]
        return split_model(program, self.graph, self.schedule, names, merge=merge)

    def runner(
        self,
        *,
        providers: Mapping[str, Sequence[Any]] | None = None,
        merge: bool = True,
        random_weights: int | None = None,
    ) -> OnnxRunner:
        """Return a callable from inputs by name to results by name, over one onnxruntime session per submodel.

        Parameters
        ----------
        providers
            Execution providers by device of the placement, such as ``{"gpu0": [("CUDAExecutionProvider",
            {"device_id": 0})]}``; the CPU where none is given.
        merge, random_weights
            As for :meth:`split`.
        """
        from stretto.engines.onnx_program import OnnxRunner

        results = [value.name for value in self.program.model.graph.output]
        return OnnxRunner(self.split(merge=merge, random_weights=random_weights), results, providers)


def is_onnx_model(value: object) -> bool:
    """Say whether something is a file name or a ``ModelProto``; onnx is not imported for the answer."""
    return isinstance(value, (str, Path)) or type(value).__name__ == "ModelProto"


def read_onnx_model(source: str | Path | Proto) -> tuple[str, Proto]:
    """Return the name and the model of a file, with weights that lie beside it, or of a ``ModelProto``."""
    if not isinstance(source, (str, Path)):
        copy = type(source)()
        copy.CopyFrom(source)
        return str(source.graph.name) or "onnx", copy
    document = read_document(source, max_bytes=MAX_ONNX_BYTES)
    if not FORMAT.matches(document):
        document.fail("not an ONNX model; stretto.plan reads graphs of other formats")
    model = parse_model(document)
    if any(tensor.data_location == 1 for tensor in model.graph.initializer):
        import onnx.external_data_helper

        onnx.external_data_helper.load_external_data_for_model(model, str(Path(source).resolve().parent))
    return document.name, model


def place_onnx(
    named: tuple[str, Proto],
    dims: Mapping[str, int],
    devices: Devices,
    policy: str,
    params: Mapping[str, Json] | None,
    budget: Budget,
    setting: Setting,
) -> OnnxPlacement:
    """Read the graph of a model and plan its nodes on devices."""
    name, model = named
    if model.functions:
        try:
            import onnx.inliner
        except ImportError:
            raise MissingExtra("onnx", "onnx", "placing ONNX models") from None
        model = onnx.inliner.inline_local_functions(model)
    bare = type(model)()
    bare.CopyFrom(model)
    models, basis = costs_of(devices.cluster)
    reader = replace(FORMAT, dims=dict(dims), rooflines=models)
    graph, typed = reader.read_model(bare, Document(name, b""))
    problem = Problem.of(graph.with_meta(**{DURATIONS: basis}), devices.cluster)
    result = evaluate(problem, policy, params=params, budget=budget, setting=setting)
    return OnnxPlacement(result, OnnxProgram(model, typed), remarks=devices.notes)

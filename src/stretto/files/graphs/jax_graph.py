"""Live JAX functions as graphs: one task per operation, its duration from a cost model, arguments as weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.core.provenance import DURATIONS, ROOFLINE
from stretto.files.graphs.jax_arguments import Arguments
from stretto.files.graphs.jax_cost import VIEWS, aval_bytes, eqn_cost
from stretto.files.graphs.jax_equations import FlatProgram, trace
from stretto.files.graphs.jax_groups import JaxOperation, is_cheap, operations
from stretto.files.graphs.roofline import ROOFLINES, CostModel, OpCost

_ALIASES = VIEWS | {"transpose", "broadcast_in_dim", "slice", "convert_element_type"}


def from_jax(fun: Callable[..., object], *args: object, **kwargs: object) -> TaskGraph:
    """Trace a function on example arguments and return the graph of its primitives.

    The arguments may be arrays or ``jax.ShapeDtypeStruct``: nothing is computed. Arguments and
    arrays that the function closes over are weights: they stay on every device that runs a
    task which reads them. Nested ``jit`` is inlined, a ``scan`` of few rounds unrolled. A longer
    one is one task that costs its body times its length, a ``cond`` costs its longest branch, a
    ``while`` one round of its body.
    """
    return from_program(trace(fun, args, kwargs))


def from_program(
    program: FlatProgram,
    found: Sequence[JaxOperation] | None = None,
    *,
    rooflines: Mapping[str, CostModel] = ROOFLINES,
    basis: str | None = None,
    arguments: Arguments | None = None,
) -> TaskGraph:
    """Return the graph of a flat program: task ``i`` is its operation ``i``, by default its equation ``i``.

    Parameters
    ----------
    basis
        Where durations come from, in words.
    arguments
        What is known of the arguments; by default all of them are weights.
    """
    found = operations(program, group=False) if found is None else found
    arguments = arguments or Arguments.all_weights(program)
    build = GraphBuilder(program.name)
    kept = {value for value in program.outputs if isinstance(value, int)}
    read = {value for operation in found for value in operation.reads}
    handles: dict[int, int] = {}
    total = OpCost()
    for operation in found:
        kernels = kernels_of(program, operation)
        total = sum(kernels, total)
        seconds = {kind: sum(map(model.seconds, kernels)) for kind, model in rooflines.items()}
        task = _add_task(build, program, operation, seconds, kept)
        handles |= {v: build.object(task, aval_bytes(program.avals[v])) for v in operation.writes if v in read}
    _add_reads(build, found, handles, arguments.resident_bytes())
    default = ROOFLINE if rooflines is ROOFLINES else "assumed (roofline model)"
    build.meta |= {DURATIONS: basis or default, "total_flops": total.flops, "total_bytes": total.num_bytes}
    return build.graph()


def _add_task(
    build: GraphBuilder, program: FlatProgram, operation: JaxOperation, seconds: Mapping[str, float], kept: set[int]
) -> int:
    head = head_of(program, operation)
    primitive = program.equations[head].primitive
    return build.task(
        f"{primitive}_{head}",
        next(iter(seconds.values())),
        durations=dict(seconds),
        # Results stay until the call returns.
        resident_bytes=sum(aval_bytes(program.avals[value]) for value in operation.writes if value in kept),
        category=primitive,
    )


def _add_reads(
    build: GraphBuilder, found: Sequence[JaxOperation], handles: Mapping[int, int], resident: Mapping[int, float]
) -> None:
    weights: dict[int, int] = {}
    for task, operation in enumerate(found):
        for value in operation.reads:
            if value in handles:
                build.read(task, handles[value])
            elif value in resident:
                if value not in weights:
                    weights[value] = build.weight(resident[value])
                build.read_weight(task, weights[value])


def head_of(program: FlatProgram, operation: JaxOperation) -> int:
    """Return the equation that an operation is called by: the one that computes most, the first of equals."""
    costs = [eqn_cost(program.equations[number].eqn) for number in operation.equations]
    best = max(range(len(costs)), key=lambda place: (costs[place].flops, costs[place].num_bytes, -place))
    return operation.equations[best]


def kernels_of(program: FlatProgram, operation: JaxOperation) -> list[OpCost]:
    """Return the costs of what XLA would launch: each heavy equation, and all cheap ones as one."""
    if len(operation.equations) == 1:
        return [eqn_cost(program.equations[operation.equations[0]].eqn)]
    equations = [program.equations[number] for number in operation.equations]
    heavy = [one for one in equations if not is_cheap(one.primitive)]
    fused = [one for one in equations if is_cheap(one.primitive) and one.primitive not in _ALIASES]
    kernels = [eqn_cost(one.eqn) for one in heavy]
    if not fused:
        return kernels or [sum((eqn_cost(one.eqn) for one in equations), OpCost())]
    alias = {one.writes[0]: one.reads[0] for one in equations if one.primitive in _ALIASES}

    def origin(value: int | None) -> int | None:
        while value in alias:
            value = alias[value]
        return value

    made = {value for one in fused for value in one.writes}
    read = {origin(value) for one in fused for value in one.reads} - made - {None}
    outside = set(operation.writes) | {value for one in heavy for value in one.reads if value is not None}
    written = {value for value in made if value in outside or any(origin(other) == value for other in outside)}
    num_bytes = sum(aval_bytes(program.avals[value]) for value in (*read, *written) if value is not None)
    arithmetic = sum((eqn_cost(one.eqn) for one in fused), OpCost())
    return [*kernels, OpCost(arithmetic.flops, num_bytes, arithmetic.dtype, "elementwise")]

"""A JAX function as it is placed: its equations, the operations that they form, and what its arguments are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stretto.core.graph import TaskGraph
from stretto.files.graphs.jax_arguments import Arguments, arguments_of, leaves_by_argument
from stretto.files.graphs.jax_equations import DEFAULT_UNROLL, FlatProgram, trace
from stretto.files.graphs.jax_graph import from_program
from stretto.files.graphs.jax_groups import JaxOperation, operations
from stretto.files.graphs.roofline import CostModel


@dataclass(frozen=True)
class JaxOptions:
    """How a JAX function becomes operations.

    Attributes
    ----------
    weights
        Numbers of positional arguments and names of keyword arguments that are weights; None decides by size.
    optimizer_state
        Bytes of optimizer state per byte of a weight, which stay beside it: 2 for Adam in the type of the weights.
    group
        Whether cheap equations join the operation that makes their operand, as XLA would fuse them.
    unroll
        Rounds up to which a ``scan`` is unrolled; a longer one is one operation.
    """

    weights: int | str | Sequence[int | str] | None = None
    optimizer_state: float = 0.0
    group: bool = True
    unroll: int = DEFAULT_UNROLL


@dataclass(frozen=True)
class JaxProgram:
    """A traced function; task ``i`` of its graph is operation ``i``."""

    arguments: Arguments
    operations: tuple[JaxOperation, ...]

    @property
    def flat(self) -> FlatProgram:
        return self.arguments.program

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed of arguments and left of loops."""
        return (*self.arguments.notes, *self.flat.notes)

    def graph(self, rooflines: Mapping[str, CostModel], basis: str) -> TaskGraph:
        """Return the graph of the operations, with durations by a cost model for each kind of device."""
        return from_program(self.flat, self.operations, rooflines=rooflines, basis=basis, arguments=self.arguments)

    def source(self, task: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the way back from an operation: its equations, and the lines of the program that they come from."""
        equations = [(number, self.flat.equations[number]) for number in self.operations[task].equations]
        names = tuple(f"{equation.primitive}_{number}" for number, equation in equations)
        return names, tuple(dict.fromkeys(equation.source for _, equation in equations if equation.source))


def trace_function(
    fn: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object], options: JaxOptions
) -> JaxProgram:
    """Trace a function on example arguments, and form its operations."""
    flat = trace(fn, args, kwargs, unroll=options.unroll)
    positional, named = leaves_by_argument(args, kwargs, flat.inputs)
    arguments = arguments_of(flat, positional, named, weights=options.weights, optimizer_state=options.optimizer_state)
    return JaxProgram(arguments, tuple(operations(flat, arguments.skipped, group=options.group)))

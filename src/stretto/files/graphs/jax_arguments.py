"""Arguments of a JAX function: which are weights, how many bytes they keep on a device, and which parts are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from stretto.core.units import format_bytes
from stretto.errors import InvalidInput
from stretto.files.graphs.jax_cost import aval_bytes
from stretto.files.graphs.jax_equations import FlatProgram

#: Where nobody says which arguments are weights: arrays of at least this size are taken to be.
WEIGHT_BYTES = 2**20
#: Views of a weight that are made once, when it is sent, so that a device gets only the part that it reads.
_PARTS = frozenset(["slice", "squeeze", "reshape"])


@dataclass(frozen=True)
class Arguments:
    """What a program is called with.

    Attributes
    ----------
    weights
        Values that stay on the devices between calls; the other inputs are sent at every call.
    parts
        Equations that cut a weight into the parts that operations read, in order.
    rule
        How weights and inputs were told apart, as a sentence.
    optimizer_state
        Bytes of state per byte of a weight, which stay beside it.
    """

    program: FlatProgram
    weights: frozenset[int]
    rule: str
    parts: tuple[int, ...] = ()
    optimizer_state: float = 0.0
    #: The weight that each part was cut from.
    origin: Mapping[int, int] = field(default_factory=dict)

    @staticmethod
    def all_weights(program: FlatProgram) -> Arguments:
        """Take all arguments as weights, each as a whole."""
        return Arguments(program, frozenset(program.inputs), "All arguments are taken to be weights.")

    @property
    def skipped(self) -> frozenset[int]:
        """Equations that are no operations."""
        return frozenset(self.parts)

    def resident_bytes(self) -> dict[int, float]:
        """Return the bytes that each argument, part or captured array keeps on a device that reads it."""
        program = self.program
        values = [*program.inputs, *program.constants, *self.origin]
        factor = dict.fromkeys([*self.weights, *self.origin], 1.0 + self.optimizer_state)
        return {value: aval_bytes(program.avals[value]) * factor.get(value, 1.0) for value in values}

    @property
    def notes(self) -> tuple[str, ...]:
        """Say which rule was applied, and what is counted beside weights."""
        program = self.program
        sizes = [
            sum(aval_bytes(program.avals[v]) for v in program.inputs if (v in self.weights) == own) for own in (1, 0)
        ]
        told = f"{self.rule} Weights: {format_bytes(sizes[0])}, inputs: {format_bytes(sizes[1])}."
        if self.optimizer_state > 0:
            told += f" Optimizer state: {self.optimizer_state:g} bytes per byte of a weight, beside it."
        return (told,)


def arguments_of(
    program: FlatProgram,
    leaves_of: Sequence[Sequence[int]],
    keywords: Mapping[str, Sequence[int]],
    *,
    weights: object = None,
    optimizer_state: float = 0.0,
) -> Arguments:
    """Tell weights from inputs.

    Parameters
    ----------
    leaves_of, keywords
        The values of each positional argument, and of each keyword argument.
    weights
        Numbers of positional arguments and names of keyword arguments, one or several; None decides by size.
    """
    if not optimizer_state >= 0:
        raise InvalidInput(f"{optimizer_state} must not be negative", field="optimizer_state")
    if weights is None:
        large = [value for value in program.inputs if aval_bytes(program.avals[value]) >= WEIGHT_BYTES]
        rule = (
            f"Arrays of {format_bytes(WEIGHT_BYTES)} or more are assumed to be weights (say weights=0 for the first)."
        )
        chosen = frozenset(large)
    else:
        names = weights if isinstance(weights, (tuple, list, set, frozenset)) else (weights,)
        chosen = frozenset(value for name in names for value in _leaves(name, leaves_of, keywords))
        rule = f"Weights are the arguments {', '.join(map(str, names))}, as given."
    parts, origin = _parts(program, chosen)
    return Arguments(program, chosen, rule, parts, optimizer_state, origin)


def _leaves(name: object, leaves_of: Sequence[Sequence[int]], keywords: Mapping[str, Sequence[int]]) -> Sequence[int]:
    if isinstance(name, int) and not isinstance(name, bool) and 0 <= name < len(leaves_of):
        return leaves_of[name]
    if isinstance(name, str) and name in keywords:
        return keywords[name]
    known = [*map(str, range(len(leaves_of))), *keywords]
    raise InvalidInput(
        f"{name!r} is not an argument of the function, which has {', '.join(known) or 'none'}", field="weights"
    )


def _parts(program: FlatProgram, weights: frozenset[int]) -> tuple[tuple[int, ...], dict[int, int]]:
    """Find the equations that cut weights into parts; their results are weights of their own.

    A part that is cut twice, as by the forward and the backward pass, becomes one: later readers read the first.
    """
    found: list[int] = []
    origin: dict[int, int] = {}
    first: dict[tuple[int, str, str], int] = {}
    same: dict[int, int] = {}
    kept = {value for value in program.outputs if isinstance(value, int)}
    for number, equation in enumerate(program.equations):
        if any(value in same for value in equation.reads):
            reads = tuple(same.get(value, value) if value is not None else None for value in equation.reads)
            equation = program.equations[number] = replace(equation, reads=reads)
        source = equation.reads[0] if len(equation.reads) == 1 else None
        if source is None or equation.primitive not in _PARTS or kept.intersection(equation.writes):
            continue
        if source in origin or (source in weights and equation.primitive == "slice"):
            found.append(number)
            value = equation.writes[0]
            known = first.setdefault((source, equation.primitive, str(equation.eqn.params)), value)
            if known != value:
                same[value] = known
            else:
                origin[value] = origin.get(source, source)
    return tuple(found), origin


def leaves_by_argument(
    args: Sequence[object], kwargs: Mapping[str, object], inputs: Sequence[int]
) -> tuple[list[list[int]], dict[str, list[int]]]:
    """Deal the values of inputs out to positional and keyword arguments, in the order of JAX."""
    import jax

    rest = iter(inputs)
    positional = [[next(rest) for _ in jax.tree.leaves(arg)] for arg in args]
    return positional, {key: [next(rest) for _ in jax.tree.leaves(kwargs[key])] for key in sorted(kwargs)}

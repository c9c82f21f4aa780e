"""Operations of a JAX program: equations that XLA would run as one, so that placement does not tear them apart.

A cheap equation (element-wise, a view, a reduction) joins the operation that makes its operand, where this makes
nothing wait for more than before; views of arguments and fills are repeated in each operation that reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from stretto.files.graphs.jax_cost import PER_ELEMENT, VIEWS
from stretto.files.graphs.jax_equations import FlatProgram

#: What neither computes nor depends on data: repeated rather than sent.
_FILLS = frozenset(["broadcast_in_dim", "iota", "transpose", "convert_element_type", "slice", *VIEWS])
_MOVES = frozenset(
    ["concatenate", "stack", "pad", "rev", "dynamic_slice", "transpose", "broadcast_in_dim", "iota", "slice"]
)
_REDUCTIONS = frozenset(
    ["reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or", "argmax", "argmin"]
)


@dataclass(frozen=True)
class JaxOperation:
    """Equations that run together; ``reads`` and ``writes`` are the values that cross its border."""

    equations: tuple[int, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]


def is_cheap(primitive: str) -> bool:
    """Say whether XLA fuses such an equation with its neighbors."""
    return primitive in PER_ELEMENT or primitive in VIEWS or primitive in _MOVES or primitive in _REDUCTIONS


def operations(
    program: FlatProgram, skipped: frozenset[int] = frozenset(), *, group: bool = True
) -> list[JaxOperation]:
    """Return the operations of a program; with ``group=False`` each equation is one.

    Parameters
    ----------
    skipped
        Equations that are no operations: those that prepare weights.
    """
    if group:
        found = _Grouping(program, skipped).groups()
    else:
        found = [[number] for number in range(len(program.equations)) if number not in skipped]
    return _with_borders(program, found)


@dataclass
class _Group:
    equations: list[int] = field(default_factory=list)
    is_light: bool = True
    has_reader: bool = False
    #: A bit for every group that must end before it.
    above: int = 0


class _Grouping:
    """Takes equations in the order of the program; earlier groups grow, and no cycle arises."""

    def __init__(self, program: FlatProgram, skipped: frozenset[int]) -> None:
        self.program = program
        self.skipped = skipped
        self.found: list[_Group] = []
        #: The group of each value, and the fills that each repeated value needs, in order.
        self.home: dict[int, int] = {}
        self.fills: dict[int, tuple[int, ...]] = {}

    def groups(self) -> list[list[int]]:
        outputs = {value for value in self.program.outputs if isinstance(value, int)}
        for number, equation in enumerate(self.program.equations):
            if number in self.skipped:
                continue
            if self._is_fill(number) and not outputs.intersection(equation.writes):
                needed = self._fills_of(equation.reads)
                self.fills |= dict.fromkeys(equation.writes, (*needed, number))
                continue
            place = self._place(number)
            group = self.found[place]
            group.equations += [*self._fills_of(equation.reads), number]
            self.home |= dict.fromkeys(equation.writes, place)
        return [list(dict.fromkeys(sorted(group.equations))) for group in self.found]

    def _is_fill(self, number: int) -> bool:
        equation = self.program.equations[number]
        return equation.primitive in _FILLS and not any(value in self.home for value in equation.reads)

    def _fills_of(self, reads: Iterable[int | None]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(fill for value in reads if value is not None for fill in self.fills.get(value, ())))

    def _place(self, number: int) -> int:
        """Return the group of an equation: that of an operand, or a new one."""
        equation = self.program.equations[number]
        parents = sorted({self.home[value] for value in equation.reads if value in self.home}, reverse=True)
        is_light = is_cheap(equation.primitive)
        place = next((one for one in parents if self._joins(one, parents)), None) if is_light else None
        if place is None:
            place = len(self.found)
            self.found.append(_Group(is_light=is_light))
        for parent in parents:
            if parent != place:
                self.found[parent].has_reader = True
                self.found[place].above |= self.found[parent].above | 1 << parent
        return place

    def _joins(self, place: int, parents: Sequence[int]) -> bool:
        """Say whether an equation may join a group: nothing heavy then waits for more, and there is no cycle."""
        group, others = self.found[place], [one for one in parents if one != place]
        if all(group.above >> one & 1 for one in others):
            return True
        is_open = group.is_light and not group.has_reader
        return is_open and not any(self.found[one].above >> place & 1 for one in others)


def _with_borders(program: FlatProgram, groups: Sequence[Sequence[int]]) -> list[JaxOperation]:
    """Work out what each group reads from elsewhere, and what others need of it."""
    made = [{value for number in group for value in program.equations[number].writes} for group in groups]
    needed = {value for value in program.outputs if isinstance(value, int)}
    reads = []
    for group, own in zip(groups, made, strict=True):
        values = [value for number in group for value in program.equations[number].reads if value is not None]
        reads.append(tuple(value for value in dict.fromkeys(values) if value not in own))
        needed.update(reads[-1])
    return [
        JaxOperation(
            tuple(group),
            outside,
            tuple(v for number in group for v in program.equations[number].writes if v in needed),
        )
        for group, outside in zip(groups, reads, strict=True)
    ]

"""Tensor programs cut into blocks: one task per block of an operation, one object per block of a tensor.

An operation has axes, and each axis is cut into parts; a cell of that grid is a task which reads the blocks of its
operands that it overlaps. Axes that the result lacks are contracted: where they are cut, the tasks make partial
results, and a *formation* per block of the result adds them up. A formation may also gather blocks into larger ones.
Inputs of the program are no tasks: they are where they are needed from the start.

The count of floating-point operations is exact (a sum of k values is k - 1 additions), so it does not depend on
the cut: what the partial sums save, the formations spend.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import product
from typing import Any, Literal

import numpy as np

from stretto.core import argument_checks as checks
from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph

#: The released Doppler graphs count index points; their simulator divides by this (see ``files/graphs/doppler.py``).
PAPER_POINTS_PER_S = 1e10
#: Those graphs charge moving an operation's result four times what they charge computing it.
PAPER_TRANSFER_FACTOR = 4.0

Axes = Sequence[str]
Cell = tuple[int, ...]
#: What an operation does along the axes that its result lacks.
Contraction = Literal["product", "sum"]


@dataclass(frozen=True)
class Costs:
    """What operations cost on a device of speed 1: arithmetic, memory, and starting any operation.

    Attributes
    ----------
    value_bytes
        Size of one number.
    seed, noise
        Spread (sigma) of a log-normal factor of mean 1 on every duration, and its seed; 0 keeps them exact.
    paper_costs
        Charge as the released Doppler graphs do instead: the points of the *whole* operation for each of its blocks,
        and four times that for the transfer of its result, whatever its size. Only for comparison.
    """

    flops_per_s: float = 10e12
    memory_bytes_per_s: float = 500e9
    launch_s: float = 5e-6
    value_bytes: float = 4.0
    paper_costs: bool = False
    seed: int = 0
    noise: float = 0.0

    def __post_init__(self) -> None:
        checks.not_negative(noise=self.noise)
        checks.positive(flops_per_s=self.flops_per_s, value_bytes=self.value_bytes)
        checks.not_negative(launch_s=self.launch_s)
        if self.memory_bytes_per_s != math.inf:
            checks.positive(memory_bytes_per_s=self.memory_bytes_per_s)

    def seconds(self, flops: float, num_bytes: float) -> float:
        """Return the longer of computing and moving the data through memory, plus the start."""
        return max(flops / self.flops_per_s, num_bytes / self.memory_bytes_per_s) + self.launch_s


@dataclass(frozen=True, eq=False)
class ShardedTensor:
    """A tensor in blocks, by axis name; ``blocks`` is None where no task makes it."""

    sizes: Mapping[str, int]
    parts: Mapping[str, int]
    blocks: Mapping[Cell, tuple[int, ...]] | None = None  # the objects that make up each block

    def renamed(self, **names: str) -> ShardedTensor:
        """Return the same tensor with other names for its axes."""
        rename = {axis: names.get(axis, axis) for axis in self.sizes}
        sizes = {rename[axis]: size for axis, size in self.sizes.items()}
        return ShardedTensor(sizes, {rename[axis]: parts for axis, parts in self.parts.items()}, self.blocks)


@lru_cache(maxsize=4096)
def cuts(size: int, parts: int) -> tuple[int, ...]:
    """Return where an axis is cut: parts + 1 positions, parts as equal as whole numbers allow."""
    return tuple(part * size // parts for part in range(parts + 1))


@lru_cache(maxsize=65536)
def overlaps(size: int, parts: int, part: int, into: int) -> range:
    """Return which of ``into`` parts share points with one of ``parts`` parts."""
    low, high = cuts(size, parts)[part], cuts(size, parts)[part + 1]
    edges = cuts(size, into)
    first = int(np.searchsorted(edges, low, side="right")) - 1
    return range(first, int(np.searchsorted(edges, high, side="left")))


def with_fields(**groups: type[Any]) -> Callable[[Callable[..., TaskGraph]], Callable[..., TaskGraph]]:
    """Give a generator that takes dataclasses their fields as keywords in their place."""

    def decorate(make: Callable[..., TaskGraph]) -> Callable[..., TaskGraph]:
        own = [one for name, one in inspect.signature(make).parameters.items() if name not in groups]
        shared = [
            inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=one.type)
            for group in groups.values()
            for one in fields(group)
        ]

        @functools.wraps(make)
        def made(*args: int, **given: object) -> TaskGraph:
            for name, group in groups.items():
                given[name] = group(**{one.name: given.pop(one.name) for one in fields(group) if one.name in given})
            return make(*args, **given)

        made.__signature__ = inspect.Signature([*own, *shared], return_annotation="TaskGraph")  # type: ignore[attr-defined]
        return made

    return decorate


class Program:
    """A tensor program under construction."""

    def __init__(self, name: str, costs: Costs) -> None:
        self.costs = costs
        self._build = GraphBuilder(name, transfer_unit="seconds" if costs.paper_costs else "bytes")
        self._random = np.random.default_rng(costs.seed)
        self._flops = 0.0

    def input(self, **sizes: int) -> ShardedTensor:
        """Declare a tensor that is there from the start: data, weights."""
        return ShardedTensor(sizes, dict.fromkeys(sizes, 1))

    def apply(
        self,
        name: str,
        category: str,
        operands: Sequence[ShardedTensor],
        out: Axes,
        parts: Mapping[str, int],
        *,
        flops_per_point: float = 1.0,
        contraction: Contraction = "product",
        formed: Mapping[str, int] | None = None,
    ) -> ShardedTensor:
        """Add an operation, block by block.

        Parameters
        ----------
        out
            Axes of the result.
        parts
            How often each axis of the operation is cut; once where it is not named.
        flops_per_point
            Of an operation without contraction, for each point of its result.
        contraction
            Multiply and add (``product``) or only add or compare (``sum``) along the axes that the result lacks.
        formed
            Add a formation that leaves the result with these parts; without it, contracted axes must be whole.
        """
        sizes = {axis: size for tensor in operands for axis, size in tensor.sizes.items()}
        sizes = {axis: sizes[axis] for axis in (*out, *(axis for axis in sizes if axis not in out))}
        grid = {axis: parts.get(axis, 1) for axis in sizes}
        for axis, size in sizes.items():
            checks.at_least(1, **{f"parts of {name} along {axis}": grid[axis]})
            checks.at_least(grid[axis], **{f"size of {name} along {axis}": size})
        self._make_room(name, grid)
        inner = [axis for axis in sizes if axis not in out]
        blocks: dict[Cell, list[int]] = {}
        for cell in product(*(range(count) for count in grid.values())):
            extent = _extent(sizes, grid, cell)
            points = math.prod(extent[axis] for axis in out)
            each = _contracted(math.prod(extent[axis] for axis in inner), contraction) if inner else flops_per_point
            handle = self._task(
                _label(name, cell),
                category,
                [handle for tensor in operands for handle in _reads(tensor, sizes, grid, cell)],
                flops=points * each,
                in_values=sum(_touched(tensor, extent) for tensor in operands),
                out_values=points,
                whole_points=math.prod(sizes.values()),
            )
            blocks.setdefault(cell[: len(out)], []).append(handle)
        whole = {axis: sizes[axis] for axis in out}
        result = ShardedTensor(
            whole, {axis: grid[axis] for axis in out}, {key: tuple(value) for key, value in blocks.items()}
        )
        if formed is not None:
            return self.form(name, result, formed)
        assert all(len(value) == 1 for value in blocks.values()), f"{name} leaves partial results"
        return result

    def form(self, name: str, tensor: ShardedTensor, parts: Mapping[str, int]) -> ShardedTensor:
        """Add up the partial results of each block, gathered into blocks of these parts."""
        assert tensor.blocks is not None
        sizes = tensor.sizes
        grid = {axis: parts.get(axis, 1) for axis in sizes}
        self._make_room(name, grid)
        num_partial = len(next(iter(tensor.blocks.values())))
        blocks = {}
        for cell in product(*(range(count) for count in grid.values())):
            points = math.prod(_extent(sizes, grid, cell).values())
            handle = self._task(
                _label(f"{name}_form", cell),
                "formation",
                _reads(tensor, sizes, grid, cell),
                flops=points * (num_partial - 1),
                in_values=points * num_partial,
                out_values=points,
                whole_points=math.prod(sizes.values()),
            )
            blocks[cell] = (handle,)
        return ShardedTensor(sizes, grid, blocks)

    def cut(
        self, name: str, category: str, tensor: ShardedTensor, parts: Mapping[str, int], **kept: tuple[int, int]
    ) -> ShardedTensor:
        """Add an operation that copies, or makes, a tensor; of some axes only a range from first to before last."""
        sizes = {axis: kept[axis][1] - kept[axis][0] if axis in kept else size for axis, size in tensor.sizes.items()}
        grid = {axis: parts.get(axis, 1) for axis in sizes}
        self._make_room(name, grid)
        blocks = {}
        for cell in product(*(range(count) for count in grid.values())):
            points = math.prod(_extent(sizes, grid, cell).values())
            reads = [] if tensor.blocks is None else _reads_range(tensor, sizes, grid, cell, kept)
            handle = self._task(
                _label(name, cell),
                category,
                reads,
                flops=0.0,
                in_values=points,
                out_values=points,
                whole_points=math.prod(sizes.values()),
            )
            blocks[cell] = (handle,)
        return ShardedTensor(sizes, grid, blocks)

    def _make_room(self, name: str, grid: Mapping[str, int]) -> None:
        """Raise before an operation is cut into more blocks than a graph may have tasks."""
        checks.makes_tasks(self._build.num_tasks + math.prod(grid.values()), **{f"parts of {name}": dict(grid)})

    def graph(self) -> TaskGraph:
        """Make the graph of all operations; ``meta`` says how much arithmetic it holds."""
        self._build.meta.update(total_flops=self._flops, paper_costs=self.costs.paper_costs)
        return self._build.graph()

    def _task(
        self,
        name: str,
        category: str,
        reads: Iterable[int],
        *,
        flops: float,
        in_values: float,
        out_values: float,
        whole_points: float,
    ) -> int:
        costs = self.costs
        self._flops += flops
        out_bytes = costs.value_bytes * out_values
        touched_bytes = costs.value_bytes * in_values + out_bytes
        if costs.paper_costs:
            work_s = whole_points / PAPER_POINTS_PER_S
            size, memory_bytes = PAPER_TRANSFER_FACTOR * work_s, 0.0
        else:
            work_s, size, memory_bytes = costs.seconds(flops, touched_bytes), out_bytes, touched_bytes
        task = self._build.task(name, work_s * self._factor(), memory_bytes=memory_bytes, category=category)
        for handle in reads:
            self._build.read(task, handle)
        return self._build.object(task, size)

    def _factor(self) -> float:
        noise = self.costs.noise
        if noise == 0:
            return 1.0
        return float(np.exp(noise * self._random.standard_normal() - noise**2 / 2))


def _label(name: str, cell: Cell) -> str:
    return "_".join([name, *map(str, cell)])


def _extent(sizes: Mapping[str, int], grid: Mapping[str, int], cell: Cell) -> dict[str, int]:
    """Return how many points a cell has along each axis."""
    extent = {}
    for (axis, size), part in zip(sizes.items(), cell, strict=True):
        edges = cuts(size, grid[axis])
        extent[axis] = edges[part + 1] - edges[part]
    return extent


def _contracted(num_inner: int, contraction: Contraction) -> float:
    """Return the operations behind one value of a contraction over so many points."""
    return 2.0 * num_inner - 1.0 if contraction == "product" else num_inner - 1.0


def _touched(tensor: ShardedTensor, extent: Mapping[str, int]) -> float:
    """Return how many values of an operand a cell needs."""
    return math.prod((extent[axis] for axis in tensor.sizes), start=1.0)


def _reads(tensor: ShardedTensor, sizes: Mapping[str, int], grid: Mapping[str, int], cell: Cell) -> list[int]:
    """Return the objects of the operand's blocks that a cell of an operation overlaps."""
    if tensor.blocks is None:
        return []
    part = dict(zip(sizes, cell, strict=True))
    spans = [overlaps(size, grid[axis], part[axis], tensor.parts[axis]) for axis, size in tensor.sizes.items()]
    return [handle for block in product(*spans) for handle in tensor.blocks[block]]


def _reads_range(
    tensor: ShardedTensor,
    sizes: Mapping[str, int],
    grid: Mapping[str, int],
    cell: Cell,
    kept: Mapping[str, tuple[int, int]],
) -> list[int]:
    assert tensor.blocks is not None
    spans = []
    for (axis, size), part in zip(sizes.items(), cell, strict=True):
        first = kept[axis][0] if axis in kept else 0
        edges = cuts(size, grid[axis])
        low, high = first + edges[part], first + edges[part + 1]
        whole = cuts(tensor.sizes[axis], tensor.parts[axis])
        spans.append(range(int(np.searchsorted(whole, low, side="right")) - 1, int(np.searchsorted(whole, high))))
    return [handle for block in product(*spans) for handle in tensor.blocks[block]]

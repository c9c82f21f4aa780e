"""A task graph: tasks, the data objects they produce, and who reads them.

Dependencies go through *objects*. A task produces objects, tasks read objects; one output
that many tasks read is one object, and it travels to a device once. An object of zero
bytes is a pure precedence: it moves nowhere and costs nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from stretto.core.csr import Floats, Ints, find_cycle, group, topological_order
from stretto.core.devices.weights import Weights
from stretto.core.magnitudes import BYTES, CORES, SECONDS, Range
from stretto.errors import InvalidInput

TransferUnit = Literal["bytes", "seconds"]
#: Entries of the table of durations by task and kind that readers and workloads put together.
MAX_TABLE = 20_000_000
#: Durations where the graph knows kinds of devices: infinity says that a task cannot run there.
_OR_NEVER = replace(SECONDS, has_infinity=True)


@dataclass(frozen=True, eq=False)
class Resources:
    """Renewable resources of a project (RCPSP): a task holds ``demand`` units while it runs."""

    names: tuple[str, ...]
    capacity: Ints  # [R]
    demand: Ints  # [n, R]


@dataclass(frozen=True, eq=False)
class TaskGraph:
    """Tasks with durations and needs, and the data that flows between them.

    Build one with :class:`stretto.core.builder.GraphBuilder` or :func:`TaskGraph.from_edges`;
    the constructor checks everything and raises :class:`InvalidInput` with the task at fault.

    Attributes
    ----------
    work_s
        Seconds of each task on a device of speed 1, for device kinds without a column of
        their own in ``kind_duration_s``.
    kinds, kind_duration_s
        Seconds per device kind; ``inf`` says "cannot run here". ``core/provenance.py`` says where they come from.
    memory_bytes, resident_bytes
        Memory held while the task runs, and memory held on its device throughout (weights).
    weights
        Weights that several tasks may read: held throughout, once on each device that runs a reader.
    cores, gpus, other_needs
        What a task holds while it runs, of a node that packs; named amounts (``scratch``, licenses) by name.
        ``core/nodes/packing.py`` says what a task gets that states nothing.
    transfer_unit
        ``bytes``: objects take latency + bytes / bandwidth. ``seconds``: the source gave
        transfer *times*; an object takes its size in seconds over any link.
    """

    name: str
    work_s: Floats  # [n]
    object_task: Ints  # [O] producer of each object, ascending
    object_size: Floats  # [O] bytes or seconds, see transfer_unit
    read_task: Ints  # [E] reader of each read
    read_object: Ints  # [E] object read, same length
    task_names: tuple[str, ...] | None = None
    kinds: tuple[str, ...] = ()
    kind_duration_s: Floats | None = None  # [n, K]
    cores: Floats | None = None  # [n]
    memory_bytes: Floats | None = None  # [n]
    resident_bytes: Floats | None = None  # [n]
    gpus: Floats | None = None  # [n]
    other_needs: Mapping[str, Floats] = field(default_factory=dict)  # [n] each
    categories: tuple[str, ...] = ()
    category: Ints | None = None  # [n] index into categories
    transfer_unit: TransferUnit = "bytes"
    resources: Resources | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    weights: Weights | None = None

    # Derived structure, filled by the constructor.
    out_ptr: Ints = field(init=False, repr=False)  # [n+1] objects of each task
    object_ptr: Ints = field(init=False, repr=False)  # [O+1]
    object_reader: Ints = field(init=False, repr=False)  # [E] readers by object
    in_ptr: Ints = field(init=False, repr=False)  # [n+1]
    in_object: Ints = field(init=False, repr=False)  # [E] objects read by task
    topo: Ints = field(init=False, repr=False)  # [n] a topological order

    def __post_init__(self) -> None:
        fix = object.__setattr__
        n = self.num_tasks
        _check_tasks(self)
        _check_objects(self)
        _check_resources(self)
        if self.weights is not None:
            self.weights.check(n)
        object_ptr, by_object = group(self.read_object, self.num_objects)
        in_ptr, by_task = group(self.read_task, n)
        out_ptr = np.searchsorted(self.object_task, np.arange(n + 1)).astype(np.int32)
        source = self.object_task[self.read_object]
        topo = topological_order(n, source, self.read_task)
        if topo is None:
            cycle = find_cycle(n, source, self.read_task)
            names = " -> ".join(self.task_name(task) for task in [*cycle[:8], cycle[0]])
            more = f" ({len(cycle)} tasks)" if len(cycle) > 8 else ""
            raise InvalidInput(f"the graph has a cycle: {names}{more}", field="edges")
        fix(self, "object_ptr", object_ptr)
        fix(self, "object_reader", self.read_task[by_object])
        fix(self, "in_ptr", in_ptr)
        fix(self, "in_object", self.read_object[by_task])
        fix(self, "out_ptr", out_ptr)
        fix(self, "topo", topo)

    @property
    def num_tasks(self) -> int:
        return len(self.work_s)

    @property
    def num_objects(self) -> int:
        return len(self.object_task)

    @property
    def num_edges(self) -> int:
        """Reads: pairs of an object and a task that reads it."""
        return len(self.read_task)

    def task_name(self, task: int) -> str:
        return self.task_names[task] if self.task_names is not None else f"t{task}"

    @cached_property
    def index_of(self) -> dict[str, int]:
        """Task index by name."""
        return {self.task_name(task): task for task in range(self.num_tasks)}

    @cached_property
    def edges(self) -> tuple[Ints, Ints, Floats]:
        """Source task, target task and size of every read, in the order of ``read_task``."""
        return self.object_task[self.read_object], self.read_task, self.object_size[self.read_object]

    def with_meta(self, **entries: object) -> TaskGraph:
        """Return the same graph with more ``meta``; arrays are shared, and nothing is checked again."""
        other = copy.copy(self)
        object.__setattr__(other, "meta", {**self.meta, **entries})
        return other

    def category_name(self, task: int) -> str:
        return self.categories[self.category[task]] if self.category is not None else ""

    @staticmethod
    def from_edges(
        work_s: ArrayLike,
        source: ArrayLike,
        target: ArrayLike,
        size: ArrayLike = 0.0,
        *,
        shared_outputs: bool = False,
        name: str = "graph",
        **attributes: Any,
    ) -> TaskGraph:
        """Build a graph from an edge list.

        Parameters
        ----------
        size
            Bytes of each edge, or one value for all.
        shared_outputs
            When true, all edges of one source with one size carry one object; otherwise each
            edge is an object of its own. Repeated edges are merged, their sizes added.
        attributes
            Further fields of the graph, such as ``task_names`` or ``memory_bytes``.
        """
        work = np.asarray(work_s, dtype=np.float64)
        src = np.asarray(source, dtype=np.int64).ravel()
        dst = np.asarray(target, dtype=np.int64).ravel()
        byte = np.broadcast_to(np.asarray(size, dtype=np.float64), src.shape)
        n = len(work)
        if len(src) != len(dst):
            raise InvalidInput(f"{len(src)} sources but {len(dst)} targets", field="edges")
        for end in (src, dst):
            bad = np.flatnonzero((end < 0) | (end >= n))
            if len(bad):
                raise InvalidInput(
                    f"edge {int(bad[0])} names task {int(end[bad[0]])}, but there are {n} tasks", field="edges"
                )
        pair, first, inverse = np.unique(src * max(n, 1) + dst, return_index=True, return_inverse=True)
        if len(pair) != len(src):
            byte = np.bincount(inverse, weights=byte, minlength=len(pair)).astype(np.float64)
            src, dst = src[first], dst[first]
        order = np.lexsort((byte, src)) if shared_outputs else np.argsort(src, kind="stable")
        src, dst, byte = src[order], dst[order], byte[order]
        fresh = np.ones(len(src), dtype=bool)
        if shared_outputs and len(src):
            fresh[1:] = (np.diff(src) != 0) | (np.diff(byte) != 0)
        return TaskGraph(
            name=name,
            work_s=work,
            object_task=src[fresh].astype(np.int32),
            object_size=byte[fresh],
            read_task=dst.astype(np.int32),
            read_object=(np.cumsum(fresh) - 1).astype(np.int32),
            **attributes,
        )


def _check_tasks(graph: TaskGraph) -> None:
    n = graph.num_tasks
    if n == 0:
        raise InvalidInput("the graph has no tasks", field="tasks")
    if graph.task_names is not None and len(graph.task_names) != n:
        raise InvalidInput(f"{len(graph.task_names)} names for {n} tasks", field="task_names")
    columns: list[tuple[str, Floats | None, Range]] = [
        ("duration", graph.work_s, SECONDS if graph.kind_duration_s is None else _OR_NEVER),
        ("cores", graph.cores, CORES),
        ("memory_bytes", graph.memory_bytes, BYTES),
        ("resident_bytes", graph.resident_bytes, BYTES),
        ("gpus", graph.gpus, CORES),
        *((f"need of {name!r}", values, BYTES) for name, values in graph.other_needs.items()),
    ]
    for what, values, supported in columns:
        if values is None:
            continue
        if values.shape != (n,):
            raise InvalidInput(f"{what} has shape {values.shape}, expected ({n},)", field=what)
        bad = supported.first_outside(values)
        if bad is not None:
            raise InvalidInput(
                f"task {graph.task_name(bad)!r} has {what} {values[bad]}; {supported.why_not(values[bad])}", field=what
            )
    if graph.category is not None:
        if graph.category.shape != (n,):
            raise InvalidInput(f"category has shape {graph.category.shape}, expected ({n},)", field="category")
        if int(graph.category.min()) < 0 or int(graph.category.max()) >= len(graph.categories):
            raise InvalidInput(f"index out of range 0..{len(graph.categories) - 1}", field="category")
    table = graph.kind_duration_s
    if table is not None:
        if table.shape != (n, len(graph.kinds)):
            raise InvalidInput(
                f"durations have shape {table.shape}, expected ({n}, {len(graph.kinds)})", field="durations"
            )
        bad = _OR_NEVER.first_outside(table)
        if bad is not None:
            task, kind = divmod(bad, len(graph.kinds))
            value = float(table[task, kind])
            why = f"supported: {_OR_NEVER}" if value > 0 else "it must not be negative or NaN (inf = cannot run)"
            raise InvalidInput(
                f"task {graph.task_name(task)!r} has duration {value} on {graph.kinds[kind]}; {why}", field="durations"
            )


def _check_resources(graph: TaskGraph) -> None:
    resources = graph.resources
    if resources is None:
        return
    num_resources = len(resources.names)
    if resources.capacity.shape != (num_resources,) or resources.demand.shape != (graph.num_tasks, num_resources):
        raise InvalidInput("capacity and demand do not fit the tasks and resources", field="resources")
    over = np.argwhere((resources.demand > resources.capacity) | (resources.demand < 0))
    if len(over):
        task, resource = (int(index) for index in over[0])
        raise InvalidInput(
            f"task {graph.task_name(task)!r} needs {resources.demand[task, resource]} "
            f"of {resources.names[resource]!r}, which has {resources.capacity[resource]}",
            field="resources",
        )


def _check_objects(graph: TaskGraph) -> None:
    n, num_objects = graph.num_tasks, graph.num_objects
    if len(graph.object_size) != num_objects:
        raise InvalidInput(f"{len(graph.object_size)} sizes for {num_objects} objects", field="size")
    supported = BYTES if graph.transfer_unit == "bytes" else SECONDS
    bad = supported.first_outside(graph.object_size)
    if bad is not None:
        size = graph.object_size[bad]
        raise InvalidInput(
            f"an output of task {graph.task_name(int(graph.object_task[bad]))!r} has size {size}; "
            f"{supported.why_not(size)}",
            field="size",
        )
    for what, index, limit in (
        ("object_task", graph.object_task, n),
        ("read_task", graph.read_task, n),
        ("read_object", graph.read_object, num_objects),
    ):
        if len(index) and (int(index.min()) < 0 or int(index.max()) >= limit):
            raise InvalidInput(f"index out of range 0..{limit - 1}", field=what)
    if len(graph.read_task) != len(graph.read_object):
        raise InvalidInput("read_task and read_object differ in length", field="edges")
    if num_objects and bool(np.any(np.diff(graph.object_task) < 0)):
        raise InvalidInput("objects must be grouped by ascending producer", field="object_task")


def check_table(num_tasks: int, kinds: Sequence[str]) -> None:
    """Raise before a table of durations is made that would fill the memory."""
    if num_tasks * len(kinds) > MAX_TABLE:
        raise InvalidInput(
            f"{num_tasks:,} tasks with durations for {len(kinds):,} kinds of devices; "
            f"the table has at most {MAX_TABLE:,} entries",
            field="durations",
        )


def sequence_of(names: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """Return the distinct names in order of appearance, and each item's index among them."""
    index: dict[str, int] = {}
    codes = np.array([index.setdefault(name, len(index)) for name in names], dtype=np.int32)
    return tuple(index), codes

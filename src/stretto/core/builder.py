"""Build a task graph step by step, by task name; this is what the file readers use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from stretto.core.csr import Floats
from stretto.core.devices.weights import Weights
from stretto.core.graph import Resources, TaskGraph, TransferUnit, check_table, sequence_of
from stretto.errors import InvalidInput


class GraphBuilder:
    """Collects tasks, objects and reads, then makes the graph.

    Examples
    --------
    >>> build = GraphBuilder("pair")
    >>> a = build.task("a", 1.0)
    >>> b = build.task("b", 2.0)
    >>> build.edge(a, b, 1e6)
    >>> build.graph().num_edges
    1
    """

    def __init__(self, name: str = "graph", *, transfer_unit: TransferUnit = "bytes") -> None:
        self.name = name
        self.transfer_unit: TransferUnit = transfer_unit
        self.meta: dict[str, Any] = {}
        self.resources: Resources | None = None
        self._index: dict[str, int] = {}
        self._work: list[float] = []
        self._durations: list[Mapping[str, float] | None] = []
        self._cores: list[float] = []
        self._memory: list[float] = []
        self._resident: list[float] = []
        self._gpus: list[float] = []
        self._needs: list[Mapping[str, float]] = []
        self._category: list[str] = []
        self._object_task: list[int] = []
        self._object_size: list[float] = []
        self._reads: dict[tuple[int, int], None] = {}
        self._weight_bytes: list[float] = []
        self._weight_reads: dict[tuple[int, int], None] = {}

    @property
    def num_tasks(self) -> int:
        return len(self._work)

    def task(
        self,
        name: str,
        work_s: float,
        *,
        durations: Mapping[str, float] | None = None,
        cores: float = 0.0,
        memory_bytes: float = 0.0,
        resident_bytes: float = 0.0,
        gpus: float = 0.0,
        needs: Mapping[str, float] | None = None,
        category: str = "",
    ) -> int:
        """Add a task and return its index.

        Parameters
        ----------
        work_s
            Seconds on a device of speed 1.
        durations
            Measured seconds by device kind; ``inf`` = cannot run there. Kinds that are
            missing here while other tasks have them fall back to ``work_s``.
        cores, memory_bytes, gpus, needs
            What it holds while it runs; ``needs`` by the name of a resource. Zero means "not stated".
        """
        if name in self._index:
            raise InvalidInput("two tasks have the same name", field=f"task {name!r}")
        index = len(self._work)
        self._index[name] = index
        self._work.append(float(work_s))
        self._durations.append(durations)
        self._cores.append(float(cores))
        self._memory.append(float(memory_bytes))
        self._resident.append(float(resident_bytes))
        self._gpus.append(float(gpus))
        self._needs.append(needs or {})
        self._category.append(category)
        return index

    def find(self, name: str, *, wanted_by: str) -> int:
        """Return the index of a task named elsewhere, or raise saying who named it."""
        try:
            return self._index[name]
        except KeyError:
            raise InvalidInput(f"unknown task {name!r}", field=wanted_by) from None

    def __contains__(self, name: str) -> bool:
        return name in self._index

    def object(self, producer: int, size: float) -> int:
        """Add a data object that a task produces and return its handle."""
        self._object_task.append(producer)
        self._object_size.append(float(size))
        return len(self._object_task) - 1

    def read(self, task: int, handle: int) -> None:
        """Say that a task reads an object; saying it twice changes nothing."""
        self._reads[(handle, task)] = None

    def weight(self, size_bytes: float) -> int:
        """Add a weight, which stays on every device that runs a task which reads it, and return its handle."""
        self._weight_bytes.append(float(size_bytes))
        return len(self._weight_bytes) - 1

    def read_weight(self, task: int, handle: int) -> None:
        """Say that a task reads a weight; saying it twice changes nothing."""
        self._weight_reads[(task, handle)] = None

    def edge(self, source: int, target: int, size: float = 0.0) -> None:
        """Add a dependency with an object of its own."""
        self.read(target, self.object(source, size))

    def graph(self) -> TaskGraph:
        """Check everything and make the graph."""
        n = len(self._work)
        for handle, task in self._reads:
            if self._object_task[handle] == task:
                raise InvalidInput("the task depends on itself", field=f"task {list(self._index)[task]!r}")
        handles = np.array([handle for handle, _ in self._reads], dtype=np.int64)
        readers = np.array([task for _, task in self._reads], dtype=np.int32)
        producer = np.array(self._object_task, dtype=np.int32)
        order = np.argsort(producer, kind="stable")
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        kinds = tuple(dict.fromkeys(kind for row in self._durations if row for kind in row))
        table = None
        check_table(n, kinds)
        if kinds:
            table = np.array(
                [
                    [row.get(kind, work) if row else work for kind in kinds]
                    for row, work in zip(self._durations, self._work, strict=True)
                ],
                dtype=np.float64,
            )
        categories, category = sequence_of(self._category)
        return TaskGraph(
            name=self.name,
            work_s=np.array(self._work, dtype=np.float64),
            object_task=producer[order] if len(order) else np.zeros(0, dtype=np.int32),
            object_size=np.array(self._object_size, dtype=np.float64)[order] if len(order) else np.zeros(0),
            read_task=readers,
            read_object=rank[handles] if len(order) else np.zeros(0, dtype=np.int32),
            task_names=tuple(self._index),
            kinds=kinds,
            kind_duration_s=table,
            cores=_column(self._cores),
            memory_bytes=_column(self._memory),
            resident_bytes=_column(self._resident),
            gpus=_column(self._gpus),
            other_needs=self._other_needs(),
            categories=categories if categories != ("",) else (),
            category=category if n and categories != ("",) else None,
            transfer_unit=self.transfer_unit,
            resources=self.resources,
            meta=self.meta,
            weights=self._weights(),
        )

    def _weights(self) -> Weights | None:
        if not self._weight_bytes:
            return None
        pairs = np.array(list(self._weight_reads), dtype=np.int32).reshape(-1, 2)
        task, item = (np.ascontiguousarray(column) for column in pairs.T)
        return Weights(np.array(self._weight_bytes), task, item)

    def _other_needs(self) -> dict[str, Floats]:
        names = dict.fromkeys(name for needs in self._needs for name in needs)
        return {name: np.array([float(needs.get(name, 0.0)) for needs in self._needs]) for name in names}


def _column(values: list[float]) -> Floats | None:
    """Return the values as an array, or None when none of them says anything."""
    return np.array(values, dtype=np.float64) if any(value != 0 for value in values) else None

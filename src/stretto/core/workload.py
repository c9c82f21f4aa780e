"""A workload: several jobs, each a task graph that arrives at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stretto.core.graph import TaskGraph
from stretto.core.magnitudes import SECONDS
from stretto.errors import InvalidInput, UnknownName


@dataclass(frozen=True, eq=False)
class Job:
    """A graph with an arrival time."""

    graph: TaskGraph
    arrival_s: float = 0.0

    def __post_init__(self) -> None:
        if not (self.arrival_s >= 0 and np.isfinite(self.arrival_s)):
            raise InvalidInput(f"arrival {self.arrival_s} must be finite and not negative", field=self.graph.name)
        SECONDS.check(self.arrival_s, "arrival", field=self.graph.name)


@dataclass(frozen=True, eq=False)
class Workload:
    """Jobs in the order of their source."""

    name: str
    jobs: tuple[Job, ...]

    def __len__(self) -> int:
        return len(self.jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs)

    @property
    def num_tasks(self) -> int:
        return sum(job.graph.num_tasks for job in self.jobs)

    def select(self, name: str) -> TaskGraph:
        """Return the graph with this name, or with this index when it is a number."""
        for job in self.jobs:
            if job.graph.name == name:
                return job.graph
        if name.isdecimal() and int(name) < len(self.jobs):
            return self.jobs[int(name)].graph
        raise UnknownName(f"graph in {self.name!r}:", name, [job.graph.name for job in self.jobs[:200]])

    @staticmethod
    def of(
        graphs: Sequence[TaskGraph], *, arrivals_s: Sequence[float] | None = None, name: str = "workload"
    ) -> Workload:
        """Make a workload of graphs that arrive at the given times, or all at zero."""
        times = arrivals_s if arrivals_s is not None else [0.0] * len(graphs)
        if len(times) != len(graphs):
            raise InvalidInput(f"{len(times)} arrivals for {len(graphs)} graphs", field="arrivals_s")
        return Workload(name, tuple(Job(graph, float(time)) for graph, time in zip(graphs, times, strict=True)))

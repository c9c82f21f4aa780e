"""One plugin of each kind: a policy, a workload, a format and a strategy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.builder import GraphBuilder
from stretto.core.csr import Floats
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.planner import Budget, no_projects
from stretto.core.problem import Problem
from stretto.files.document import Document
from stretto.queues.strategies import Submitted


@dataclass(frozen=True)
class LeastLoaded:
    """Each task in topological order to the device that would be free first.

    Attributes
    ----------
    weight
        How much the task's own duration counts beside what the device already has to do.
    """

    weight: float = 1.0

    def supports(self, problem: Problem) -> str | None:
        return no_projects(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        duration = problem.device_duration  # [n, m]; inf where a task cannot run
        load = np.zeros(problem.num_devices)
        assignment = np.empty(problem.num_tasks, dtype=np.int32)
        for task in problem.arrays.topo:
            device = int(np.argmin(load + self.weight * duration[task]))
            assignment[task] = device
            load[device] += duration[task, device]
        return Plan(assignment, problem.arrays.topo.copy(), "work-conserving")


def zigzag(num_tasks: int = 10, *, work_s: float = 1.0) -> TaskGraph:
    """A chain in which each task also reads from the one before its predecessor."""
    build = GraphBuilder(f"zigzag-{num_tasks}")
    for number in range(num_tasks):
        build.task(f"t{number}", work_s)
    for number in range(1, num_tasks):
        for before in range(max(0, number - 2), number):
            build.edge(before, number, 1e6)
    return build.graph()


class Arrows:
    """Reads lines such as ``a > b``; every task takes one second."""

    summary = "Arrows: one 'a > b' per line"
    endings = ("arrows",)

    def matches(self, document: Document) -> bool:
        return b" > " in document.head and not document.head.lstrip().startswith((b"{", b"<", b"#"))

    def read(self, document: Document) -> TaskGraph:
        build = GraphBuilder("arrows")
        seen: dict[str, int] = {}
        for line, text in enumerate(document.text.splitlines(), start=1):
            words = text.split()
            if len(words) != 3 or words[1] != ">":
                document.fail(f"expected 'A > B', got {text[:60]!r}", line=line)
            for name in (words[0], words[2]):
                if name not in seen:
                    seen[name] = build.task(name, 1.0)
            build.edge(seen[words[0]], seen[words[2]], 0.0)
        return build.graph()


class NightOwls:
    """Jobs that were submitted between 22 and 6 o'clock go first."""

    summary = "jobs submitted at night first, then by arrival"

    def key(self, jobs: Submitted) -> Floats:
        hour = jobs.submit_s % 86400 / 3600
        return np.where((hour >= 22) | (hour < 6), 0.0, 1.0)


ARROWS = Arrows()
NIGHT_OWLS = NightOwls()

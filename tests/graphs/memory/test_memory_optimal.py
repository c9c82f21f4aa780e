"""A plan that waits for memory is not called optimal, whatever its policy said of it without limits."""

from __future__ import annotations

import numpy as np
import pytest

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Device
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.graphs.evaluate import within_memory
from stretto.graphs.simulator import simulate


def _problem(memory_bytes: float) -> tuple[Problem, Plan]:
    """Where memory is small, the data of ``reader`` can move to the second device only when ``big`` has ended there."""
    build = GraphBuilder("three")
    source = build.task("source", 1.0)
    reader = build.task("reader", 2.0)
    build.task("big", 3.0, memory_bytes=6.0)
    build.edge(source, reader, 4.0)
    devices = [Device("a", memory_bytes=100.0), Device("b", memory_bytes=memory_bytes)]
    problem = Problem.of(build.graph(), Cluster.uniform(devices, bandwidth=4.0))
    assignment, order = np.array([0, 1, 1], dtype=np.int32), np.array([2, 0, 1], dtype=np.int32)
    return problem, Plan(assignment, order, "sequence", {"optimal": True})


@pytest.mark.parametrize(("memory_bytes", "is_later"), [(100.0, False), (8.0, True)])
def test_the_word_stays_only_where_memory_costs_no_time(memory_bytes: float, is_later: bool) -> None:
    problem, plan = _problem(memory_bytes)
    within = within_memory(problem, plan)
    free_s = simulate(problem, plan, memory_limits=False).makespan_s
    assert (simulate(problem, within).makespan_s > free_s + 1e-9) == is_later
    assert bool(within.info.get("optimal")) != is_later

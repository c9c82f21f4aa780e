"""Random small problems for the simulator: many ties, zero durations, shared objects, links, memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Device, Links
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.workload import Workload

SMALL = st.sampled_from([0.0, 0.0, 1.0, 1.0, 2.0, 3.0, 0.1, 0.3, 2.7])
SIZES = st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.0, 5.0, 0.7])


@st.composite
def graphs(draw: st.DrawFn, max_tasks: int = 12, unit: str = "bytes", with_memory: bool = False) -> TaskGraph:
    """A graph whose tasks are in topological order, with objects that several tasks read."""
    n = draw(st.integers(1, max_tasks))
    build = GraphBuilder("g", transfer_unit=unit)  # type: ignore[arg-type]
    kinds = draw(st.booleans())
    byte = st.integers(0, 3).map(float) if with_memory else st.just(0.0)
    for t in range(n):
        work = draw(SMALL)
        measured = {"cpu": work, "gpu": draw(SMALL)} if kinds else None
        build.task(f"task{t}", work, durations=measured, memory_bytes=draw(byte), resident_bytes=draw(byte))
    for t in range(n - 1):
        for _ in range(draw(st.integers(0, 2))):
            handle = build.object(t, draw(SIZES))
            for reader in draw(st.lists(st.integers(t + 1, n - 1), max_size=4)):
                build.read(reader, handle)
    return build.graph()


@st.composite
def clusters(draw: st.DrawFn, with_links: bool = False, with_memory: bool = False) -> Cluster:
    """Devices of two kinds and two speeds, pair links of unequal bandwidth, some of them infinite."""
    m = draw(st.integers(1, 4))
    limit = st.integers(4, 40).map(float) if with_memory else st.just(np.inf)
    devices = tuple(
        Device(f"d{i}", draw(st.sampled_from(["cpu", "gpu"])), draw(st.sampled_from([1.0, 2.0])), draw(limit))
        for i in range(m)
    )
    rates = st.sampled_from([1.0, 1.0, 2.0, 0.7, np.inf])
    bandwidth = np.array([[draw(rates) for _ in range(m)] for _ in range(m)])
    latency = np.array([[draw(st.sampled_from([0.0, 0.0, 1.0, 0.1])) for _ in range(m)] for _ in range(m)])
    cluster = Cluster(devices, latency, bandwidth)
    return replace(cluster, links=draw(_links(m))) if with_links else cluster


@st.composite
def _links(draw: st.DrawFn, m: int) -> Links:
    num_links = draw(st.integers(1, 4))
    rates = st.sampled_from([1.0, 2.0, 3.0, 0.7, np.inf])
    routes = [draw(st.lists(st.integers(0, num_links - 1), max_size=3, unique=True)) for _ in range(m * m)]
    return Links(
        tuple(f"l{i}" for i in range(num_links)),
        np.array([draw(rates) for _ in range(num_links)]),
        np.cumsum([0] + [len(route) for route in routes]).astype(np.int32),
        np.array([link for route in routes for link in route], dtype=np.int32),
    )


@st.composite
def cases(
    draw: st.DrawFn, with_links: bool = False, with_memory: bool = False, topological: bool = False
) -> tuple[Problem, Plan]:
    """A problem and a plan for it; its order is a topological one or any."""
    unit = draw(st.sampled_from(["bytes", "bytes", "bytes", "seconds"]))
    cluster = draw(clusters(with_links, with_memory))
    if draw(st.booleans()):
        problem = Problem.of(draw(graphs(unit=unit, with_memory=with_memory)), cluster)
    else:
        parts = [draw(graphs(5, unit, with_memory)) for _ in range(2)]
        problem = Problem.of(Workload.of(parts, arrivals_s=[draw(SMALL), draw(SMALL)]), cluster)
    return problem, draw(plans(problem, topological))


@st.composite
def plans(draw: st.DrawFn, problem: Problem, topological: bool = False) -> Plan:
    allowed = np.isfinite(problem.device_duration)
    assignment = [draw(st.sampled_from(np.flatnonzero(row).tolist())) for row in allowed]
    order = list(range(problem.num_tasks))
    if not (topological or draw(st.booleans())):
        order = draw(st.permutations(order))
    return Plan(np.array(assignment, dtype=np.int32), np.array(order, dtype=np.int32), "work-conserving")

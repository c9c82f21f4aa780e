"""Small random problems for hypothesis, full of ties, zeros and devices that cannot run a task."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.core.workload import Workload


@st.composite
def problems(draw: st.DrawFn, max_tasks: int = 10, max_devices: int = 4) -> Problem:
    """Draw a problem whose numbers are sums of powers of two.

    Sums of them are exact in any order, so that a twin which adds in another order meets the
    same ties.
    """
    m = draw(st.integers(1, max_devices))
    jobs = [draw(graphs(m, max_tasks)) for _ in range(draw(st.integers(1, 2)))]
    latency = np.array(draw(st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=m * m, max_size=m * m)))
    bandwidth = np.array(draw(st.lists(st.sampled_from([0.5, 1.0, 4.0]), min_size=m * m, max_size=m * m)))
    devices = tuple(Device(f"d{i}", f"k{i}") for i in range(m))
    cluster = Cluster(devices, latency.reshape(m, m), bandwidth.reshape(m, m))
    if len(jobs) == 1:
        return Problem.of(jobs[0], cluster)
    return Problem.of(Workload.of(jobs, arrivals_s=[draw(st.sampled_from([0.0, 1.5])), 3.0]), cluster)


@st.composite
def graphs(draw: st.DrawFn, num_devices: int, max_tasks: int) -> TaskGraph:
    """Draw a graph whose task numbers are not always a topological order."""
    n = draw(st.integers(1, max_tasks))
    place = draw(st.permutations(range(n)))
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=2 * n, unique=True)) if pairs else []
    sizes = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=len(edges), max_size=len(edges)))
    span = st.sampled_from([0.0, 0.5, 1.0, 1.0, 2.0, 3.25, np.inf])
    table = np.array([draw(st.lists(span, min_size=num_devices, max_size=num_devices)) for _ in range(n)])
    table[~np.isfinite(table).any(axis=1), 0] = 1.0
    return TaskGraph.from_edges(
        np.ones(n),
        [place[a] for a, _ in edges],
        [place[b] for _, b in edges],
        sizes if edges else 0.0,
        shared_outputs=draw(st.booleans()),
        kinds=tuple(f"k{i}" for i in range(num_devices)),
        kind_duration_s=table,
    )


def random_problem(num_tasks: int, num_devices: int, seed: int, *, edges_per_task: float = 2.5) -> Problem:
    """Make a problem with arbitrary real numbers: related devices, links of different speed."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, num_tasks, (2, int(num_tasks * edges_per_task)))
    ends = np.unique(np.sort(ends[:, ends[0] != ends[1]], axis=0), axis=1)
    graph = TaskGraph.from_edges(rng.uniform(1, 100, num_tasks), *ends, rng.uniform(1, 100, ends.shape[1]))
    bandwidth = rng.uniform(1, 10, (num_devices, num_devices))
    return Problem.of(
        graph, Cluster.related(rng.uniform(1, 10, num_devices).tolist(), bandwidth=bandwidth, latency_s=0.3)
    )

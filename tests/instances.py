"""Small instances for tests: named ones, and a strategy that draws random problems."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.core.workload import Workload


@st.composite
def problems(draw: st.DrawFn, *, max_tasks: int = 14, max_devices: int = 4, free: bool = False) -> Problem:
    """Draw a problem with ties, zero lengths, shared outputs, kinds, "cannot run here" and releases."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_problem(rng, draw(st.integers(1, max_tasks)), draw(st.integers(1, max_devices)), free=free)


def random_problem(rng: np.random.Generator, n: int, m: int, *, free: bool = False) -> Problem:
    """Make a random problem whose small integers provoke ties."""
    graph = random_graph(rng, n, free=free)
    kinds = rng.choice(["cpu", "gpu"], size=m)
    if graph.kind_duration_s is not None and len(set(kinds)) == 2:  # both kinds are there: forbid some
        graph.kind_duration_s[rng.random(n) < 0.2, 0] = np.inf
    speeds = rng.choice([1.0, 1.0, 2.0, 0.5], size=m)
    devices = [Device(f"d{i}", str(kind), float(speed)) for i, (kind, speed) in enumerate(zip(kinds, speeds))]
    latency = rng.choice([0.0, 0.5, 1.0], size=(m, m))
    np.fill_diagonal(latency, 0.0)
    cluster = Cluster(tuple(devices), latency, rng.choice([1.0, 2.0, 4.0], size=(m, m)))
    if rng.random() < 0.2:
        return Problem.of(Workload.of([graph, random_graph(rng, 3, free=free)], arrivals_s=[0.0, 2.0]), cluster)
    return Problem.of(graph, cluster)


def random_graph(rng: np.random.Generator, n: int, *, free: bool = False) -> TaskGraph:
    """Make a random graph; tasks are renumbered so that indices are no topological order."""
    pairs = [(u, v) for v in range(n) for u in range(v) if rng.random() < 2.0 / max(2, v)]
    rename = rng.permutation(n)
    source = np.array([rename[u] for u, _ in pairs], dtype=np.int64)
    target = np.array([rename[v] for _, v in pairs], dtype=np.int64)
    size = np.zeros(len(pairs)) if free else rng.integers(0, 4, size=len(pairs)).astype(float)
    more: dict[str, Any] = {}
    if rng.random() < 0.5:
        table = rng.integers(0, 5, size=(n, 2)).astype(float)
        more = {"kinds": ("cpu", "gpu"), "kind_duration_s": table}
    return TaskGraph.from_edges(
        rng.integers(0, 5, size=n).astype(float), source, target, size, shared_outputs=bool(rng.random() < 0.5), **more
    )


def is_topological(problem: Problem, order: np.ndarray) -> bool:
    """Say whether the order is a permutation that respects every dependency."""
    rank = {int(task): at for at, task in enumerate(order)}
    source, target, _ = problem.graph.edges
    return sorted(rank) == list(range(problem.num_tasks)) and all(
        rank[int(u)] < rank[int(v)] for u, v in zip(source, target)
    )

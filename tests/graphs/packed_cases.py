"""Random small problems on nodes that pack: needs of several resources, mixed with devices, links and memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Device, Links
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.workload import Workload
from stretto.errors import Infeasible

_WORK = (0.0, 1.0, 1.0, 2.0, 3.0, 0.1, 0.3, 2.7)
_SIZES = (0.0, 1.0, 1.0, 2.0, 5.0, 0.7)
_CORES = (0.0, 0.5, 1.0, 1.0, 2.0, 3.0)


def random_graph(rng: np.random.Generator, num_tasks: int, *, with_memory: bool = False) -> TaskGraph:
    """A graph in topological order whose tasks need cores, GPUs, a license and perhaps memory."""
    build = GraphBuilder("packed")
    has_licenses = rng.random() < 0.3
    for t in range(num_tasks):
        build.task(
            f"task{t}",
            float(rng.choice(_WORK)),
            cores=float(rng.choice(_CORES)),
            gpus=float(rng.random() < 0.15),
            needs={"license": float(rng.integers(0, 2))} if has_licenses else None,
            memory_bytes=float(rng.integers(0, 4)) if with_memory else 0.0,
            resident_bytes=float(rng.integers(0, 3)) if with_memory else 0.0,
        )
    for t in range(num_tasks - 1):
        for _ in range(int(rng.integers(0, 3))):
            handle = build.object(t, float(rng.choice(_SIZES)))
            for reader in rng.integers(t + 1, num_tasks, int(rng.integers(0, 4))).tolist():
                build.read(reader, handle)
    return build.graph()


def random_nodes(rng: np.random.Generator, *, with_memory: bool = False, with_links: bool = False) -> Cluster:
    """One to four nodes and devices, at least one of them a node."""
    m = int(rng.integers(1, 5))
    devices = []
    for i in range(m):
        limit = float(rng.integers(6, 40)) if with_memory else np.inf
        speed = float(rng.choice((1.0, 2.0)))
        if i == m - 1 or rng.random() < 0.7:
            cores, gpus = float(rng.integers(3, 7)), float(rng.integers(1, 3))
            devices.append(
                Device(f"d{i}", "cpu", speed, limit, cores, packs=True, gpus=gpus, resources=(("license", 2.0),))
            )
        else:
            devices.append(Device(f"d{i}", "cpu", speed, limit))
    bandwidth = rng.choice((1.0, 1.0, 2.0, 0.7, np.inf), (m, m))
    latency = rng.choice((0.0, 0.0, 1.0, 0.1), (m, m))
    cluster = Cluster(tuple(devices), latency, bandwidth)
    return replace(cluster, links=_random_links(rng, m)) if with_links else cluster


def _random_links(rng: np.random.Generator, m: int) -> Links:
    num_links = int(rng.integers(1, 5))
    routes = [rng.permutation(num_links)[: int(rng.integers(0, min(3, num_links) + 1))].tolist() for _ in range(m * m)]
    return Links(
        tuple(f"l{i}" for i in range(num_links)),
        rng.choice((1.0, 2.0, 3.0, 0.7, np.inf), num_links),
        np.cumsum([0] + [len(route) for route in routes]).astype(np.int32),
        np.array([link for route in routes for link in route], dtype=np.int32),
    )


def random_problem(
    rng: np.random.Generator, max_tasks: int = 14, *, with_memory: bool = False, with_links: bool = False
) -> Problem:
    """A problem on nodes that every task fits; drawn again where one does not."""
    while True:
        cluster = random_nodes(rng, with_memory=with_memory, with_links=with_links)
        graph = random_graph(rng, int(rng.integers(1, max_tasks + 1)), with_memory=with_memory)
        try:
            if rng.random() < 0.7:
                return Problem.of(graph, cluster)
            other = random_graph(rng, 5, with_memory=with_memory)
            return Problem.of(Workload.of([graph, other], arrivals_s=[0.0, float(rng.choice(_WORK))]), cluster)
        except Infeasible:
            continue


def random_plan(rng: np.random.Generator, problem: Problem) -> Plan:
    """Any device that can run each task, and a topological order or, now and then, any order."""
    allowed = np.isfinite(problem.device_duration)
    assignment = [int(rng.choice(np.flatnonzero(row))) for row in allowed]
    order = np.arange(problem.num_tasks) if rng.random() < 0.8 else rng.permutation(problem.num_tasks)
    return Plan(np.array(assignment, dtype=np.int32), order.astype(np.int32), "work-conserving")

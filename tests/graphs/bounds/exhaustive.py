"""Oracles and instances for the tests of bounds: plain, slow and obvious."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from stretto.core.cluster import Cluster, Device
from stretto.core.graph import Resources, TaskGraph
from stretto.core.problem import Problem


def best_makespan(problem: Problem) -> float:
    """Try every order and every placement, without contention; only hopeless branches are cut."""
    arrays, duration = problem.arrays, problem.device_duration
    n, m = problem.num_tasks, problem.num_devices
    best = [np.inf]

    def arrival(task: int, target: int, finish: dict[int, float], device: dict[int, int]) -> float:
        ready = float(arrays.release[task])
        for read in range(arrays.in_ptr[task], arrays.in_ptr[task + 1]):
            source, size = int(arrays.in_task[read]), float(arrays.in_size[read])
            a = device[source]
            move = arrays.latency[a, target] + size * arrays.inv_bandwidth[a, target] if size > 0 else 0.0
            ready = max(ready, finish[source] + float(move))
        return ready

    def extend(finish: dict[int, float], device: dict[int, int], free: list[float]) -> None:
        longest = max(finish.values(), default=0.0)
        if longest >= best[0]:
            return
        if len(finish) == n:
            best[0] = longest
            return
        for task in range(n):
            reads = arrays.in_task[arrays.in_ptr[task] : arrays.in_ptr[task + 1]]
            if task in finish or any(int(source) not in finish for source in reads):
                continue
            for d in range(m):
                if np.isfinite(duration[task, d]):
                    end = max(arrival(task, d, finish, device), free[d]) + float(duration[task, d])
                    extend({**finish, task: end}, {**device, task: d}, [*free[:d], end, *free[d + 1 :]])

    extend({}, {}, [0.0] * m)
    return best[0]


def best_project_makespan(problem: Problem) -> float:
    """Try every order of a project with whole durations, each task as early as the resources allow."""
    resources, arrays = problem.graph.resources, problem.arrays
    assert resources is not None
    n, length = problem.num_tasks, problem.arrays.duration[:, 0].astype(int)
    horizon = int(length.sum()) + 1
    best = [horizon]

    def extend(finish: dict[int, int], usage: np.ndarray) -> None:
        longest = max(finish.values(), default=0)
        if longest >= best[0]:
            return
        if len(finish) == n:
            best[0] = longest
            return
        for task in range(n):
            reads = arrays.in_task[arrays.in_ptr[task] : arrays.in_ptr[task + 1]]
            if task in finish or any(int(source) not in finish for source in reads):
                continue
            begin = max((finish[int(source)] for source in reads), default=0)
            while (usage[begin : begin + length[task]] + resources.demand[task] > resources.capacity).any():
                begin += 1
            after = usage.copy()
            after[begin : begin + length[task]] += resources.demand[task]
            extend({**finish, task: begin + int(length[task])}, after)

    extend({}, np.zeros((horizon + 1, len(resources.capacity)), dtype=int))
    return float(best[0])


@st.composite
def small_problems(draw: st.DrawFn, max_tasks: int = 6, max_devices: int = 3, whole: bool | None = None) -> Problem:
    """Graphs with shared objects on unlike devices: some tasks fit some devices only, some links are slow."""
    n, m = draw(st.integers(1, max_tasks)), draw(st.integers(1, max_devices))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    is_whole = draw(st.booleans()) if whole is None else whole
    num_kinds = draw(st.integers(1, m))
    kinds = tuple(f"k{i}" for i in range(num_kinds))
    duration = rng.integers(0, 9, (n, num_kinds)) if is_whole else rng.uniform(0, 3, (n, num_kinds))
    table = duration.astype(np.float64)
    if draw(st.booleans()):
        table[rng.random(table.shape) < 0.2] = np.inf
        table[:, 0] = np.where(np.isfinite(table).any(axis=1), table[:, 0], 1.0)
    pairs = [(u, v) for v in range(n) for u in range(v) if rng.random() < 0.45]
    size = rng.integers(0, 4, len(pairs)).astype(np.float64) * draw(st.sampled_from([0.0, 1.0, 3.0]))
    graph = TaskGraph.from_edges(
        np.ones(n),
        [u for u, _ in pairs],
        [v for _, v in pairs],
        size,
        shared_outputs=draw(st.booleans()),
        kinds=kinds,
        kind_duration_s=table,
    )
    devices = tuple(Device(f"d{i}", kinds[i % num_kinds]) for i in range(m))
    latency = rng.integers(0, 3, (m, m)).astype(np.float64) if draw(st.booleans()) else np.zeros((m, m))
    np.fill_diagonal(latency, 0.0)
    bandwidth = 1.0 / rng.integers(1, 4, (m, m)) if draw(st.booleans()) else np.ones((m, m))
    if is_whole:
        bandwidth = np.where(bandwidth == 1.0, 1.0, 0.5)
    return Problem.of(graph, Cluster(devices, latency, np.ascontiguousarray(bandwidth)))


@st.composite
def small_projects(draw: st.DrawFn, max_tasks: int = 6) -> Problem:
    """Projects of a few tasks on one or two resources."""
    n, num_resources = draw(st.integers(1, max_tasks)), draw(st.integers(1, 2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pairs = [(u, v) for v in range(n) for u in range(v) if rng.random() < 0.3]
    capacity = rng.integers(1, 5, num_resources).astype(np.int32)
    demand = rng.integers(0, capacity + 1, (n, num_resources)).astype(np.int32)
    graph = TaskGraph.from_edges(
        rng.integers(0, 6, n),
        [u for u, _ in pairs],
        [v for _, v in pairs],
        resources=Resources(tuple(f"R{i}" for i in range(num_resources)), capacity, demand),
    )
    return Problem.of(graph, Cluster.parse("cpu:1"))


def stg_members(data: Path, num_devices: int) -> list[tuple[str, float, float]]:
    """Return the name and the known range of the optimum of each graph of STG 50."""
    with tarfile.open(data / "taskgraphs" / "stg-50.tar.gz") as tar:
        file = tar.extractfile(f"Optimal_values/Case50_{num_devices}_OPT.csv")
        assert file is not None
        rows = [line.split(",") for line in file.read().decode().splitlines() if line.strip()]
    return [(row[0], float(row[2]), float(row[-1])) for row in rows]


def stg_graphs(data: Path) -> dict[str, TaskGraph]:
    """Return the graphs of STG 50 by name."""
    with tarfile.open(data / "taskgraphs" / "stg-50.tar.gz") as tar:
        texts = {
            member.name: file.read().decode()
            for member in tar
            if member.name.endswith(".stg") and (file := tar.extractfile(member)) is not None
        }
    graphs = {}
    for name, text in texts.items():
        rows = [[int(x) for x in line.split()] for line in text.splitlines() if line.strip() and line[0] != "#"][1:]
        edges = [(source, row[0]) for row in rows for source in row[3 : 3 + row[2]]]
        graphs[name] = TaskGraph.from_edges([row[1] for row in rows], *zip(*edges, strict=True), name=name)
    return graphs


def psplib_projects(data: Path, names: list[str]) -> list[Problem]:
    """Return j30 projects by file name."""
    with zipfile.ZipFile(data / "taskgraphs" / "psplib-j30.sm.zip") as archive:
        texts = [io.TextIOWrapper(archive.open(name), "ascii").read() for name in names]
    problems = []
    for text in texts:
        body = [section.splitlines() for section in text.split("*" * 72)]
        jobs, needs, limits = (
            [[int(x) for x in line.split()] for line in part if line.split() and line.split()[0].isdigit()]
            for part in body
            if part[1:2] and part[1].startswith(("PRECEDENCE", "REQUESTS", "RESOURCEAVAIL"))
        )
        edges = [(row[0] - 1, target - 1) for row in jobs for target in row[3:]]
        resources = Resources(
            tuple(f"R{i}" for i in range(len(limits[0]))),
            np.array(limits[0], dtype=np.int32),
            np.array([row[3:] for row in needs], dtype=np.int32),
        )
        graph = TaskGraph.from_edges([row[2] for row in needs], *zip(*edges, strict=True), resources=resources)
        problems.append(Problem.of(graph, Cluster.parse("cpu:1")))
    return problems


def psplib_optima(data: Path) -> dict[str, float]:
    """Return the proven makespans of j30 by file name."""
    rows = (line.split() for line in (data / "taskgraphs" / "psplib-j30opt.sm").read_text().splitlines())
    return {
        f"j30{row[0]}_{row[1]}.sm": float(row[2])
        for row in rows
        if len(row) == 4 and row[0].isdigit() and row[1].isdigit()
    }

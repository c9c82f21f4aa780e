"""Instances of the league drawn by a seed: graphs that nobody has chosen, on machines that nobody has chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from doppler_graphs import DATA, Instance
from league_instances import FILES

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.errors import StrettoError
from stretto.files.load import load
from stretto.graphs.workloads.generate import generate
from stretto.graphs.workloads.random_cluster import random_cluster

Generator = np.random.Generator
Draw = Callable[[Generator], dict[str, Any]]

#: Workloads, and how their arguments are drawn: some 100 to 3,000 tasks.
WORKLOADS: dict[str, Draw] = {
    "random-dag": lambda rng: {"num_tasks": _size(rng, 100, 3000), "ccr": _log(rng, 0.1, 10)},
    "erdos-renyi": lambda rng: {"num_tasks": _size(rng, 100, 2000), "ccr": _log(rng, 0.1, 10)},
    "series-parallel": lambda rng: {"num_tasks": _size(rng, 100, 2000), "ccr": _log(rng, 0.1, 10)},
    "cholesky": lambda rng: {"num_tiles": _size(rng, 8, 22)},
    "lu": lambda rng: {"num_tiles": _size(rng, 7, 19)},
    "qr": lambda rng: {"num_tiles": _size(rng, 7, 19)},
    "fft": lambda rng: {"num_points": 2 ** _size(rng, 4, 8)},
    "gaussian-elimination": lambda rng: {"num_columns": _size(rng, 14, 60)},
    "stencil": lambda rng: {"num_cells": _size(rng, 10, 50), "num_steps": _size(rng, 8, 40)},
    "wavefront": lambda rng: {"num_rows": _size(rng, 10, 45), "num_columns": _size(rng, 10, 45)},
    "fork-join": lambda rng: {"width": _size(rng, 10, 80), "num_stages": _size(rng, 3, 15)},
    "map-reduce": lambda rng: {"num_maps": _size(rng, 50, 400), "num_reduces": _size(rng, 4, 24)},
    "in-tree": lambda rng: {"depth": _size(rng, 6, 9)},
    "out-tree": lambda rng: {"depth": _size(rng, 6, 9)},
    "montage": lambda rng: {"num_images": _size(rng, 20, 200)},
    "epigenomics": lambda rng: {"num_lanes": _size(rng, 2, 8), "num_chunks": _size(rng, 8, 60)},
    "cybershake": lambda rng: {"num_ruptures": _size(rng, 4, 20), "num_variations": _size(rng, 8, 50)},
    "transformer": lambda rng: {"num_layers": _size(rng, 1, 6), "num_shards": _size(rng, 4, 12)},
}
#: Files that are neither in the league nor too small, by folder.
PATTERNS = {"dataflow": ("pipedream-*", "onnx-*"), "wfformat": ("*.json.gz",)}
_LEAST_TASKS, _MOST_TASKS = 100, 4000


def drawn(seed: int, number: int) -> Iterator[Instance]:
    """Yield instances: two of three generated, each workload once before any comes again, one of three from a file."""
    rng = np.random.default_rng([seed, 0x1EA])
    names = [str(name) for name in rng.permutation(list(WORKLOADS))]
    files = _files(rng)
    for count in range(number):
        if count % 3 == 2:
            family, graph = next(files)
        else:
            family = names[(count - count // 3) % len(names)]
            graph = _generated(family, rng)
        yield Instance(family, f"{seed}.{count}-{graph.name[:24]}-{graph.num_tasks}", _problem(graph, rng))


def _generated(workload: str, rng: Generator) -> TaskGraph:
    made = generate(workload, **WORKLOADS[workload](rng), seed=int(rng.integers(2**31)))
    assert isinstance(made, TaskGraph), workload
    return made


def _files(rng: Generator) -> Iterator[tuple[str, TaskGraph]]:
    """Yield graphs of files in random order, the two folders in turn."""
    used = {file for _, file, _ in FILES.values()}
    found = {
        folder: [path for pattern in patterns for path in sorted((DATA / folder).glob(pattern))]
        for folder, patterns in PATTERNS.items()
    }
    orders = {folder: iter(rng.permutation(len(paths)).tolist()) for folder, paths in found.items()}
    while True:
        for folder, order in orders.items():
            for number in order:
                path = found[folder][number]
                graph = None if path.name in used else _read(path)
                if graph is not None and _LEAST_TASKS <= graph.num_tasks <= _MOST_TASKS:
                    yield folder, graph
                    break


def _read(path: Any) -> TaskGraph | None:
    try:
        graph = load(path)
    except StrettoError:
        return None
    return graph if isinstance(graph, TaskGraph) else None


def _problem(graph: TaskGraph, rng: Generator) -> Problem:
    """Put a graph on a machine on which moving data costs some of the time of computing it."""
    num_devices, seed = int(rng.choice([4, 6, 8, 12, 16, 32])), int(rng.integers(2**31))
    if graph.kinds and graph.kind_duration_s is not None:
        gpus = max(1, num_devices // 4)
        return Problem.of(graph, Cluster.parse(f"cpu:{num_devices - gpus},gpu:{gpus}@{_size(rng, 4, 32)}GB/s"))
    speeds, links = float(rng.choice([1.0, 2.0, 8.0])), float(rng.choice([1.0, 4.0]))
    moved, work = float(graph.object_size.sum()), float(graph.work_s.sum())
    bandwidth = moved / work / _log(rng, 0.05, 2.0) if moved > 0 and work > 0 else 1e9
    return Problem.of(
        graph, random_cluster(num_devices, seed=seed, speed_spread=speeds, link_spread=links, bandwidth=bandwidth)
    )


def _size(rng: Generator, low: int, high: int) -> int:
    return round(_log(rng, low, high))


def _log(rng: Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))

"""Arguments that would fill the memory are refused before anything is made."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from stretto.errors import InvalidInput
from stretto.graphs.workloads.generate import generate
from stretto.graphs.workloads.random_cluster import random_cluster
from stretto.queues.workloads.fitted_trace import fitted
from stretto.queues.workloads.lublin import lublin

HUGE = [
    ("cholesky", {"num_tiles": 100_000}),
    ("lu", {"num_tiles": 100_000}),
    ("qr", {"num_tiles": 100_000}),
    ("stencil", {"num_cells": 10**6, "num_steps": 10**6}),
    ("wavefront", {"num_rows": 10**6, "num_columns": 10**6}),
    ("fork-join", {"width": 10**9}),
    ("map-reduce", {"num_maps": 10**6, "num_reduces": 10**6}),
    ("gaussian-elimination", {"num_columns": 10**6}),
    ("fft", {"num_points": 2**29}),
    ("in-tree", {"depth": 60}),
    ("in-tree", {"depth": 10**8, "arity": 10**8}),
    ("out-tree", {"depth": 10**9, "arity": 1}),
    ("montage", {"num_images": 10**9}),
    ("cybershake", {"num_ruptures": 10**5, "num_variations": 10**5}),
    ("epigenomics", {"num_lanes": 10**5, "num_chunks": 10**5}),
    ("random-dag", {"num_tasks": 10**9}),
    ("random-dag", {"num_tasks": 10**12}),
    ("random-dag", {"num_tasks": 1000, "edges_per_task": 1e300}),
    ("erdos-renyi", {"num_tasks": 10**8}),
    ("erdos-renyi", {"num_tasks": 10**6, "edges_per_task": 10**6}),
    ("series-parallel", {"num_tasks": 10**9}),
    ("chain-matmul", {"grid": 10**4}),
    ("ffnn", {"num_shards": 10**9}),
    ("transformer", {"num_shards": 10**5, "num_chunks": 10**5}),
    ("chainmm", {"size": 10**8, "row_parts": 10**8}),
]


@pytest.mark.parametrize(("name", "params"), HUGE)
def test_a_graph_beyond_memory_is_refused(name: str, params: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="at most"):
        generate(name, **params)


def test_traces_and_clusters_beyond_memory_are_refused() -> None:
    with pytest.raises(InvalidInput, match="must be at most 1,000,000,000"):
        lublin(10**12, seed=0)
    with pytest.raises(InvalidInput, match=r"num_jobs = 100000000 would make 1e\+08 jobs; at most 20,000,000"):
        lublin(10**8, seed=0)
    with pytest.raises(InvalidInput, match="at most 20,000,000"):
        fitted(lublin(20, seed=0), 10**8, seed=0)
    with pytest.raises(InvalidInput, match="at most 10,000"):
        random_cluster(10**6)


def test_the_command_line_says_so_with_little_memory() -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))

    command = [sys.executable, "-P", "-m", "stretto.cli.main", "show", "workload:cholesky?num_tiles=100000"]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, check=False, timeout=120)
    assert done.returncode == 2
    assert "num_tiles = 100000 would make 1.67e+14 tasks; at most 2,000,000" in " ".join(done.stderr.split())

"""Problems that would not fit into memory are refused before any of it is taken."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from stretto.core import problem_size
from stretto.core.cluster import Cluster
from stretto.core.host.memory_limit import machine_memory_bytes, process_memory_bytes
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.files.clusters.cluster_toml import read_cluster
from stretto.files.document import Document
from stretto.graphs.workloads.random_dag import random_dag

_GIB = 2**30


@pytest.fixture
def one_gib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem_size, "process_memory_bytes", lambda: _GIB)


@pytest.mark.usefixtures("one_gib")
def test_too_many_devices_are_refused() -> None:
    assert Cluster.parse("cpu:2000").num_devices == 2000
    with pytest.raises(InvalidInput, match=r"5,000 devices need about 1\.9 GiB.*half of the 1\.0 GiB"):
        Cluster.parse("cpu:5000")
    with pytest.raises(InvalidInput, match="5,000 devices"):
        read_cluster(Document("cluster", b'[[machine]]\nname = "m"\n[[machine.device]]\nkind = "cpu"\ncount = 5000\n'))


@pytest.mark.usefixtures("one_gib")
def test_tasks_times_devices_are_limited() -> None:
    graph = random_dag(num_tasks=50_000, seed=0)
    Problem.of(graph, Cluster.parse("cpu:100"))
    with pytest.raises(InvalidInput, match=r"50,000 tasks on 700 devices need about 0\.6 GiB"):
        Problem.of(graph, Cluster.parse("cpu:700"))


def test_the_limit_of_the_process_counts() -> None:
    words = "from stretto.core.host.memory_limit import process_memory_bytes as f; print(f())"
    done = subprocess.run(
        [sys.executable, "-c", words],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (3 * _GIB, 3 * _GIB)),
    )
    assert int(done.stdout) == min(3 * _GIB, machine_memory_bytes())
    assert process_memory_bytes() <= machine_memory_bytes()

"""Dask clusters for tests: quick ones inside this process, and real ones with a process for each worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from dask_graphs import named_cluster


@pytest.fixture
def inproc() -> Iterator[tuple[Any, Any]]:
    """A cluster of three workers a, b, c in this process, and a client."""
    from distributed import Client

    with named_cluster(["a", "b", "c"], processes=False) as cluster, Client(cluster, set_as_default=True) as client:
        yield cluster, client


@pytest.fixture(scope="module")
def processes() -> Iterator[tuple[Any, Any]]:
    """A cluster of two workers a, b in processes of their own, and a client."""
    from distributed import Client

    with named_cluster(["a", "b"], processes=True) as cluster, Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2)
        yield cluster, client

"""Dask clusters for tests: quick ones inside this process, and real ones with a process for each worker."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("distributed")


@contextmanager
def named_cluster(names: list[str], *, processes: bool) -> Iterator[Any]:
    """Start a scheduler and one worker of one thread for each name."""
    from distributed import Nanny, Scheduler, SpecCluster, Worker

    host = {"host": "127.0.0.1"} if processes else {"protocol": "inproc"}
    options: dict[str, Any] = {"nthreads": 1, "memory_limit": 0, "dashboard": False, **host}
    if processes:
        options["silence_logs"] = logging.CRITICAL
    workers = {name: {"cls": Nanny if processes else Worker, "options": options} for name in names}
    scheduler = {"cls": Scheduler, "options": {"dashboard": False, "dashboard_address": ":0", "port": 0, **host}}
    with SpecCluster(scheduler=scheduler, workers=workers, silence_logs=logging.CRITICAL) as cluster:
        yield cluster


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

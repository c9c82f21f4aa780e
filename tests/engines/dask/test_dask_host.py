"""Dispatchers that watch the host, on Dask: as an engine of runs, and in the scheduler of a client."""

from __future__ import annotations

import pytest

pytest.importorskip("distributed")

import stretto
from stretto.core.graph import TaskGraph
from stretto.engines.engine import RunOptions
from stretto.engines.host.dispatcher import HostDispatcher
from stretto.engines.work import Call, Work


def test_a_run_on_dask_is_placed_by_symphony():
    graph = TaskGraph.from_edges([0.01] * 8, [0, 1], [7, 7])
    work = Work(graph, tuple(Call(lambda *inputs, n=number: n) for number in range(8)))
    options = RunOptions(dispatch="symphony", keep="all")
    found = stretto.run(work, "cpu:2", engine="dask", options=options).check()
    assert found.outputs == {number: number for number in range(8)}
    assert found.attempts.tolist() == [1] * 8
    assert not any("greedy decided" in note for note in found.notes)


def test_the_late_dispatcher_of_a_client_is_symphony():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
        stretto.dask.dispatch(client, HostDispatcher()) as report,
    ):
        parts = [client.submit(lambda x: x + 1, number, pure=False) for number in range(6)]
        total = client.submit(sum, parts)
        assert total.result(timeout=60) == 21
    assert report.num_tasks >= 6

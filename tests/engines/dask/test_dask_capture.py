"""What a Dask cluster ran comes back as a graph and a cluster that planners read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dask_graphs import mark, random_graph, run_all

import stretto
from stretto.engines.dask.capture import Ran, Sent, fit_graph, fit_link
from stretto.errors import InvalidInput


def test_the_captured_graph_is_the_graph_that_ran(inproc: tuple[Any, Any]) -> None:
    _, client = inproc
    graph = random_graph(50, seed=1)
    with stretto.dask.capture(client) as seen:
        run_all(client, graph, 0.004)
    found = seen.graph
    assert sorted(found.task_names or ()) == sorted(graph.task_names or ())
    assert _pairs(found) == _pairs(graph)
    assert (found.work_s >= 0.004).all()
    assert found.categories == ("mark",)
    assert [device.name for device in seen.cluster.devices] == ["a", "b", "c"]


def _pairs(graph: stretto.TaskGraph) -> set[tuple[str, str]]:
    source, target, _ = graph.edges
    return {(graph.task_name(u), graph.task_name(v)) for u, v in zip(source.tolist(), target.tolist())}


def test_bytes_and_kinds_are_measured(processes: tuple[Any, Any], tmp_path: Path) -> None:
    _, client = processes
    with stretto.dask.capture(client, kinds={"a": "old", "b": "new"}) as seen:
        sent = [client.submit(bytes, 200_000 + at, workers=["a"], pure=False) for at in range(6)]
        sizes = [client.submit(len, data, workers=["b"], pure=False) for data in sent]
        assert [future.result() for future in sizes] == [200_000 + at for at in range(6)]
    graph = seen.graph
    assert graph.kinds == ("old", "new")
    made = graph.object_size[np.isin(graph.object_task, [t for t in range(12) if graph.category_name(t) == "bytes"])]
    assert sorted(made)[0] >= 200_000
    assert sum(transfer.size_bytes for transfer in seen.sent) >= 6 * 200_000
    assert {(transfer.source, transfer.target) for transfer in seen.sent} == {("a", "b")}
    seen.save(tmp_path / "ran.json", tmp_path / "lab.toml")
    result = stretto.plan(tmp_path / "ran.json", tmp_path / "lab.toml", "heft")
    assert result.problem.num_tasks == 12
    assert {device.kind for device in result.problem.cluster.devices} == {"old", "new"}


def test_a_captured_run_informs_the_next(inproc: tuple[Any, Any]) -> None:
    _, client = inproc
    graph = random_graph(30, seed=2)
    with stretto.dask.capture(client) as seen:
        run_all(client, graph, 0.001)
    plan = stretto.plan(seen.graph, seen.cluster, "heft").plan
    with stretto.dask.schedule(client, plan=(seen.graph, seen.cluster, plan)) as report:
        ran = run_all(client, graph)
    assert report.num_tasks == 30
    planned = {seen.graph.task_name(t): seen.cluster.devices[d].name for t, d in enumerate(plan.assignment)}
    assert {f"mark-{number}": worker for number, worker, _, _ in ran} == planned


def test_only_this_client_s_tasks_are_recorded(inproc: tuple[Any, Any]) -> None:
    from distributed import Client

    cluster, client = inproc
    with stretto.dask.capture(client) as seen, Client(cluster, set_as_default=False) as other:
        other.submit(mark, 1, 0.0, pure=False).result()
        client.submit(mark, 2, 0.0, key="mine").result()
    assert [task.key for task in seen.ran] == ["mine"]


def test_nothing_captured_says_so(inproc: tuple[Any, Any]) -> None:
    _, client = inproc
    with stretto.dask.capture(client) as seen:
        pass
    with pytest.raises(InvalidInput, match="nothing ran"):
        _ = seen.graph
    with pytest.raises(InvalidInput, match="'x'"), stretto.dask.capture(client, kinds={"x": "cpu"}):
        pass


def test_unseen_kinds_are_filled_in_by_prefix_and_then_by_ratio() -> None:
    def ran(key: str, prefix: str, kind: str, seconds: float) -> Ran:
        return Ran(key, prefix, (), "w", kind, 0.0, seconds, 0.0)

    graph = fit_graph(
        [ran("f-1", "f", "slow", 4.0), ran("f-2", "f", "fast", 1.0), ran("g-1", "g", "slow", 8.0)], "three"
    )
    assert graph.kind_duration_s is not None
    assert graph.kind_duration_s.tolist() == [[4.0, 1.0], [4.0, 1.0], [8.0, 2.0]]


def test_the_line_through_transfers_is_found() -> None:
    sizes = np.array([1e3, 1e5, 1e6, 2e6, 5e6, 1e7])
    latency_s, bandwidth = fit_link([Sent("a", "b", 0.002 + size / 5e7, size) for size in sizes])
    assert latency_s == pytest.approx(0.002, rel=1e-6)
    assert bandwidth == pytest.approx(5e7, rel=1e-6)
    assert fit_link([]) == (1e-3, 1e8)


def test_times_that_grow_by_rounding_alone_are_latency() -> None:
    sizes = [1e4, 2e4, 3e4, 4e4, 5e4, 6e4]
    latency, bandwidth = fit_link([Sent("a", "b", 0.5 + 1e-20 * size + 1e-12 * (size > 3e4), size) for size in sizes])
    assert (latency, bandwidth) == (pytest.approx(0.5), 1e8), "a fitted 1e16 bytes/s would be no link"

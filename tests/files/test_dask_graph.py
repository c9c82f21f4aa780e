"""Task graphs of live Dask collections."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

from stretto.core.graph import TaskGraph
from stretto.errors import InvalidInput
from stretto.files.graphs.dask_graph import DEFAULT_DURATION_S, from_dask

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")


def edges(graph: TaskGraph) -> set[tuple[str, str]]:
    source, target, _ = graph.edges
    return {(graph.task_name(int(s)), graph.task_name(int(t))) for s, t in zip(source, target, strict=True)}


def test_a_dict_of_tasks() -> None:
    graph = from_dask({"data": 3, "b": (operator.neg, "data"), "c": (operator.add, "b", "b"), "same": "c"})
    assert graph.task_names == ("b", "c")
    assert edges(graph) == {("b", "c")}
    assert graph.work_s.tolist() == [DEFAULT_DURATION_S] * 2
    assert graph.meta["num_data"] == 1


def test_delayed_functions_with_durations_and_sizes_by_prefix() -> None:
    @dask.delayed
    def load(number: int) -> int:
        return number

    @dask.delayed
    def total(parts: list[int]) -> int:
        return sum(parts)

    result = total([load(number) for number in range(3)])
    graph = from_dask(result, durations={"load": 2.0, "total": 0.5}, sizes={"load": 100.0}, default_duration_s=9.0)
    names = [graph.category_name(t) for t in range(graph.num_tasks)]
    assert sorted(names) == ["load", "load", "load", "total"]
    assert dict(zip(names, graph.work_s, strict=True)) == {"load": 2.0, "total": 0.5}
    assert graph.num_edges == 3
    assert set(graph.edges[2]) == {100.0}


@pytest.mark.parametrize("optimize", [True, False])
def test_array_chunks_know_their_bytes(optimize: bool) -> None:
    array = da.ones((100, 60), chunks=((50, 50), (40, 20)), dtype="float32")
    result = (array + 1).rechunk({0: 100})
    graph = from_dask(result, optimize=optimize)
    assert graph.meta["num_unknown_sizes"] == 0
    # What travels are chunks of the first array or their sum, whether fused or not.
    assert set(graph.edges[2].tolist()) <= {4.0 * 50 * 40, 4.0 * 50 * 20}
    last = np.bincount(graph.edges[0], minlength=graph.num_tasks) == 0
    assert sorted(graph.object_size[last[graph.object_task]].tolist()) == [4.0 * 100 * 20, 4.0 * 100 * 40]


def test_sizes_that_dask_does_not_know_are_counted() -> None:
    graph = from_dask(dask.delayed(abs)(dask.delayed(operator.neg)(3)), sizes={"neg": 8.0})
    assert graph.meta["num_unknown_sizes"] == 1
    assert sorted(graph.object_size) == [0.0, 8.0]


def test_the_graph_is_what_dask_would_run() -> None:
    array = da.random.default_rng(1).normal(size=(40, 40), chunks=20)
    result = (array @ array.T).mean()
    graph = from_dask(result)
    assert graph.num_tasks >= 4
    # Exactly one task has no readers: the mean itself.
    assert int(np.sum(np.bincount(graph.edges[0], minlength=graph.num_tasks) == 0)) == 1
    assert from_dask(result, optimize=False).num_tasks >= graph.num_tasks


def test_several_collections_share_their_tasks() -> None:
    base = dask.delayed(operator.neg)(1)
    left, right = dask.delayed(abs)(base), dask.delayed(str)(base)
    graph = from_dask([left, right])
    assert graph.num_tasks == 3
    assert graph.num_objects == 3
    assert graph.num_edges == 2


@pytest.mark.parametrize("wrong", [3, "text", [1, 2]])
def test_other_things_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="not a Dask collection"):
        from_dask(wrong)


def test_cycles_are_refused() -> None:
    with pytest.raises(InvalidInput, match="cycle"):
        from_dask({"a": (operator.neg, "b"), "b": (operator.neg, "a")})

"""Unrelated durations: the asked spread, and always somewhere to run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.errors import InvalidInput
from stretto.workloads import random_dag, unrelated


@settings(max_examples=50, deadline=None)
@given(
    num_kinds=st.integers(1, 5),
    seed=st.integers(0, 99),
    heterogeneity=st.floats(0, 1),
    forbid=st.floats(0, 1),
    method=st.sampled_from(["range", "cvb"]),
)
def test_every_task_runs_somewhere(num_kinds: int, seed: int, heterogeneity: float, forbid: float, method: str) -> None:
    graph = random_dag(40)
    kinds = [f"k{i}" for i in range(num_kinds)]
    given_kinds = unrelated(
        graph,
        kinds,
        seed=seed,
        heterogeneity=heterogeneity,
        forbid=forbid,
        method=method,  # type: ignore[arg-type]
    )
    table = given_kinds.kind_duration_s
    assert table is not None
    assert given_kinds.kinds == tuple(kinds)
    assert np.isfinite(table).any(axis=1).all()
    assert np.array_equal(given_kinds.read_task, graph.read_task)
    if method == "range":
        factor = (table / graph.work_s[:, None])[np.isfinite(table)]
        assert np.all(np.abs(factor - 1) <= heterogeneity + 1e-9)


@pytest.mark.parametrize(("method", "spread"), [("range", 0.6 / np.sqrt(3)), ("cvb", 0.6)])
def test_spread_and_mean(method: str, spread: float) -> None:
    graph = random_dag(20_000)
    table = unrelated(graph, ["a", "b", "c"], heterogeneity=0.6, seed=1, method=method).kind_duration_s  # type: ignore[arg-type]
    assert table is not None
    factor = table / graph.work_s[:, None]
    assert factor.mean() == pytest.approx(1, rel=0.01)
    assert factor.std() == pytest.approx(spread, rel=0.02)
    assert abs(np.corrcoef(factor.T)[0, 1]) < 0.03  # kinds are independent: no common speed


def test_forbid_is_the_share() -> None:
    table = unrelated(random_dag(20_000), list("abcd"), forbid=0.3, seed=2).kind_duration_s
    assert table is not None
    # A task loses all four kinds with probability 0.3^4 and then gets one back.
    assert np.isinf(table).mean() == pytest.approx(0.3 - 0.3**4 / 4, rel=0.03)


def test_nothing_varies_at_zero() -> None:
    graph = random_dag(10)
    table = unrelated(graph, ["a", "b"], heterogeneity=0).kind_duration_s
    assert table is not None
    assert np.array_equal(table[:, 0], graph.work_s)
    assert np.array_equal(table[:, 0], table[:, 1])


@pytest.mark.parametrize(
    "wrong", [{"kinds": []}, {"kinds": ["a", "a"]}, {"heterogeneity": 1.5}, {"forbid": 1.1}, {"method": "other"}]
)
def test_wrong_arguments(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        unrelated(random_dag(5), **{"kinds": ["a"], **wrong})  # type: ignore[arg-type]

"""The study copy of the idea plans as the package does, and learns."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import stretto
from stretto.core.plan import Plan

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "nano_stretto.py"


@pytest.fixture(scope="module")
def nano() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("nano_stretto", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _same(nano: types.ModuleType, tiles: int) -> tuple[stretto.TaskGraph, str]:
    """Return nano's graph and devices as Stretto has them; a tile is so large that moving it takes nano's time."""
    graph = nano.cholesky(tiles)
    edges = [(parent, task) for task, parents in enumerate(graph.parents) for parent in parents]
    parent, child = zip(*edges, strict=True)
    seconds = np.array(graph.duration)[:, [nano.KINDS.index("cpu"), nano.KINDS.index("gpu")]]
    kinds = {"kinds": ("cpu", "gpu"), "kind_duration_s": seconds}
    cluster = f"cpu:{nano.KINDS.count('cpu')},gpu:{nano.KINDS.count('gpu')}@1GB/s"
    return stretto.TaskGraph.from_edges(seconds[:, 0], parent, child, nano.TRANSFER_S * 1e9, **kinds), cluster


def test_it_is_short_and_plain() -> None:
    text = SCRIPT.read_text()
    assert len(text.splitlines()) < 200
    assert not any(f"import {name}" in text for name in ("stretto", "numpy", "numba", "jax"))


@pytest.mark.parametrize("tiles", [2, 3, 4, 5, 6, 7])
def test_heft_is_that_of_the_package(nano: types.ModuleType, tiles: int) -> None:
    graph, cluster = _same(nano, tiles)
    _, makespan = nano.heft(nano.cholesky(tiles))
    assert makespan == pytest.approx(stretto.plan(graph, cluster, policy="heft").makespan_s, rel=1e-12)


@pytest.mark.parametrize("tiles", [2, 5, 7])
def test_the_event_loop_is_that_of_the_package(nano: types.ModuleType, tiles: int) -> None:
    import random

    from stretto.core.problem import Problem
    from stretto.graphs.simulator import simulate

    graph, cluster = _same(nano, tiles)
    problem = Problem.of(graph, stretto.Cluster.parse(cluster))
    for seed in range(20):
        plan, _ = nano.episode(nano.cholesky(tiles), [[0.0] * 2, [0.0] * 4], random.Random(seed))
        arrays = np.array(plan.device, dtype=np.int32), np.array(plan.order, dtype=np.int32)
        schedule = simulate(problem, Plan(*arrays, "work-conserving"))
        assert nano.execute(nano.cholesky(tiles), plan) == pytest.approx(schedule.makespan_s, rel=1e-12)


def test_it_learns_and_beats_heft(nano: types.ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    graph = nano.cholesky()
    _, makespan = nano.heft(graph)
    for seed in (0, 1):
        history = nano.train(graph, seed=seed)
        first, last = (sum(times) / len(times) for times in (history[0], history[-1]))
        assert last < 0.6 * first
        assert last < makespan
        assert min(map(min, history)) < 0.9 * makespan
    nano.main()
    printed = capsys.readouterr().out
    assert "35 tasks on cpu, cpu, gpu, gpu" in printed
    assert f"{makespan:.1f} s" in printed

"""Real kernels on the local engine give what the same computation gives in one piece."""

from __future__ import annotations

import numpy as np
import pytest

from stretto.catalog import PLANNERS
from stretto.core.cluster import Cluster
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.kernels.llama_block import llama_block
from stretto.engines.kernels.tiled_matmul import tiled_matmul
from stretto.engines.local.engine import LocalEngine
from stretto.engines.work import Work
from stretto.registry import construct
from stretto.testing.engine_checks import random_plan

both = pytest.mark.parametrize("workers", ["thread", "process"])


def run(work: Work, workers: str, policy: str = "heft", keep: str = "sinks") -> RunResult:
    cluster = Cluster.parse("cpu:2@10GB/s")
    plan = construct("policy", policy, PLANNERS, {}).plan(Problem.of(work.graph, cluster), Budget())
    engine = LocalEngine(workers=workers)  # type: ignore[arg-type]
    return engine.run(work, plan, cluster, RunOptions(keep=keep)).check()  # type: ignore[arg-type]


@both
@pytest.mark.parametrize("loads", [True, False])
def test_a_tiled_product_is_the_product(workers: str, loads: bool) -> None:
    made = tiled_matmul(3, 32, loads=loads)
    found = run(made.work, workers)
    if loads:
        np.testing.assert_allclose(made.product(found), made.a @ made.b, rtol=1e-4, atol=1e-4)
    else:
        last = made.work.graph.index_of["c.2.1.2"]
        np.testing.assert_allclose(found.outputs[last], (made.a @ made.b)[64:, 32:64], rtol=1e-4, atol=1e-4)
    assert set(found.device.tolist()) == {0, 1}


@both
def test_a_sharded_block_is_the_block(workers: str) -> None:
    made = llama_block(64, 64, 4, 4)
    assert made.work.graph.num_tasks == 5 + 4 * 5 + 4 * 4
    np.testing.assert_allclose(made.output(run(made.work, workers)), made.whole(), rtol=2e-4, atol=2e-4)


def test_placement_does_not_change_a_single_bit() -> None:
    made = llama_block(32, 32, 2, 2)
    cluster = Cluster.parse("cpu:2")
    marks = set()
    for seed in range(4):
        plan = random_plan(np.random.default_rng(seed), made.work.graph, cluster)
        marks.add(LocalEngine().run(made.work, plan, cluster, RunOptions()).check().digests)
    assert len(marks) == 1


def test_a_placed_jax_function_gives_its_result() -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    import stretto

    table = jnp.arange(6.0)

    @jax.jit
    def inner(x: object) -> object:
        return jnp.tanh(x) * table  # type: ignore[operator]

    def function(x: object, pair: dict[str, object]) -> dict[str, object]:
        y = inner(x) @ pair["w"]  # type: ignore[operator]
        total, _ = jax.lax.scan(lambda carry, row: (carry + row.sum(), None), 0.0, y)
        values, indices = jax.lax.top_k(y, 2)
        return {"y": y, "sum": total, "top": (values, indices), "same": pair["w"], "two": 2.0}

    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((5, 6)).astype("f4"), rng.standard_normal((6, 7)).astype("f4")
    placed = stretto.place(function, x, {"w": w}, devices=2, policy="round-robin").jit(jax.devices() * 2)
    found = placed(x, {"w": w})
    expected = function(x, {"w": w})
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)

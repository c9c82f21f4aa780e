"""Task graphs of live JAX functions."""

from __future__ import annotations

from typing import Any

import pytest

from stretto.core.graph import TaskGraph
from stretto.files.graphs.jax_equations import flatten, trace
from stretto.files.graphs.jax_graph import from_jax, from_program
from stretto.files.graphs.roofline import CPU, GPU, OpCost, Roofline

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")


def shape(*dims: int, dtype: str = "float32") -> Any:
    return jax.ShapeDtypeStruct(dims, dtype)


def edges(graph: TaskGraph) -> set[tuple[str, str, float]]:
    source, target, size = graph.edges
    return {
        (graph.task_name(int(s)), graph.task_name(int(t)), float(z))
        for s, t, z in zip(source, target, size, strict=True)
    }


def test_matmul_then_elementwise() -> None:
    graph = from_jax(lambda x, w: jnp.sin(x @ w), shape(8, 16), shape(16, 4))
    assert graph.categories == ("dot_general", "sin")
    assert edges(graph) == {("dot_general_0", "sin_1", 8 * 4 * 4.0)}
    cost = OpCost(2 * 8 * 16 * 4, 4 * (8 * 16 + 16 * 4 + 8 * 4))
    assert graph.kinds == ("cpu", "gpu")
    assert graph.kind_duration_s is not None
    assert graph.kind_duration_s[0].tolist() == [CPU.seconds(cost), GPU.seconds(cost)]


def test_convolution_counts_its_groups() -> None:
    def depthwise(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=6)

    graph = from_jax(depthwise, shape(2, 6, 5, 5), shape(6, 1, 3, 3))
    assert graph.meta["total_flops"] == 2 * (2 * 6 * 5 * 5) * 9


def test_nested_jit_is_inlined() -> None:
    inner = jax.jit(lambda v: jnp.exp(v))

    def outer(x: Any) -> Any:
        return inner(x) + inner(x * 2)

    graph = from_jax(outer, shape(10))
    assert sorted(graph.category_name(t) for t in range(graph.num_tasks)) == ["add", "exp", "exp", "mul"]
    assert graph.num_edges == 3


def test_a_scan_is_one_task_that_costs_its_length() -> None:
    def run(length: int) -> TaskGraph:
        def step(carry: Any, _: Any) -> tuple[Any, None]:
            return carry @ carry, None

        program = trace(lambda x: jax.lax.scan(step, x, None, length=length)[0], (shape(8, 8),), {}, unroll=0)
        return from_program(program)

    one, many = run(1), run(7)
    assert many.categories == ("scan",)
    assert many.meta["total_flops"] == 7 * one.meta["total_flops"] == 7 * 2 * 8**3


def test_a_cond_costs_its_dearest_branch() -> None:
    def choose(flag: Any, x: Any) -> Any:
        return jax.lax.cond(flag, lambda v: v @ v, lambda v: v, x)

    graph = from_jax(choose, shape(dtype="bool"), shape(8, 8))
    # One operation more converts the flag to the branch's number.
    assert graph.meta["total_flops"] == 2 * 8**3 + 1
    assert "cond" in graph.categories


def test_captured_arrays_are_resident() -> None:
    weights = jnp.ones((16, 4))
    graph = from_jax(lambda x: x @ weights, shape(8, 16))
    assert graph.weights is not None
    assert sorted(graph.weights.size_bytes.tolist()) == [16 * 4 * 4, 8 * 16 * 4]


def test_gradients_of_a_network() -> None:
    def loss(params: Any, x: Any) -> Any:
        for w in params:
            x = jax.nn.relu(x @ w)
        return jnp.sum(x**2)

    params = [shape(16, 16) for _ in range(3)]
    forward = from_jax(loss, params, shape(4, 16))
    both = from_jax(jax.grad(loss), params, shape(4, 16))
    matmuls = [sum(g.category_name(t) == "dot_general" for t in range(g.num_tasks)) for g in (forward, both)]
    # Forward once per layer; backward for each weight and for each input but the first.
    assert matmuls == [3, 3 + 3 + 2]


def test_rooflines_can_be_given() -> None:
    jaxpr = jax.make_jaxpr(lambda x: x + 1)(shape(1000))
    graph = from_program(flatten(jaxpr, name="jax"), rooflines={"tpu": Roofline(1e12, 1e6, 0.0)})
    assert graph.kinds == ("tpu",)
    assert graph.work_s[0] == pytest.approx((4000 + 4000 + 4) / 1e6)

"""Placing JAX models within memory: weights where they are read, loops by layers, optimizer state, devices by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stretto
from stretto.core.cluster import Cluster
from stretto.core.devices.profiles import PROFILES, profile_of_jax
from stretto.errors import Infeasible, InvalidInput
from stretto.files.cost_table import MeasuredCosts, read_cost_table
from stretto.files.graphs.roofline import ClassRooflines, OpCost, Roofline, profile_roofline

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

LAYER = 2048 * 2048 * 4


def shape(*sizes: int, dtype: str = "float32") -> Any:
    return jax.ShapeDtypeStruct(sizes, dtype)


def layers(x: Any, weights: Any) -> Any:
    for weight in weights:
        x = jax.nn.relu(x @ weight)
    return x


def scanned(x: Any, weights: Any) -> Any:
    return jax.lax.scan(lambda row, weight: (jax.nn.relu(row @ weight), None), x, weights)[0]


@pytest.mark.parametrize("policy", ["heft", "doppler", "annealing"])
@pytest.mark.parametrize("is_scanned", [False, True])
def test_537_megabytes_of_weights_do_not_go_onto_one_device_of_200(policy: str, is_scanned: bool) -> None:
    fn, weights = (scanned, shape(32, 2048, 2048)) if is_scanned else (layers, [shape(2048, 2048)] * 32)
    options: dict[str, Any] = {"policy": policy, "time_limit_s": 0.5, "weights": 1, "memory": "200MB"}
    placement = stretto.place(fn, shape(64, 2048), weights, devices=4, **options)
    assert placement.graph.weights is not None
    assert placement.graph.weights.size_bytes.sum() == 32 * LAYER + 64 * 2048 * 4
    assert sum(share.num_operations > 0 for share in placement.shares) >= 3
    assert all(share.peak_bytes <= 200e6 for share in placement.shares)
    assert sum(share.peak_bytes for share in placement.shares) >= 32 * LAYER
    assert placement.single_device_s == float("inf")
    assert "optimal" not in repr(placement)
    with pytest.raises(Infeasible, match="all devices together have 400,000,000"):
        stretto.place(fn, shape(64, 2048), weights, devices=2, **options)


def test_a_weight_of_forward_and_backward_pass_is_there_once() -> None:
    def loss(weights: Any, x: Any) -> Any:
        return scanned(x, weights).sum()

    options: dict[str, Any] = {"devices": 1, "policy": "heft", "weights": 0}
    arguments = (shape(4, 512, 512), shape(8, 512))
    one = 4 * 512 * 512 * 4
    plain = stretto.place(jax.value_and_grad(loss), *arguments, **options)
    assert plain.graph.weights is not None
    inputs = 8 * 512 * 4
    assert plain.graph.weights.size_bytes.sum() == one + inputs
    adam = stretto.place(jax.value_and_grad(loss), *arguments, optimizer_state=2, **options)
    assert adam.shares[0].peak_bytes == pytest.approx(plain.shares[0].peak_bytes + 2 * one)
    # Weights and their gradients are there at the end, whatever else.
    assert plain.shares[0].peak_bytes >= 2 * one
    assert any("Optimizer state: 2 bytes per byte" in note for note in adam.notes)


def test_an_optimizer_in_the_function_keeps_its_state_where_it_is_updated() -> None:
    def step(weights: Any, momentum: Any, x: Any) -> Any:
        gradient = jax.grad(lambda w: layers(x, w).sum())(weights)
        momentum = [0.9 * m + g for m, g in zip(momentum, gradient, strict=True)]
        return [w - 0.1 * m for w, m in zip(weights, momentum, strict=True)], momentum

    weights = [shape(256, 256)] * 3
    placement = stretto.place(step, weights, weights, shape(4, 256), devices=2, policy="heft", weights=(0, 1))
    assert placement.graph.weights is not None
    assert placement.graph.weights.size_bytes.sum() == 2 * 3 * 256 * 256 * 4 + 4 * 256 * 4


def test_weights_are_those_that_the_caller_names_or_assumed_by_size() -> None:
    arguments = (shape(64, 2048), [shape(2048, 2048)] * 2)
    by_size = stretto.place(layers, *arguments, devices=2, policy="heft")
    assert any("of 1.049 MB or more are assumed to be weights" in note for note in by_size.notes)
    named = stretto.place(layers, *arguments, devices=2, policy="heft", weights=(1,))
    assert any("Weights are the arguments 1, as given. Weights: 33.55 MB" in note for note in named.notes)
    with pytest.raises(InvalidInput, match="'w' is not an argument of the function, which has 0, 1"):
        stretto.place(layers, *arguments, devices=2, policy="heft", weights="w")
    with pytest.raises(InvalidInput, match="optimizer_state"):
        stretto.place(layers, *arguments, devices=2, policy="heft", optimizer_state=-1)


def test_long_loops_stay_one_operation_and_say_so() -> None:
    arguments = (shape(8, 64), shape(10, 64, 64))
    unrolled = stretto.place(scanned, *arguments, devices=2, policy="heft")
    assert [row.primitive for row in unrolled.operations] == ["dot_general"] * 10
    whole = stretto.place(scanned, *arguments, devices=2, policy="heft", unroll=9)
    assert [row.primitive for row in whole.operations] == ["scan"]
    assert "A scan of 10 rounds is one operation: the limit is unroll=9." in whole.notes
    with pytest.raises(InvalidInput, match="unroll"):
        stretto.place(scanned, *arguments, devices=2, policy="heft", unroll=-1)


def test_an_unrolled_loop_runs_with_parts_of_its_weights() -> None:
    weights = jax.random.normal(jax.random.key(0), (6, 16, 16)) * 0.2
    x = jnp.ones((4, 16))

    def both(w: Any, x: Any) -> Any:
        carry, rows = jax.lax.scan(lambda c, w: (jnp.tanh(c @ w), c.sum()), x, w, reverse=True)
        return carry.sum() + rows[0], rows

    fn = jax.value_and_grad(both, has_aux=True)
    placement = stretto.place(fn, weights, x, devices=2, policy="random", weights=0)
    assert placement.program.arguments.parts
    placed = placement.jit(devices=jax.devices()[:1] * 2)
    for _ in range(2):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4), placed(weights, x), fn(weights, x))


def test_operations_lead_back_to_equations_and_lines() -> None:
    placement = stretto.place(layers, shape(8, 64), [shape(64, 64)] * 2, devices=2, policy="heft")
    document = placement.to_json()
    (first, second) = document["operations"]
    assert first["equations"] == ["dot_general_0", "max_1"]
    assert second["operation"] == "dot_general_2"
    assert any("test_place_memory.py:" in line for line in first["source"])
    assert document["costs"] == placement.costs == "assumed (roofline, typical CPU and GPU)"
    assert [row["device"] for row in document["memory"]] == ["gpu0", "gpu1"]


def branches(x: Any, a: Any, b: Any) -> Any:
    return jax.nn.softmax(x @ a) + jax.nn.gelu(x @ b)


def test_groups_are_what_xla_fuses_and_leave_branches_apart() -> None:
    arguments = (shape(64, 64), shape(64, 64), shape(64, 64))
    grouped = stretto.place(branches, *arguments, devices=2, policy="heft")
    alone = stretto.place(branches, *arguments, devices=2, policy="heft", group=False)
    assert alone.graph.num_tasks > 3 * grouped.graph.num_tasks
    # Two products with what follows each, and the sum, which waits for both.
    assert sorted(grouped.graph.category_name(t) for t in range(grouped.graph.num_tasks)) == [
        "add",
        "dot_general",
        "dot_general",
    ]
    assert grouped.graph.num_edges == 2


def test_devices_by_name_bring_memory_types_and_links() -> None:
    cluster = Cluster.parse("a100:2,l4:2")
    assert [device.name for device in cluster.devices] == ["a100-0", "a100-1", "l4-0", "l4-1"]
    assert [device.memory_bytes for device in cluster.devices] == [80e9, 80e9, 24e9, 24e9]
    assert cluster.bandwidth[0, 1] == PROFILES["a100"].peer_bytes_per_s > cluster.bandwidth[0, 2]
    assert Cluster.parse("a100:2@1GB/s").bandwidth[0, 1] == 1e9
    assert Cluster.parse("h100").num_devices == 1
    placement = stretto.place(layers, shape(64, 512), [shape(512, 512)] * 2, devices=["a100", "l4"], policy="heft")
    assert placement.costs == "assumed (roofline: data sheets of a100, l4)"
    assert {row.device for row in placement.operations} == {"a100-0"}
    with pytest.raises(InvalidInput, match="'a1000' is no device with a profile"):
        stretto.place(layers, shape(4, 4), [shape(4, 4)], devices=["a1000"], policy="heft")


def test_half_precision_is_faster_where_the_data_sheet_says_so() -> None:
    def longest(dtype: str) -> float:
        big = shape(8192, 8192, dtype=dtype)
        return stretto.place(layers, big, [big], devices="a100:1", policy="heft").makespan_s

    assert 10 < longest("float32") / longest("bfloat16") < 20
    assert profile_roofline("t4").seconds(OpCost(8.1e12)) == pytest.approx(1.0, rel=1e-3)


def test_names_of_jax_become_profiles() -> None:
    assert profile_of_jax("NVIDIA A100-SXM4-40GB") == "a100-40g"
    assert profile_of_jax("NVIDIA L40S") == "l40s"
    assert profile_of_jax("NVIDIA L4") == "l4"
    assert profile_of_jax("cpu") is None
    placement = stretto.place(layers, shape(4, 4), [shape(4, 4)], devices=jax.devices()[:1], policy="heft")
    assert any("without a profile (cpu) are assumed to be typical" in note for note in placement.notes)


def test_every_profile_names_its_source_and_makes_a_roofline() -> None:
    for name, profile in PROFILES.items():
        assert "data sheet" in profile.source or "documentation" in profile.source or "press" in profile.source
        assert profile_roofline(name).seconds(OpCost(1e9, 1e6)) > 0


def test_measured_tables_are_used_and_said(tmp_path: Path) -> None:
    classes = {name: Roofline(1e9, 1e9, 0.0) for name in ("elementwise", "matmul")}
    table = MeasuredCosts({"cpu": ClassRooflines(classes)}, 1e-3, 1e8, 2.0, "a machine")
    path = tmp_path / "costs.json"
    path.write_bytes(table.to_bytes())
    again = read_cost_table(path)
    assert again.busy_factor == 2
    assert again.kinds["cpu"].classes["matmul"] == classes["matmul"]
    options: dict[str, Any] = {"policy": "heft", "costs": path}
    placement = stretto.place(layers, shape(100, 100), [shape(100, 100)], devices="cpu:2", **options)
    assert placement.costs == "measured (operation classes of cpu, by stretto calibrate)"
    # While all are busy each takes twice as long; alone, the device is as fast as measured.
    assert placement.makespan_s == pytest.approx(2 * (2e6 / 1e9 + 8e4 / 1e9), rel=1e-3)
    assert placement.single_device_s == pytest.approx(placement.makespan_s / 2)
    assert placement.result.problem.cluster.latency_s[0, 1] == 1e-3
    mixed = stretto.place(layers, shape(100, 100), [shape(100, 100)], devices="cpu:1,a100:1", **options)
    assert mixed.costs == "assumed (roofline: measurements of cpu; data sheets of a100)"
    path.write_text('{"format": "stretto-costs", "version": 1, "kinds": {"cpu": {}}}')
    with pytest.raises(InvalidInput, match=r"costs.json \[kinds.cpu\]: expected classes"):
        read_cost_table(path)

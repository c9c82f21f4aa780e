"""Placed JAX functions as callables: equal to the plain function, on the devices of the plan."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stretto
from stretto.errors import InvalidInput
from stretto.reports.placement import Placement

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

ROOT = Path(__file__).resolve().parents[2]
ON_FOUR_DEVICES = """
import jax, numpy as np, stretto
from benchmarks.placed_programs import cases

devices = jax.devices()
assert len(devices) == 4
for name, (fn, args) in cases().items():
    for policy in ("heft", "random"):
        placement = stretto.place(fn, *args, devices=devices, policy=policy)
        placed, plain = placement.jit(), jax.jit(fn)
        expected = plain(*args)
        for _ in range(2):
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5), placed(*args), expected)
        if policy == "random":
            assert {stretch.device for stretch in placed.stretches} == {0, 1, 2, 3}, name
            last = placement.schedule.device[-1]
            assert placed.num_cuts > 3
    if name == "convolutions":
        assert placed(*args).devices() == {devices[int(last)]}
print("equal on four devices")
"""


def split(x: Any, a: Any, b: Any) -> Any:
    return jax.nn.relu(x @ a) + jnp.tanh(x @ b)


def matrices(count: int) -> list[Any]:
    return [jax.random.normal(jax.random.key(number), (8, 8)) for number in range(count)]


def on_two(fn: Any, *args: Any, policy: str = "random", **options: Any) -> tuple[Placement, Any]:
    """Place on two devices and run both on the only one that a test process has."""
    placement = stretto.place(fn, *args, devices=2, policy=policy, **options)
    return placement, placement.jit(devices=jax.devices()[:1] * 2)


def test_three_networks_on_four_host_devices() -> None:
    env = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", ON_FOUR_DEVICES], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "equal on four devices", done.stderr[-2000:]


@pytest.mark.parametrize("seed", range(2))
def test_stretches_hold_each_equation_once_and_parents_come_first(seed: int) -> None:
    gradient = jax.value_and_grad(lambda *args: jnp.sum(split(*args) ** 2), argnums=(1, 2))
    args = matrices(3)
    placement, placed = on_two(gradient, *args, seed=seed)
    tasks = [task for stretch in placed.stretches for task in stretch.operations]
    assert sorted(tasks) == list(range(placement.graph.num_tasks))
    assert all(placement.schedule.device[t] == s.device for s in placed.stretches for t in s.operations)
    number = {task: index for index, s in enumerate(placed.stretches) for task in s.operations}
    source, target, _ = placement.graph.edges
    for parent, child in zip(source.tolist(), target.tolist(), strict=True):
        crosses = placement.schedule.device[parent] != placement.schedule.device[child]
        assert number[parent] + crosses <= number[child]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4), placed(*args), gradient(*args))


def test_loops_random_numbers_captured_arrays_and_outputs_of_all_kinds() -> None:
    captured = jnp.arange(8.0)

    @jax.jit
    def inner(x: Any, factor: Any) -> Any:
        return x * factor + captured

    def everything(x: Any, *, key: Any) -> Any:
        total, rows = jax.lax.scan(lambda carry, row: (carry + row, carry * 2), jnp.zeros(8), x)
        total = jax.lax.cond(total[0] > 0, jnp.sin, jnp.cos, inner(inner(total, 2.0), 3.0))
        # A literal, an argument, a captured array and the same value twice.
        return {
            "a": (total, rows),
            "b": [1.0, x, captured, total],
            "c": jax.random.normal(key, (3,)),
            "d": jnp.arange(3),
        }

    x, key = matrices(1)[0], jax.random.key(5)
    _, placed = on_two(everything, x, example_kwargs={"key": key})
    result, expected = placed(x, key=key), everything(x, key=key)
    assert jax.tree.structure(result) == jax.tree.structure(expected)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), result, expected)


def test_weights_are_sent_once_and_forgotten_with_their_array(monkeypatch: pytest.MonkeyPatch) -> None:
    x, a, b = matrices(3)
    _, placed = on_two(split, x, a, b, policy="heft")
    sent: list[Any] = []
    real = jax.device_put
    monkeypatch.setattr(jax, "device_put", lambda value, *where: sent.append(value) or real(value, *where))

    def arguments_sent(*args: Any) -> int:
        sent.clear()
        np.testing.assert_allclose(placed(*args), split(*args), rtol=1e-5)
        return sum(not isinstance(value, list) for value in sent)

    first = arguments_sent(x, a, b)
    assert first >= 3
    assert arguments_sent(x, a, b) == 0
    other = a + 1
    assert arguments_sent(x, other, b) >= 1
    assert arguments_sent(np.asarray(x), other, b) >= 1
    kept = len(placed._copies)
    del other
    sent.clear()
    gc.collect()
    assert len(placed._copies) < kept


def test_numpy_that_changes_in_place_is_read_again() -> None:
    x, a, b = (np.array(matrix) for matrix in matrices(3))
    _, placed = on_two(split, x, a, b)
    placed(x, a, b)
    a[:] = 0
    np.testing.assert_allclose(placed(x, a, b), split(x, a, b), rtol=1e-5)


def test_mistakes_of_callers_are_explained() -> None:
    x, a, b = matrices(3)
    placement, placed = on_two(split, x, a, b)
    with pytest.raises(InvalidInput, match=r"argument 1 is float32\[2, 8\].*float32\[8, 8\].*place it again"):
        placed(x, a[:2], b)
    with pytest.raises(InvalidInput, match="argument 2 is int32"):
        placed(x, a, b.astype("int32"))
    with pytest.raises(InvalidInput, match="argument 2 is str"):
        placed(x, a, "b")
    with pytest.raises(InvalidInput, match="call it with arguments like the examples"):
        placed(x, a)
    with pytest.raises(InvalidInput, match=r"stretto.place\(jax.value_and_grad\(fn\)"):
        jax.grad(lambda y: placed(y, a, b).sum())(x)
    with pytest.raises(InvalidInput, match=r"3 devices of JAX for a placement on 2"):
        placement.jit(devices=jax.devices()[:1] * 3)
    with pytest.raises(InvalidInput, match=r"XLA_FLAGS=--xla_force_host_platform_device_count=99"):
        stretto.place(split, x, a, b, devices=99, policy="heft").jit()
    with pytest.raises(InvalidInput, match="no traced function of JAX"):
        Placement(placement.result).jit()


def test_devices_of_jax_are_devices() -> None:
    x, a, b = matrices(3)
    placement = stretto.place(split, x, a, b, devices=jax.devices()[:1], policy="heft")
    assert placement.result.problem.cluster.num_devices == 1
    np.testing.assert_allclose(placement.jit()(x, a, b), split(x, a, b), rtol=1e-5)
    with pytest.raises(InvalidInput, match="devices: list is not"):
        stretto.place(split, x, a, b, devices=[3], policy="heft")

"""Placed JAX programs as an engine: calibration, measured operations, ranks, and planning again with them."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stretto
from stretto.engines.jax_calibrate import calibrate_jax
from stretto.engines.jax_measure import TIMED, rank_correlation, time_operations
from stretto.errors import InvalidInput

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

ROOT = Path(__file__).resolve().parents[2]
ON_TWO_DEVICES = """
import jax, jax.numpy as jnp, numpy as np, stretto

def fn(x, a, b):
    return jnp.tanh(x @ a) @ a + jnp.tanh(x @ b) @ b

args = [jnp.ones((64, 64)) * 0.1] * 3
placement = stretto.place(fn, *args, devices=jax.devices(), policy="heft", measure=True)
assert placement.costs.startswith("measured (each operation"), placement.costs
runs = placement.measured
assert len(runs.plans) == 7 and all(one.measured_s > 0 and one.simulated_s > 0 for one in runs.plans)
assert placement.result.policy in [one.name for one in runs.plans]
chosen = next(one for one in runs.plans if one.name == placement.result.policy)
assert chosen.measured_s == min(one.measured_s for one in runs.plans[:-1])
assert "rank correlation of simulated and measured times" in placement.notes[-1]
assert placement.to_json()["measured"]["plans"][0]["name"] == "heft"
np.testing.assert_allclose(placement.jit()(*args), fn(*args), rtol=1e-4)
print("measured on two devices")
"""


def test_ranks_agree_or_not() -> None:
    assert rank_correlation([1, 2, 3, 4], [10, 20, 25, 90]) == pytest.approx(1.0)
    assert rank_correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1.0)
    assert rank_correlation([1, 1, 2], [1, 2, 3]) == pytest.approx(math.sqrt(3) / 2)
    assert math.isnan(rank_correlation([1, 1], [1, 2]))


def test_calibration_finds_a_machine_that_multiplies() -> None:
    table = calibrate_jax(jax.devices()[:1], repeats=2)
    classes = table.kinds["cpu"].classes
    assert set(classes) == {"elementwise", "reduction", "matmul", "convolution"}
    # Products are denser than functions of single numbers, on any machine.
    assert classes["matmul"].flops_per_s > classes["elementwise"].flops_per_s > 1e7
    assert table.busy_factor == 1.0
    assert table.latency_s is None
    with pytest.raises(InvalidInput, match="repeats"):
        calibrate_jax(repeats=0)


def test_equal_operations_are_timed_once_and_large_ones_take_longer() -> None:
    def fn(x: Any, small: Any, big: Any) -> Any:
        return (x @ small) @ small, big @ big

    arguments = (jnp.ones((8, 8)), jnp.ones((8, 8)), jnp.ones((512, 512)))
    program = stretto.place(fn, *arguments, devices=1, policy="heft").program
    seconds = time_operations(program, jax.devices()[0], repeats=3)
    assert seconds[0] == seconds[1] < seconds[2]


def test_measured_placements_on_two_host_devices() -> None:
    env = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", ON_TWO_DEVICES], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "measured on two devices", done.stderr[-2000:]


def test_unlike_devices_cannot_be_timed_here() -> None:
    x = np.ones((4, 4), dtype="float32")
    with pytest.raises(InvalidInput, match="devices of JAX for a placement on 2"):
        stretto.place(lambda x: x @ x, x, devices="a100:1,l4:1", policy="heft", measure=True)


def test_the_label_of_measured_operations_is_measured() -> None:
    assert TIMED.startswith("measured")

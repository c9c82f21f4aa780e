"""Placed programs against one device: ``python benchmarks/placed_programs.py [--devices 2] [--runs 15]``.

Three JAX functions are placed on host devices and run: an MLP of parallel branches, a transformer block with its
gradient, and a convolution net. The devices are calibrated first (``stretto calibrate``), so the ratio that the
simulator promises is one for this machine: placed, with operations as slow as while all devices are busy, over one
device alone. Printed are the measured times of the plain jitted function on one device and of the placed program, both
ratios, and whether a promise of 25 % was kept (0.9). Then the time of the runner per cut, measured on a chain of tiny
operations that changes device at every step.

Host devices share the cores of the machine. ``--threads one`` (default) keeps XLA to one thread per operation, so that
two devices can use two cores; with ``--threads all`` one operation already uses all cores, and the calibration says so:
operations then take about as many times as long as there are devices.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

Case = tuple[Callable[..., Any], tuple[Any, ...]]


def cases(scale: int = 1) -> dict[str, Case]:
    """Return the functions with their arguments; ``scale`` multiplies the widths."""
    import jax
    import jax.numpy as jnp

    def array(number: int, *shape: int) -> Any:
        return jax.random.normal(jax.random.key(number), shape) * shape[-1] ** -0.5

    def mlp(x: Any, layers: Any) -> Any:
        for branches in layers:
            x = sum(jax.nn.relu(x @ up) @ down for up, down in branches)
        return x

    def block(weights: Any, x: Any) -> Any:
        heads = [jax.nn.softmax((x @ q) @ (x @ k).T) @ (x @ v) @ o for q, k, v, o in weights["heads"]]
        x = x + sum(heads)
        x = (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
        return jnp.mean((x + jax.nn.gelu(x @ weights["up"]) @ weights["down"]) ** 2)

    def convolutions(x: Any, weights: Any) -> Any:
        for left, right in weights:
            halves = [jax.lax.conv_general_dilated(x, w, (1, 1), "SAME") for w in (left, right)]
            x = jax.nn.relu(halves[0]) + jnp.tanh(halves[1])
        return x.mean((2, 3))

    wide, narrow, rows = 64 * scale, 16 * scale, 32 * scale
    layers = [
        [(array(10 * i + j, wide, 2 * wide), array(50 + 10 * i + j, 2 * wide, wide)) for j in range(4)]
        for i in range(2)
    ]
    heads = [
        tuple(array(4 * h + i, *((wide, narrow) if i < 3 else (narrow, wide))) for i in range(4)) for h in range(4)
    ]
    weights = {"heads": heads, "up": array(90, wide, 4 * wide), "down": array(91, 4 * wide, wide)}
    filters = [(array(70 + i, 8, 8, 3, 3) * 0.3, array(80 + i, 8, 8, 3, 3) * 0.3) for i in range(3)]
    return {
        "mlp": (mlp, (array(1, rows, wide), layers)),
        "block with gradient": (jax.value_and_grad(block), (weights, array(2, rows, wide))),
        "convolutions": (convolutions, (array(3, 2, 8, rows, rows), filters)),
    }


def seconds(functions: Sequence[Callable[..., Any]], args: tuple[Any, ...], runs: int) -> list[float]:
    """Return the shortest wall time of each function; they take turns, so that other programs disturb all alike."""
    import jax

    times: list[list[float]] = [[] for _ in functions]
    for run in range(runs + 1):
        for column, function in zip(times, functions, strict=True):
            begin = time.perf_counter()
            jax.block_until_ready(function(*args))
            if run:  # the first compiles
                column.append(time.perf_counter() - begin)
    return [min(column) for column in times]


def runner_overhead_s(runs: int) -> tuple[float, int]:
    """Return the CPU time of the calling thread per cut, and the cuts: a chain that changes device at every step."""
    import jax
    import numpy as np

    import stretto
    from stretto.engines.jax_program import PlacedFunction

    def chain(x: Any) -> Any:
        for _ in range(40):
            x = jax.numpy.sin(x)
        return x

    x = jax.numpy.ones(16)
    placement = stretto.place(chain, x, devices=2, policy="heft", group=False)
    when, count = placement.schedule, np.arange(placement.graph.num_tasks)
    # Every operation takes a second, so that no two of them are worth one stretch.
    zigzag = replace(when, device=count % 2, start_s=count.astype(float), finish_s=count + 1.0)
    placed = PlacedFunction(placement.program, zigzag, jax.devices()[:2])
    jax.block_until_ready(placed(x))
    begin = time.thread_time()
    for _ in range(runs):
        jax.block_until_ready(placed(x))
    return (time.thread_time() - begin) / runs / placed.num_cuts, placed.num_cuts


ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def main() -> None:
    """Calibrate, measure all functions, then the runner."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--scale", type=int, default=8)
    parser.add_argument("--threads", choices=("one", "all"), default="one")
    options = parser.parse_args()
    flags = f"--xla_force_host_platform_device_count={max(2, options.devices)}"
    os.environ["XLA_FLAGS"] = f"{flags} {ONE_THREAD}" if options.threads == "one" else flags
    import jax

    import stretto

    devices, table = jax.devices()[: options.devices], Path(tempfile.mkdtemp()) / "costs.json"
    busy = stretto.calibrate(table, devices=devices).busy_factor
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, shortest of {options.runs} runs")
    print(f"{options.devices} devices, {options.threads} thread(s): operations take {busy:.2f} times as long together")
    print(f"{'':<20} {'cuts':>5} {'stretches':>9} {'one device':>11} {'placed':>10} {'ratio':>6} {'promised':>9}")
    for name, (fn, args) in cases(options.scale).items():
        placement = stretto.place(fn, *args, devices=devices, policy="heft", costs=table)
        placed, plain = placement.jit(), jax.jit(fn)
        one_s, placed_s = seconds([plain, placed], args, options.runs)
        promised = 1 / placement.speedup_over_single
        verdict = "" if promised > 0.75 else "  kept" if placed_s <= 0.9 * one_s else "  missed"
        print(
            f"{name:<20} {placed.num_cuts:>5} {len(placed.stretches):>9} {one_s * 1e3:>8.2f} ms "
            f"{placed_s * 1e3:>7.2f} ms {placed_s / one_s:>6.2f} {promised:>9.2f}{verdict}"
        )
    per_cut_s, cuts = runner_overhead_s(50)
    print(f"runner: {per_cut_s * 1e6:.0f} µs of CPU time per cut, a stretch included ({cuts} cuts; target 100 µs)")


if __name__ == "__main__":
    main()

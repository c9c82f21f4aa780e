"""The task graph of a recursive fast Fourier transform."""

from __future__ import annotations

from stretto.core import argument_checks as checks
from stretto.core.graph import TaskGraph
from stretto.errors import InvalidInput
from stretto.graphs.workloads.flow import Flow

_COMPLEX_BYTES = 16


def fft(
    num_points: int = 32, *, block: int = 1 << 20, rate_per_s: float = 1e8, seed: int = 0, noise: float = 0.1
) -> TaskGraph:
    """Fast Fourier transform: a binary tree of splits, then butterflies.

    Parameters
    ----------
    num_points
        Leaves of the recursion, a power of two; P leaves give 2P - 1 splits and P log2 P butterflies.
    block
        Values that each leaf stands for.
    rate_per_s
        Values that a device of speed 1 handles per second.
    """
    checks.at_least(1, num_points=num_points, block=block)
    checks.positive(rate_per_s=rate_per_s)
    if num_points & (num_points - 1):
        raise InvalidInput(f"{num_points} is not a power of two", field="num_points")
    checks.makes_tasks(num_points * (2 + num_points.bit_length()), num_points=num_points)
    flow = Flow(f"fft-{num_points}", seed=seed, noise=noise)
    row, values = [], num_points * block
    row.append(flow.step("split_0_0", "split", work_s=values / rate_per_s, out_bytes=_COMPLEX_BYTES * values / 2))
    level = 0
    while len(row) < num_points:
        level, values = level + 1, values // 2
        # A split hands each of its two children half of its values: an output for each.
        halves = [half for parent in row for half in (parent, flow.output(parent, _COMPLEX_BYTES * values))]
        row = [
            flow.step(f"split_{level}_{i}", "split", [half], work_s=values / rate_per_s, out_bytes=_half(values, block))
            for i, half in enumerate(halves)
        ]
    stride = 1
    while stride < num_points:
        level, previous = level + 1, row
        row = [
            flow.step(
                f"butterfly_{level}_{i}",
                "butterfly",
                [previous[i], previous[i ^ stride]],
                work_s=2 * block / rate_per_s,
                out_bytes=_COMPLEX_BYTES * block,
            )
            for i in range(num_points)
        ]
        stride *= 2
    return flow.graph()


def _half(values: int, block: int) -> float:
    """Bytes that a split hands to one child; a leaf hands on its whole block."""
    return _COMPLEX_BYTES * (values / 2 if values > block else values)

"""One training step of a feed-forward network."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from stretto.core import argument_checks as checks
from stretto.core.graph import TaskGraph
from stretto.graphs.workloads.flow import Flow


def ffnn(
    widths: Sequence[int] = (1024, 8192, 8192, 1024),
    *,
    batch: int = 8192,
    num_shards: int = 8,
    seed: int = 0,
    noise: float = 0.0,
) -> TaskGraph:
    """Feed-forward training step: forward, backward, summed gradients and updates, by batch shards.

    Parameters
    ----------
    widths
        Units of each layer, from the input to the output.
    batch
        Samples in the batch, split evenly.
    """
    checks.at_least(1, batch=batch, num_shards=num_shards, num_layers=len(widths) - 1)
    checks.at_least(1, **{f"widths[{i}]": width for i, width in enumerate(widths)})
    checks.makes_tasks(4 * num_shards * len(widths), num_shards=num_shards, num_layers=len(widths) - 1)
    step = _Step(Flow(f"ffnn-{len(widths) - 1}x{num_shards}", seed=seed, noise=noise), batch / num_shards)
    layers = list(pairwise(widths))
    weights = [step.load(f"weights_{i}", rows * columns) for i, (rows, columns) in enumerate(layers)]
    gradients: list[list[int]] = [[] for _ in layers]
    for shard in range(num_shards):
        _shard(step, f"{shard}", layers, weights, gradients)
    for i, (rows, columns) in enumerate(layers):
        total = step.sum(f"gradient_{i}", gradients[i], rows * columns)
        step.elementwise(f"update_{i}", [weights[i], total], rows * columns)
    return step.flow.graph()


def _shard(
    step: _Step, name: str, layers: list[tuple[int, int]], weights: list[int], gradients: list[list[int]]
) -> None:
    """Run one shard of the batch forward and backward, leaving its gradients in the lists."""
    n = step.samples
    values = [step.load(f"batch_{name}", n * layers[0][0])]
    for i, (rows, columns) in enumerate(layers):
        product = step.matmul(f"forward_{i}_{name}", [values[-1], weights[i]], n, rows, columns)
        values.append(step.elementwise(f"activate_{i}_{name}", [product], n * columns))
    error = step.elementwise(f"loss_{name}", [values[-1]], n * layers[-1][1])
    for i in range(len(layers) - 1, -1, -1):
        rows, columns = layers[i]
        gradients[i].append(step.matmul(f"weight_gradient_{i}_{name}", [values[i], error], rows, n, columns))
        if i:
            back = step.matmul(f"backward_{i}_{name}", [error, weights[i]], n, columns, rows)
            error = step.elementwise(f"derive_{i}_{name}", [back, values[i]], n * rows)


class _Step:
    """The kernels of a training step, with their arithmetic and traffic."""

    def __init__(self, flow: Flow, samples: float) -> None:
        self.flow = flow
        self.samples = samples

    def load(self, name: str, values: float) -> int:
        return self.flow.tensor_kernel(name, "input", [], 0.0, values, values)

    def matmul(self, name: str, reads: list[int], rows: float, inner: float, columns: float) -> int:
        touched = rows * inner + inner * columns + rows * columns
        return self.flow.tensor_kernel(name, "gemm", reads, 2 * rows * inner * columns, touched, rows * columns)

    def elementwise(self, name: str, reads: list[int], values: float) -> int:
        return self.flow.tensor_kernel(name, "elementwise", reads, values, values * (len(reads) + 1), values)

    def sum(self, name: str, reads: list[int], values: float) -> int:
        if len(reads) == 1:
            return reads[0]
        return self.flow.tensor_kernel(
            name, "reduce", reads, values * (len(reads) - 1), values * (len(reads) + 1), values
        )

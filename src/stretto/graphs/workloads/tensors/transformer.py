"""Transformer blocks, sharded by heads and cut by tokens."""

from __future__ import annotations

from stretto.core import argument_checks as checks
from stretto.core.graph import TaskGraph
from stretto.graphs.workloads.flow import Flow

_VALUE_BYTES = 2


def transformer(
    num_shards: int = 4,
    *,
    num_layers: int = 1,
    num_chunks: int = 4,
    tokens: int = 4096,
    width: int = 4096,
    hidden: int = 11008,
    seed: int = 0,
    noise: float = 0.0,
) -> TaskGraph:
    """Transformer blocks over tensor shards: attention and feed-forward, partial sums reduced.

    Weights are split over ``num_shards`` (attention by heads, the feed-forward part by
    hidden units), activations over ``num_chunks`` blocks of tokens. Attention is causal:
    a chunk reads the keys and values of all chunks up to its own.

    Parameters
    ----------
    tokens
        Batch times sequence length.
    width, hidden
        Features of the residual stream, and of the feed-forward part.
    """
    checks.at_least(1, num_shards=num_shards, num_layers=num_layers, num_chunks=num_chunks)
    checks.at_least(1, tokens=tokens, width=width, hidden=hidden)
    num_tasks = 6 * num_shards * num_layers * num_chunks
    checks.makes_tasks(num_tasks, num_shards=num_shards, num_layers=num_layers, num_chunks=num_chunks)
    checks.makes_edges(num_tasks * num_chunks / 2, num_shards=num_shards, num_chunks=num_chunks)
    name = f"transformer-{num_layers}x{num_shards}x{num_chunks}"
    block = _Block(
        Flow(name, seed=seed, noise=noise, value_bytes=_VALUE_BYTES),
        num_shards,
        num_chunks,
        tokens / num_chunks,
        width,
        hidden,
    )
    stream = [block.elementwise(f"embed_{c}", []) for c in range(num_chunks)]
    for layer in range(num_layers):
        stream = block.attention(f"{layer}", stream)
        stream = block.feed_forward(f"{layer}", stream)
    return block.flow.graph()


class _Block:
    """The two halves of a transformer block on chunks of ``rows`` tokens."""

    def __init__(self, flow: Flow, num_shards: int, num_chunks: int, rows: float, width: float, hidden: float) -> None:
        self.flow = flow
        self.shards = range(num_shards)
        self.chunks = range(num_chunks)
        self.rows = rows
        self.width = width
        self.part = width / num_shards
        self.hidden_part = hidden / num_shards

    def attention(self, layer: str, stream: list[int]) -> list[int]:
        normal = [self.elementwise(f"norm1_{layer}_{c}", [stream[c]]) for c in self.chunks]
        partial: list[list[int]] = [[] for _ in self.chunks]
        for s in self.shards:
            keys: list[int] = []
            for c in self.chunks:
                place = f"{layer}_{s}_{c}"
                query = self.matmul(f"qkv_{place}", [normal[c]], self.width, 3 * self.part, out=self.part)
                keys.append(self.flow.output(query, _VALUE_BYTES * self.rows * 2 * self.part))
                mixed = self._attend(place, [query, *keys])
                partial[c].append(self.matmul(f"project_{place}", [mixed], self.part, self.width))
        return [self._reduce(f"sum1_{layer}_{c}", [*partial[c], stream[c]]) for c in self.chunks]

    def feed_forward(self, layer: str, stream: list[int]) -> list[int]:
        normal = [self.elementwise(f"norm2_{layer}_{c}", [stream[c]]) for c in self.chunks]
        partial: list[list[int]] = [[] for _ in self.chunks]
        for s in self.shards:
            for c in self.chunks:
                place = f"{layer}_{s}_{c}"
                up = self.matmul(f"up_{place}", [normal[c]], self.width, 2 * self.hidden_part)
                gated = self.elementwise(f"gate_{place}", [up], columns=self.hidden_part)
                partial[c].append(self.matmul(f"down_{place}", [gated], self.hidden_part, self.width))
        return [self._reduce(f"sum2_{layer}_{c}", [*partial[c], stream[c]]) for c in self.chunks]

    def matmul(self, name: str, reads: list[int], inner: float, columns: float, out: float | None = None) -> int:
        touched = self.rows * inner + inner * columns + self.rows * columns
        result = self.rows * (columns if out is None else out)
        return self.flow.tensor_kernel(name, "gemm", reads, 2 * self.rows * inner * columns, touched, result)

    def elementwise(self, name: str, reads: list[int], columns: float | None = None) -> int:
        values = self.rows * (self.width if columns is None else columns)
        return self.flow.tensor_kernel(name, "elementwise", reads, 4 * values, 2 * values, values)

    def _attend(self, place: str, reads: list[int]) -> int:
        seen = self.rows * (len(reads) - 1)  # tokens whose keys this chunk looks at
        flops = 4 * self.rows * seen * self.part
        touched = (2 * self.rows + 2 * seen) * self.part
        return self.flow.tensor_kernel(f"attend_{place}", "attention", reads, flops, touched, self.rows * self.part)

    def _reduce(self, name: str, reads: list[int]) -> int:
        values = self.rows * self.width
        return self.flow.tensor_kernel(
            name, "reduce", reads, values * (len(reads) - 1), values * (len(reads) + 1), values
        )

"""One block of a Llama-like transformer in numpy, whole and in shards: by heads, and by columns of the feed-forward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stretto.core.builder import GraphBuilder
from stretto.engines.engine import RunResult
from stretto.engines.kernels.tiled_matmul import FLOPS
from stretto.engines.work import Call, Work
from stretto.errors import InvalidInput

_EPS = np.float32(1e-5)


@dataclass(frozen=True, eq=False)
class LlamaBlock:
    """Input, weights, and the work of the sharded computation."""

    x: np.ndarray  # [S, d]
    weights: dict[str, np.ndarray]
    num_heads: int
    work: Work

    def whole(self) -> np.ndarray:
        """Return the output of the block, computed without shards."""
        w, h = self.weights, normalise(self.x)
        size = self.x.shape[1] // self.num_heads
        heads = []
        for n in range(self.num_heads):
            part = slice(n * size, (n + 1) * size)
            heads.append(attend(rotate(h @ w["q"][:, part]), rotate(h @ w["k"][:, part]), h @ w["v"][:, part]))
        x = self.x + np.concatenate(heads, axis=1) @ w["o"]
        h = normalise(x)
        y: np.ndarray = x + (silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]
        return y

    def output(self, result: RunResult) -> np.ndarray:
        """Return the output of a finished run."""
        found: np.ndarray = result.outputs[self.work.graph.index_of["out"]]
        return found


def llama_block(
    sequence: int = 256, width: int = 512, num_heads: int = 8, num_shards: int = 8, *, seed: int = 0
) -> LlamaBlock:
    """Make a block with random weights; the feed-forward part is four times as wide as the rest."""
    if width % num_heads or (width // num_heads) % 2 or (4 * width) % num_shards:
        raise InvalidInput(
            f"width {width} cannot be divided among {num_heads} heads and {num_shards} shards", field="llama-block"
        )
    rng = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return rng.standard_normal((rows, columns), dtype=np.float32) / np.float32(rows**0.5)

    hidden = 4 * width
    shapes = dict.fromkeys("qkvo", (width, width))
    shapes |= {"gate": (width, hidden), "up": (width, hidden), "down": (hidden, width)}
    weights = {name: matrix(*shape) for name, shape in shapes.items()}
    x = matrix(sequence, width) * np.float32(sequence**0.5)
    return LlamaBlock(x, weights, num_heads, _shard(x, weights, num_heads, num_shards))


def llama_block_work(
    sequence: int = 256, width: int = 512, num_heads: int = 8, num_shards: int = 8, *, seed: int = 0
) -> Work:
    """Compute one sharded transformer block."""
    return llama_block(sequence, width, num_heads, num_shards, seed=seed).work


class _Builder:
    """Adds a task with its kernel; durations are guesses from the arithmetic."""

    def __init__(self, name: str, sequence: int) -> None:
        self.graph, self.actions, self.handles = GraphBuilder(name), list[Call](), dict[int, int]()
        self.sequence = sequence

    def add(
        self, name: str, kernel: Callable[..., np.ndarray], inputs: list[int], columns: int, flops: float, *args: object
    ) -> int:
        task = self.graph.task(name, max(flops / FLOPS, 2e-6), category=kernel.__name__)
        self.handles[task] = self.graph.object(task, 4.0 * self.sequence * columns)
        for parent in inputs:
            self.graph.read(task, self.handles[parent])
        self.actions.append(Call(kernel, args, tuple(inputs)))
        return task

    def product(self, name: str, kernel: Callable[..., np.ndarray], rows: int, weight: np.ndarray) -> int:
        """Add the product of a task's output with a part of a weight matrix."""
        return self.add(name, kernel, [rows], weight.shape[1], 2.0 * self.sequence * weight.size, weight.copy())


def _parts(size: int, count: int) -> list[slice]:
    """Return consecutive parts of one size."""
    return [slice(n * size, (n + 1) * size) for n in range(count)]


def _shard(x: np.ndarray, w: dict[str, np.ndarray], num_heads: int, num_shards: int) -> Work:
    s, d = x.shape
    build = _Builder(f"llama-block-{s}x{d}", s)
    size, step = d // num_heads, 4 * d // num_shards
    source = build.add("x", bring, [], d, 0.0, x)
    h = build.add("norm.0", normalise, [source], d, 4.0 * s * d)
    outs = []
    for n, part in enumerate(_parts(size, num_heads)):
        q = build.product(f"q.{n}", project_and_rotate, h, w["q"][:, part])
        k = build.product(f"k.{n}", project_and_rotate, h, w["k"][:, part])
        v = build.product(f"v.{n}", project, h, w["v"][:, part])
        head = build.add(f"head.{n}", attend, [q, k, v], size, 4.0 * s * s * size)
        outs.append(build.product(f"o.{n}", project, head, w["o"][part]))
    x1 = build.add("sum.0", add_all, [source, *outs], d, float(s * d * num_heads))
    h = build.add("norm.1", normalise, [x1], d, 4.0 * s * d)
    outs = []
    for n, part in enumerate(_parts(step, num_shards)):
        gate = build.product(f"gate.{n}", project, h, w["gate"][:, part])
        up = build.product(f"up.{n}", project, h, w["up"][:, part])
        both = build.add(f"mix.{n}", mix, [gate, up], step, 8.0 * s * step)
        outs.append(build.product(f"down.{n}", project, both, w["down"][part]))
    build.add("out", add_all, [x1, *outs], d, float(s * d * num_shards))
    return Work(build.graph.graph(), tuple(build.actions))


def bring(x: np.ndarray) -> np.ndarray:
    """Return the input as an output of its own."""
    return x.copy()


def normalise(x: np.ndarray) -> np.ndarray:
    """Divide rows by their root mean square."""
    found: np.ndarray = x / np.sqrt(np.mean(x * x, axis=1, keepdims=True, dtype=np.float32) + _EPS)
    return found


def project(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Multiply by a weight matrix."""
    y: np.ndarray = x @ weight
    return y


def project_and_rotate(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Multiply by a weight matrix and rotate by position."""
    return rotate(x @ weight)


def rotate(x: np.ndarray) -> np.ndarray:
    """Turn pairs of columns by angles that grow with the row: rotary position embedding."""
    s, d = x.shape
    rate = np.float32(10_000) ** (-np.arange(d // 2, dtype=np.float32) * 2 / d)
    angle = np.arange(s, dtype=np.float32)[:, None] * rate
    cos, sin = np.cos(angle), np.sin(angle)
    even, odd = x[:, : d // 2], x[:, d // 2 :]
    return np.concatenate([even * cos - odd * sin, even * sin + odd * cos], axis=1)


def attend(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return one head of causal attention."""
    scores = q @ k.T / np.float32(q.shape[1] ** 0.5)
    scores[np.triu_indices(len(q), 1)] = -np.inf
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    found: np.ndarray = (scores / scores.sum(axis=1, keepdims=True)) @ v
    return found


def silu(x: np.ndarray) -> np.ndarray:
    """Return x times its logistic function."""
    found: np.ndarray = x / (np.float32(1) + np.exp(-x))
    return found


def mix(gate: np.ndarray, up: np.ndarray) -> np.ndarray:
    """Gate one half of the hidden layer by the other."""
    found: np.ndarray = silu(gate) * up
    return found


def add_all(*parts: np.ndarray) -> np.ndarray:
    """Add arrays from left to right."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total

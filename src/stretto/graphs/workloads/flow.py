"""Write a dataflow program step by step: each step reads handles and returns its output's."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stretto.core import argument_checks as checks
from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.graphs.workloads.rates import seconds


class Flow:
    """A graph under construction whose durations vary a little around their nominal value.

    Parameters
    ----------
    noise
        Spread (sigma) of a log-normal factor of mean 1 on every duration; 0 keeps them exact.
    value_bytes
        Size of one number of a tensor.
    """

    def __init__(self, name: str, *, seed: int = 0, noise: float = 0.0, value_bytes: int = 4) -> None:
        checks.not_negative(noise=noise)
        self._build = GraphBuilder(name)
        self._random = np.random.default_rng(seed)
        self._noise = noise
        self._value_bytes = value_bytes
        self._producer: list[int] = []

    def step(
        self, name: str, category: str, reads: Iterable[int] = (), *, work_s: float, out_bytes: float = 0.0
    ) -> int:
        """Add a task of so many seconds at speed 1 and return the handle of its output."""
        task = self._build.task(name, work_s * self._factor(), category=category)
        return self._connect(task, reads, out_bytes)

    def kernel(
        self,
        name: str,
        category: str,
        reads: Iterable[int] = (),
        *,
        flops: float,
        touched_bytes: float = 0.0,
        out_bytes: float = 0.0,
    ) -> int:
        """Add a numerical kernel, timed per device kind, and return the handle of its output."""
        factor = self._factor()
        times = {kind: value * factor for kind, value in seconds(category, flops, touched_bytes).items()}
        task = self._build.task(name, times["cpu"], durations=times, category=category)
        return self._connect(task, reads, out_bytes)

    def tensor_kernel(
        self, name: str, category: str, reads: list[int], flops: float, touched: float, out: float
    ) -> int:
        """Add a kernel on tensors, whose sizes are given in values."""
        size = self._value_bytes
        return self.kernel(name, category, reads, flops=flops, touched_bytes=size * touched, out_bytes=size * out)

    def output(self, handle: int, out_bytes: float) -> int:
        """Add one more output to the task behind a handle."""
        return self._object(self._producer[handle], out_bytes)

    def graph(self) -> TaskGraph:
        """Make the graph of all steps."""
        return self._build.graph()

    def _factor(self) -> float:
        if self._noise == 0:
            return 1.0
        return float(np.exp(self._noise * self._random.standard_normal() - self._noise**2 / 2))

    def _connect(self, task: int, reads: Iterable[int], out_bytes: float) -> int:
        for handle in reads:
            self._build.read(task, handle)
        return self._object(task, out_bytes)

    def _object(self, task: int, out_bytes: float) -> int:
        self._producer.append(task)
        checks.makes_tasks(self._build.num_tasks, workload=self._build.name)
        checks.makes_edges(len(self._producer), workload=self._build.name)
        return self._build.object(task, out_bytes)

"""A slow, readable Doppler step: features and scores in plain Python, for comparison with the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto.core.problem import Problem


def z(values: list[float]) -> np.ndarray:
    row = np.array(values, dtype=np.float64)
    spread = row.std()
    return np.zeros(len(row)) if spread <= 1e-6 * abs(row.mean()) + 1e-30 else (row - row.mean()) / spread


class Twin:
    """The state of an episode, kept the obvious way."""

    def __init__(self, problem: Problem, fixed: Any) -> None:
        self.problem, self.p, self.fixed = problem, problem.arrays, fixed
        n = problem.num_tasks
        self.device: dict[int, int] = {}
        self.start, self.finish = np.zeros(n), np.zeros(n)
        self.free = np.zeros(problem.num_devices)

    def readers(self, v: int) -> list[tuple[int, float, float]]:
        """Readers of v with the size and the mean seconds of what they read; each read once."""
        found = []
        for o in range(self.p.out_ptr[v], self.p.out_ptr[v + 1]):
            for e in range(self.p.object_ptr[o], self.p.object_ptr[o + 1]):
                size, move_s = self.p.object_size[o], self.fixed.object_move_s[o]
                found.append((int(self.p.object_reader[e]), float(size), float(move_s)))
        return found

    def inputs(self, v: int) -> list[tuple[int, float]]:
        span = range(self.p.in_ptr[v], self.p.in_ptr[v + 1])
        return [(int(self.p.in_task[e]), float(self.p.in_size[e])) for e in span]

    def move(self, a: int, d: int, size: float) -> float:
        return 0.0 if a == d or size == 0 else float(self.p.latency[a, d] + size * self.p.inv_bandwidth[a, d])

    def ready(self, v: int, d: int) -> float:
        """When what is placed of v's inputs is on d."""
        arrivals = [self.finish[u] + self.move(self.device[u], d, s) for u, s in self.inputs(v) if u in self.device]
        return max([float(self.p.release[v]), *arrivals])

    def candidates(self) -> set[int]:
        n = self.problem.num_tasks
        return {v for v in range(n) if v not in self.device and all(u in self.device for u, _ in self.inputs(v))}

    def selection_features(self, window: list[int]) -> np.ndarray:
        m = self.problem.num_devices
        seconds = self.problem.device_duration
        rows: list[list[float]] = []
        for v in window:
            able = [d for d in range(m) if np.isfinite(seconds[v, d])]
            begins = [max(self.ready(v, d), self.free[d]) for d in able]
            ends = sorted(b + seconds[v, d] for b, d in zip(begins, able))
            placed = [
                (sum(u in self.device for u, _ in self.inputs(c)) + 1) / len(self.inputs(c))
                for c, _, _ in self.readers(v)
            ]
            regret = ends[1] - ends[0] if len(ends) > 1 else 0.0
            soonest = min(self.ready(v, d) for d in able)
            rows.append([*self.fixed.raw[v], soonest, ends[0], regret, min(begins), max([0.0, *placed])])
        table = np.array(rows)
        table[:, 8] = np.log1p((table[:, 8] - table[:, 8].min()) / self.fixed.scale_s)
        for f in range(8):
            table[:, f] = z(list(table[:, f]))
        return table

    def look(self, v: int, d: int) -> float:
        """When the readers of v end at the latest, each where it ends first, if v went to d."""
        m = self.problem.num_devices
        seconds = self.problem.device_duration
        end = max(self.ready(v, d), self.free[d]) + seconds[v, d]
        latest = end
        for c, size, _ in self.readers(v):
            ends = [max(self.ready(c, a), self.free[a], end + self.move(d, a, size)) + seconds[c, a] for a in range(m)]
            latest = max(latest, min(ends))
        return float(latest)

    def place(self, v: int, d: int) -> None:
        begin = max(self.ready(v, d), self.free[d])
        self.start[v], self.finish[v] = begin, begin + self.problem.device_duration[v, d]
        self.free[d] = self.finish[v]
        self.device[v] = d

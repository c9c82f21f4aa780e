"""The rack simulator once more, slow and readable; the compiled one is held equal to it by tests.

Speeds come from the definition of the fair filling, not from its algorithm: raise all speeds together, in
rational steps from one bottleneck to the next, each found by looking at every resource.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stretto.racks.kernels.state import Streams
from stretto.racks.machine_work import RackModel

_SAME_S = 1e-9


def reference_speeds(demands: Sequence[Mapping[int, float]]) -> list[float]:
    """Return the speed of each user of some resources; a demand is a share per resource at full speed."""
    speed: dict[int, float] = {}
    while len(speed) < len(demands):
        rising = [user for user in range(len(demands)) if user not in speed]
        limits: dict[int, float] = {}
        for resource in {r for user in rising for r in demands[user]}:
            used = sum(demands[user].get(resource, 0.0) * speed[user] for user in speed)
            asked = sum(demands[user].get(resource, 0.0) for user in rising)
            limits[resource] = max(0.0, 1.0 - used) / asked
        level = min([1.0, *limits.values()])
        stuck = {
            user
            for user in rising
            for resource in demands[user]
            if level < 1.0 and limits[resource] <= level * (1 + 1e-12)
        }
        speed |= dict.fromkeys(stuck or rising, level)
    return [speed[user] for user in range(len(demands))]


@dataclass
class _Running:
    task: int | None  # None while an FPGA is configured
    left_s: float
    demand: dict[int, float]
    speed: float = 0.0


@dataclass
class ReferenceRack:
    """One rack at a decision; the actions are those of ``racks/kernels/moves.py``."""

    model: RackModel
    streams: Streams
    instance: int
    now_s: float = 0.0
    running: dict[int, _Running] = field(default_factory=dict)
    config: dict[int, int] = field(default_factory=dict)
    ready: set[int] = field(default_factory=set)
    end_s: dict[int, float] = field(default_factory=dict)
    start_s: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._find_ready()

    @property
    def is_over(self) -> bool:
        return len(self.end_s) == int(self.streams.job_size[self.instance].sum())

    def tasks(self) -> list[int]:
        """Return the tasks of jobs that have arrived."""
        job, arrival = self.streams.job[self.instance], self.streams.arrival_s[self.instance]
        return [
            task for task in range(len(job)) if job[task] < len(arrival) and arrival[job[task]] <= self.now_s + _SAME_S
        ]

    def _find_ready(self) -> None:
        w, i = self.streams, self.instance
        done_before: dict[int, int] = {}
        for task in self.end_s:
            for e in range(w.after_ptr[i, task], w.after_ptr[i, task + 1]):
                later = int(w.after[i, e])
                done_before[later] = done_before.get(later, 0) + 1
        busy = {one.task for one in self.running.values()}
        self.ready = {
            task
            for task in self.tasks()
            if task not in self.end_s and task not in busy and done_before.get(task, 0) == w.num_before[i, task]
        }

    def head(self, kernel: int) -> int | None:
        """Return the next task of a kernel: of the earliest job, with the longest way to go, of lowest index."""
        w, i = self.streams, self.instance
        waiting = [task for task in self.ready if w.kernel[i, task] == kernel]
        return min(waiting, key=lambda task: (w.job[i, task], -w.rank_s[i, task], task), default=None)

    def valid(self) -> list[int]:
        """Return the valid actions."""
        a = self.model.arrays
        num_kernels, num_procs = a.duration_s.shape
        actions = []
        for k in range(num_kernels):
            for p in range(num_procs):
                if p in self.running or not np.isfinite(a.duration_s[k, p]) or self.head(k) is None:
                    continue
                present = self.config.get(p)
                if a.reconfigure_s[p] == 0 or present == k:
                    actions.append(k * num_procs + p)
                elif present is None or self.head(present) is None:
                    q = a.fpgas.tolist().index(p)
                    actions.append(num_kernels * num_procs + k * len(a.fpgas) + q)
        if self.running or self._next_arrival() < np.inf:
            actions.append(self.model.num_actions - 1)
        return sorted(actions)

    def is_due(self) -> bool:
        """Say whether something waits that an idle processor could do, perhaps once configured."""
        return any(action != self.model.num_actions - 1 for action in self.valid())

    def act(self, action: int) -> None:
        """Start something; waiting is left to :meth:`to_decision`."""
        a, w, i = self.model.arrays, self.streams, self.instance
        num_kernels, num_procs = a.duration_s.shape
        if action == self.model.num_actions - 1:
            return
        if action < num_kernels * num_procs:
            k, p = divmod(action, num_procs)
            task = self.head(k)
            assert task is not None
            demand = {r: float(share) for r, share in enumerate(a.demand[k, p]) if share > 0}
            self.running[p] = _Running(task, float(a.duration_s[k, p] * w.scale[i, task]), demand)
            self.start_s[task] = self.now_s
            self.ready.discard(task)
        else:
            k, q = divmod(action - num_kernels * num_procs, len(a.fpgas))
            p = int(a.fpgas[q])
            self.config[p] = k
            self.running[p] = _Running(None, float(a.reconfigure_s[p]), {})

    def to_decision(self, *, must_pass: bool) -> bool:
        """Go on until a decision is due; return whether the episode is over."""
        while must_pass or not self.is_due():
            must_pass = False
            if self.is_over:
                return True
            while not self._pass_time():
                pass
            self._find_ready()
        return False

    def _next_arrival(self) -> float:
        arrival = self.streams.arrival_s[self.instance]
        return float(min(arrival[arrival > self.now_s + _SAME_S], default=np.inf))

    def _levels(self) -> tuple[list[float], float]:
        """Return the level of each source now, and when the next one changes."""
        times, levels = self.streams.flow_s[self.instance], self.streams.flow_level[self.instance]
        now, change = [], np.inf
        for f in range(len(times)):
            place = int(np.searchsorted(times[f], self.now_s + _SAME_S, side="right")) - 1
            now.append(float(levels[f, place]))
            if place + 1 < len(times[f]):
                change = min(change, float(times[f, place + 1]))
        return now, change

    def _pass_time(self) -> bool:
        """Go on to the next event; return whether it is one that the scheduler sees."""
        levels, change_s = self._levels()
        demands = [one.demand for one in self.running.values()]
        for f, level in enumerate(levels):
            row = self.model.arrays.source_demand[f]
            demands.append({r: level * float(share) for r, share in enumerate(row) if level * share > 0})
        for one, speed in zip(self.running.values(), reference_speeds(demands), strict=False):
            one.speed = speed
        ends = [self.now_s + one.left_s / one.speed for one in self.running.values()]
        seen_s = min([self._next_arrival(), *ends])
        then_s = min(seen_s, change_s)
        for one in self.running.values():
            one.left_s -= (then_s - self.now_s) * one.speed
        self.now_s = then_s
        if seen_s > then_s + _SAME_S:
            return False
        for p in [p for p, one in self.running.items() if one.left_s <= 2 * _SAME_S]:
            task = self.running.pop(p).task
            if task is not None:
                self.end_s[task] = then_s
        return True

"""A host in virtual time: two or more cores that obey a contention law, foreign load that comes and goes, a driver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import Dispatcher, View
from stretto.engines.driver.driver import Driver, DriverRules
from stretto.engines.driver.events import Event, Start, TaskFinished, TaskStarted, Tick
from stretto.engines.host.dispatcher import HostDispatcher
from stretto.racks.host.law import LawValues
from stretto.racks.host.loads import CoreLoads
from stretto.racks.telemetry.core_times import ThreadTime

#: What two cores of one virtual machine did with numpy: products, and copies of 128 MB.
MEASURED_LAW = LawValues(0.75, 0.0, np.ones(2), np.array([0.05, 1.07]))
STEP_S = 0.01


def quiet(now_s: float) -> tuple[float, ...]:
    return (0.0, 0.0)


class VirtualSense:
    """Takes the place of the counters: exact readings of a virtual host."""

    def __init__(self, host: VirtualHost) -> None:
        self.host, self.loads = host, CoreLoads(host.num_cores)
        self.cpus = tuple(range(host.num_cores))
        self.trouble = ""

    def problem(self) -> str | None:
        return self.trouble or None

    def lost(self, device: int, horizon_s: float) -> float:
        return float(self.loads.forecast(horizon_s)[device])

    def cpu_of(self, device: int) -> int | None:
        return device

    def worker_time(self, device: int) -> ThreadTime | None:
        return ThreadTime(self.host.cpu_s[device], 0.0)


@dataclass
class VirtualHost:
    """Runs the tasks of a problem; tasks of category 0 are compute-bound, those of category 1 memory-bound."""

    problem: Problem
    law: LawValues = MEASURED_LAW
    foreign_load: Callable[[float], tuple[float, ...]] = quiet
    foreign_memory: Callable[[float], float] = lambda now_s: 0.0
    noise_sd: float = 0.0
    now_s: float = 0.0
    cpu_s: list[float] = field(default_factory=list)
    starts: list[tuple[int, int, float]] = field(default_factory=list)
    ends: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cpu_s = [0.0] * self.num_cores
        self.noise = np.exp(np.random.default_rng(7).normal(0.0, self.noise_sd, self.problem.num_tasks))

    @property
    def num_cores(self) -> int:
        return self.problem.num_devices

    def play(self, dispatcher: Dispatcher, *, limit_s: float = 1000.0) -> float:
        """Run everything; return the mean completion time."""
        watched = dispatcher if isinstance(dispatcher, HostDispatcher) else None
        driver = Driver(self.problem, dispatcher, DriverRules())
        running: dict[int, tuple[Start, float, float]] = {}
        self._take(driver.begin(), running, watched)
        while not driver.is_over:
            assert self.now_s < limit_s, "the run does not end"
            self.now_s += STEP_S
            events: list[Event] = [*self._work(running)]
            if watched is not None and isinstance(watched.sense, VirtualSense):
                lost = np.array([load / (1.0 + load) for load in self.foreign_load(self.now_s)])
                watched.sense.loads.take_in(lost, STEP_S)
            if self.now_s >= driver.next_release_s:
                events.append(Tick(self.now_s))
            if events:
                for event in events:
                    if watched is not None:
                        watched.on_event(event)
                self._take(driver.handle(events), running, watched)
        assert driver.is_done
        return float(np.mean(list(self.ends.values())))

    def _take(
        self, orders: list[object], running: dict[int, tuple[Start, float, float]], watched: HostDispatcher | None
    ) -> None:
        for order in orders:
            assert isinstance(order, Start)
            assert order.device not in running, "a core runs one task at a time"
            running[order.device] = (order, float(self.problem.device_duration[order.task, order.device]), self.now_s)
            self.starts.append((order.task, order.device, self.now_s))
            if watched is not None:
                watched.on_event(TaskStarted(order.task, order.device, order.attempt, self.now_s))

    def _work(self, running: dict[int, tuple[Start, float, float]]) -> list[TaskFinished]:
        """Let a step pass, and return what ended."""
        category = self.problem.graph.category
        assert category is not None
        load = self.foreign_load(self.now_s)
        law = replace(self.law, foreign=self.foreign_memory(self.now_s))
        share = [1.0 / (1.0 + load[core]) for core in range(self.num_cores)]
        rates = {}
        for core, (order, _, _) in running.items():
            others = [other for other in range(self.num_cores) if other != core]
            busy = sum(1.0 if other in running else min(load[other], 1.0) for other in others) / max(len(others), 1)
            near = [(int(category[running[other][0].task]), share[other]) for other in others if other in running]
            beside = sum(float(law.demand[kind]) * part for kind, part in near)
            slowdown = law.slowdown(int(category[order.task]), busy, beside) * self.noise[order.task]
            rates[core] = share[core] / slowdown
        ended = []
        for core, rate in rates.items():
            order, left, begin_s = running[core]
            self.cpu_s[core] += STEP_S * share[core]
            running[core] = (order, left - rate * STEP_S, begin_s)
            if running[core][1] <= 1e-9:
                del running[core]
                assert order.task not in self.ends, "a task ran twice"
                self.ends[order.task] = self.now_s
                ended.append(TaskFinished(order.task, core, order.attempt, begin_s, self.now_s))
        return ended


def mixed_problem(
    num_compute: int, num_memory: int, *, seconds: float = 0.15, seed: int = 0, num_edges: int = 0, cores: int = 2
) -> Problem:
    """Return independent tasks of both kinds in a random order, or with some edges."""
    rng = np.random.default_rng(seed)
    kinds = rng.permutation(np.repeat([0, 1], [num_compute, num_memory])).astype(np.int32)
    n = len(kinds)
    pairs = {tuple(sorted(rng.choice(n, 2, replace=False).tolist())) for _ in range(num_edges)} if n > 1 else set()
    graph = TaskGraph.from_edges(
        (seconds * rng.uniform(0.7, 1.3, n)).tolist(), [a for a, _ in sorted(pairs)], [b for _, b in sorted(pairs)]
    )
    graph = replace(graph, categories=("compute", "memory"), category=kinds).with_meta(durations="measured (virtual)")
    return Problem.of(graph, Cluster.parse(f"cpu:{cores}"))


def watching(host: VirtualHost, rule: str = "look-ahead", **options: object) -> HostDispatcher:
    """Return a dispatcher that watches a virtual host."""
    found = HostDispatcher(rule=rule, **options)  # type: ignore[arg-type]
    found.sense = VirtualSense(host)  # type: ignore[assignment]
    return found


class Recorded:
    """A dispatcher that keeps its views."""

    def __init__(self, inner: Dispatcher) -> None:
        self.inner, self.views = inner, list[View]()

    def choose(self, view: View) -> object:
        self.views.append(view)
        return self.inner.choose(view)

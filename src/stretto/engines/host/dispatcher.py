"""Dispatchers that know their host: they see its load, learn how tasks slow each other down, and place by both.

Where the counters fail, ``greedy`` decides and the reason is told; a run never ends because of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from stretto.core.csr import Floats
from stretto.core.problem import Problem
from stretto.core.provenance import MEASURED, RECORDED, duration_basis
from stretto.engines.driver.dispatch import GreedyDispatcher, View
from stretto.engines.driver.events import Event, TaskFailed, TaskFinished, TaskStarted
from stretto.engines.host.ledger import TaskLedger
from stretto.racks.host.decide import HostView, earliest_completion, look_ahead, warm_up, weights_of
from stretto.racks.host.law import ContentionLaw, LawValues
from stretto.racks.host.parameters import HostParams
from stretto.racks.kernels.host_rollout import IDLE
from stretto.racks.telemetry.host_machine import HostMachine, host_machine
from stretto.racks.telemetry.sense import DeviceWorker, HostSampler, HostSense

Rule = Literal["look-ahead", "earliest-completion"]
#: A task that took longer than expected has at least this share of its work left.
_LEAST_LEFT = 0.05
#: What a running task tells of its lateness counts again when it is later by this factor.
_AGAIN = 1.5
_INTERPRETERS = frozenset({"sh", "bash", "dash", "zsh", "env", "python", "python3", "perl", "Rscript", "julia"})
_NUMBERS = re.compile(r"([-_./: ]*\d+)+$")


def category_of(name: str, category: str) -> str:
    """Return the kind of a task: its category, or its name without the numbers at the end.

    The category of a command is its program; a shell or an interpreter says nothing about the work.
    """
    told = "" if category in _INTERPRETERS else category
    return told or _NUMBERS.sub("", name) or "task"


class _Tasks:
    """What a problem says of its tasks."""

    def __init__(self, problem: Problem) -> None:
        graph = problem.graph
        self.problem = problem
        self.category = kinds_of(problem)
        self.seconds = problem.device_duration
        parents: list[list[int]] = [[] for _ in range(problem.num_tasks)]
        source, target, _ = graph.edges
        for parent, child in zip(source.tolist(), target.tolist(), strict=True):
            parents[child].append(parent)
        self.weight = weights_of(problem.num_tasks, graph.topo.tolist(), parents)
        self.is_measured = duration_basis(graph).startswith((MEASURED, RECORDED))


@dataclass
class HostDispatcher:
    """Places tasks on the cores of this host by a belief about its load and a learned law of contention.

    It can be sent to another process (the scheduler of Dask) before it was first asked.

    Attributes
    ----------
    rule
        ``look-ahead`` plays candidates to the end of the waiting tasks;
        ``earliest-completion`` gives each task the core where it is expected to end first.
    learned
        What an earlier run has learned (:meth:`learned_json`).
    root
        Of the file system whose counters are read.
    on_fallback
        Called with time and reason when greedy begins to decide, and with an empty reason when it no longer does.
    look_again_s
        While tasks wait beside an idle core, the state of the host is looked at again after so long.
    """

    name: str = "symphony"
    rule: Rule = "look-ahead"
    learned: Mapping[str, Any] | None = None
    root: Path = Path("/")
    params: HostParams = field(default_factory=HostParams)
    on_fallback: Callable[[float, str], None] | None = None
    look_again_s: float | None = 0.25
    sense: HostSense | None = None
    num_decisions: int = field(default=0, init=False)
    num_fallbacks: int = field(default=0, init=False)
    num_held: int = field(default=0, init=False)
    reasons: dict[str, int] = field(default_factory=dict, init=False)
    _live: _LiveHost | None = field(default=None, init=False, repr=False)

    def choose(self, view: View) -> Sequence[tuple[int, int]]:
        """Return pairs of a task and a device; devices that are better left idle get none."""
        if not any(view.is_alive[device] and not held for device, held in enumerate(view.issued)):
            return ()
        live = self.live(view.problem)
        live.follow(view)
        self.num_decisions += 1
        reason = live.problem_now()
        self._tell(view.now_s, reason)
        if reason:
            self.num_fallbacks += 1
            self.reasons[reason] = self.reasons.get(reason, 0) + 1
            chosen: Sequence[tuple[int, int]] = GreedyDispatcher().choose(view)
        else:
            chosen = live.decide(view, self.rule)
            num_idle = sum(is_alive and not held for held, is_alive in zip(view.issued, view.is_alive, strict=True))
            self.num_held += len(chosen) < min(num_idle, len(view.ready))
        live.placed(view, chosen)
        return chosen

    def begin(self, problem: Problem) -> None:
        """Compile what decides, read the topology and start the sampler, before the first task is waiting."""
        self.live(problem)

    def on_event(self, event: Event) -> None:
        """Take what happened, for engines that tell."""
        if self._live is not None:
            self._live.on_event(event)

    def on_worker(self, device: int, worker: DeviceWorker) -> None:
        """Take who serves a device, for engines that tell."""
        self._begun().watch(device, worker)

    def close(self) -> None:
        """Stop the sampler."""
        if self._live is not None:
            self._live.close()

    def live(self, problem: Problem) -> _LiveHost:
        """Return the present state, for a problem."""
        found = self._begun()
        found.take_up(problem)
        return found

    def learned_json(self) -> dict[str, Any] | None:
        """Return what was learned, for a later run; None before anything ran."""
        return None if self._live is None or not any(self._live.law.num_seen) else self._live.law.to_json()

    def belief_now(self) -> HostBeliefNow | None:
        """Return the present belief about the host, for those who show it; None before the first decision."""
        return None if self._live is None else self._live.belief_now()

    @property
    def sampling_cost(self) -> float:
        """Share of a core that sampling took."""
        return 0.0 if self._live is None or self._live.sampler is None else self._live.sampler.cost

    def notes(self) -> list[str]:
        """Return what a reader of the result should know."""
        found = []
        if self.num_held:
            found.append(
                f"{self.name} left a core idle on purpose in {self.num_held:,} of {self.num_decisions:,} decisions"
            )
        for reason, num in self.reasons.items():
            found.append(f"greedy decided {num:,} of {self.num_decisions:,} times: {reason}")
        return found

    def _begun(self) -> _LiveHost:
        if self._live is None:
            self._live = _LiveHost(self.root, self.params, self.sense, self.learned)
        return self._live

    def _tell(self, at_s: float, reason: str) -> None:
        live = self._begun()
        if reason != live.told and self.on_fallback is not None:
            self.on_fallback(at_s, reason)
        live.told = reason

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_live": None, "on_fallback": None, "sense": None}


@dataclass(frozen=True, eq=False)
class HostBeliefNow:
    """What a dispatcher believes about its host at one moment.

    Attributes
    ----------
    load, load_sd, load_raw
        By CPU of ``cpus``: the share of its time that foreign programs take, or would take beside a task.
    memory, memory_sd
        Foreign demand for memory bandwidth.
    running
        Our task on each CPU.
    """

    host: HostMachine
    cpus: tuple[int, ...]
    load: Floats
    load_sd: Floats
    load_raw: Floats
    memory: float
    memory_sd: float
    running: Mapping[int, str]


class _LiveHost:
    """The state of a dispatcher while it is in use."""

    def __init__(
        self, root: Path, params: HostParams, sense: HostSense | None, learned: Mapping[str, Any] | None
    ) -> None:
        warm_up()
        self.params, self.learned = params, learned
        self.host: HostMachine = host_machine(root)
        self.sampler: HostSampler | None = None
        if sense is None:
            sense = HostSense(root, params=params)
            self.sampler = HostSampler([sense.step])
            self.sampler.start()
        self.sense = sense
        self.law = ContentionLaw(params)
        self.told = ""
        self.tasks: _Tasks | None = None
        self.ledger = TaskLedger(np.zeros((0, 0)), self._cpu_s, self._lost_now)
        self._has_events = False
        self._is_fully_seen = False  # whether the driver asks at the next end

    def take_up(self, problem: Problem) -> None:
        """Get ready for a problem; the law keeps what it knows."""
        if self.tasks is not None and self.tasks.problem is problem:
            return
        is_first = self.tasks is None
        self.tasks = _Tasks(problem)
        if is_first:
            self.law = ContentionLaw(self.params, is_measured=self.tasks.is_measured)
            if self.learned is not None:
                self.law.start_from(self.learned)
        self.ledger = TaskLedger(self._near(problem.num_devices), self._cpu_s, self._lost_now)

    def watch(self, device: int, worker: DeviceWorker) -> None:
        self.sense.watch(device, worker)
        if self.tasks is not None:
            self.ledger.near = self._near(self.tasks.problem.num_devices)

    def close(self) -> None:
        if self.sampler is not None:
            self.sampler.close()

    def problem_now(self) -> str:
        """Return why the counters cannot be used, nothing while they can."""
        if self.sampler is not None and not self.sampler.is_alive:
            return self.sampler.failure or "the sampler of the counters has ended"
        return self.sense.problem() or ""

    def belief_now(self) -> HostBeliefNow:
        """Return what is believed now."""
        loads, running = self.sense.loads, {}
        for device, own in list(self.ledger.running.items()):
            cpu = self.sense.cpu_of(device)
            if cpu is not None and self.tasks is not None:
                running[cpu] = self.tasks.problem.graph.task_name(own.task)
        load_sd = np.sqrt(loads.variance)
        memory = self.law.values().foreign
        return HostBeliefNow(
            self.host, self.sense.cpus, loads.now, load_sd, loads.raw, memory, self.law.foreign_sd, running
        )

    # What happened -------------------------------------------------------------------------------

    def on_event(self, event: Event) -> None:
        if self.tasks is None:
            return
        if isinstance(event, TaskStarted):
            self._has_events = True
            self._start(event.task, event.device, event.at_s)
        elif isinstance(event, TaskFinished):
            self._end(event.task, event.device, event.at_s)
        elif isinstance(event, TaskFailed):
            self.ledger.drop(event.task)

    def follow(self, view: View) -> None:
        """Infer ends from what is no longer there, where the engine tells nothing."""
        self.law.advance(view.now_s)
        held = {task for tasks in view.issued for task in tasks}
        for device, own in list(self.ledger.running.items()):
            if own.task in held:
                continue
            if self._is_fully_seen and not self._has_events and own.task not in view.ready:
                self._end(own.task, device, view.now_s)
            self.ledger.drop(own.task)
        self._note_late(view.now_s)

    def placed(self, view: View, chosen: Sequence[tuple[int, int]]) -> None:
        """Take tasks that were just placed as running, until an event says it exactly."""
        for task, device in chosen:
            if device not in self.ledger.running:
                self._start(task, device, view.now_s)
        self._is_fully_seen = len(chosen) < len(view.ready)

    def _start(self, task: int, device: int, at_s: float) -> None:
        assert self.tasks is not None
        stated_s = float(self.tasks.seconds[task, device])
        self.ledger.start(task, device, self.tasks.category[task], stated_s, at_s)

    def _end(self, task: int, device: int, at_s: float) -> None:
        found = self.ledger.end(task, device, at_s)
        if found is not None:
            self.law.advance(at_s)
            self.law.observe(found)

    def _note_late(self, now_s: float) -> None:
        """Let tasks that should have ended by now tell of what slows them down."""
        values = self.law.values()
        for device, own in self.ledger.running.items():
            seen = self.ledger.so_far(device, now_s)
            if seen.cpu_s > own.alarm * self._expected_s(values, own.category, own.stated_s):
                own.alarm *= _AGAIN
                self.law.observe(seen)

    # The decision ---------------------------------------------------------------------------------

    def decide(self, view: View, rule: Rule) -> Sequence[tuple[int, int]]:
        assert self.tasks is not None
        seen = self._host_view(view, self.tasks)
        law = self.law.values()
        return look_ahead(seen, law, self.params) if rule == "look-ahead" else earliest_completion(seen, law)

    def _host_view(self, view: View, tasks: _Tasks) -> HostView:
        num = len(view.issued)
        ready = np.array(view.ready, dtype=np.int64)
        category = np.array([self.law.index(tasks.category[task]) for task in view.ready], dtype=np.int64)
        for held in view.issued:
            for task in held:
                self.law.index(tasks.category[task])
        law = self.law.values()
        work_s = np.maximum(tasks.seconds[ready], 1e-9) * law.scale[category][:, None]
        finite = work_s[np.isfinite(work_s)]
        horizon_s = float(np.median(finite)) if len(finite) else 1.0
        running, rest = np.full(num, IDLE), np.ones((3, num))
        for device, held in enumerate(view.issued):
            if held:
                running[device] = self.law.index(tasks.category[held[0]])
                rest[:, device] = self._rest(held, device, law, view.now_s, tasks)
        return HostView(
            np.array([self.sense.lost(device, horizon_s) for device in range(num)]),
            self.ledger.near,
            np.array(view.is_alive, dtype=bool),
            running,
            rest[0],
            rest[1],
            rest[2],
            ready,
            category,
            work_s,
            tasks.weight[ready],
        )

    def _rest(
        self, held: tuple[int, ...], device: int, law: LawValues, now_s: float, tasks: _Tasks
    ) -> tuple[float, float, float]:
        """Return what a device has left of its tasks, their whole work, and their weight."""
        works = [float(tasks.seconds[task, device] * law.scale[self.law.index(tasks.category[task])]) for task in held]
        left = list(works)
        own = self.ledger.running.get(device)
        if own is not None and own.task == held[0]:
            seen = self.ledger.so_far(device, now_s)
            k = self.law.index(own.category)
            beside = sum(amount * law.demand[self.law.index(name)] for name, amount in seen.beside.items())
            left[0] -= seen.cpu_s / law.slowdown(k, seen.busy, float(beside))
        left[0] = max(left[0], _LEAST_LEFT * works[0])
        return max(sum(left), 1e-9), max(sum(works), 1e-9), float(sum(tasks.weight[task] for task in held))

    def _expected_s(self, law: LawValues, category: str, stated_s: float) -> float:
        """Return the CPU time that a task of a category takes beside what runs now."""
        k = self.law.index(category)
        others = [own.category for own in self.ledger.running.values()]
        others.remove(category)
        neighbors = float(sum(law.demand[self.law.index(name)] for name in others))
        return stated_s * float(law.scale[k]) * law.slowdown(k, float(len(others)), neighbors)

    def _near(self, num_devices: int) -> Any:
        return self.host.nearness(tuple(self.sense.cpu_of(device) for device in range(num_devices)))

    def _cpu_s(self, device: int) -> float | None:
        found = self.sense.worker_time(device)
        return None if found is None else found.run_s

    def _lost_now(self, device: int) -> float:
        return self.sense.lost(device, 0.01)


def kinds_of(problem: Problem) -> list[str]:
    """Return the kind of each task of a problem."""
    graph = problem.graph
    return [category_of(graph.task_name(t), graph.category_name(t)) for t in range(problem.num_tasks)]

"""A run of a task graph: the real driver, dispatchers, session and run log on virtual devices that fail.

The engine keeps an account of its own of what the driver may order, and checks every order against it.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import Dispatcher, GreedyDispatcher, LateDispatcher, View
from stretto.engines.driver.driver import Driver, DriverRules
from stretto.engines.driver.events import (
    CHARGED,
    Cancel,
    DeviceJoined,
    DeviceLost,
    Event,
    Instruction,
    Start,
    TaskFailed,
    TaskFinished,
    TaskStarted,
    Tick,
    Transfer,
    TransferFinished,
)
from stretto.engines.driver_engine import DriverEngine
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.outputs import digest
from stretto.engines.recorder import Recorder, driver_for
from stretto.engines.session import run_recorded
from stretto.engines.simulated import SimulatedEngine
from stretto.engines.work import Work, timed_output
from stretto.runlog import RunLog
from stretto.testing.engine_checks import expected_outputs, random_plan

#: Seconds that a decision may take.
DECISION_S = 2.0


@dataclass(frozen=True)
class RunSpec:
    """What is run, drawn with the seed of the history.

    Attributes
    ----------
    logs_at_worker
        Whether the end of a task is logged where it ran, as the engine ``local`` does.
    """

    work: Work
    plan: Plan
    cluster: Cluster
    dispatcher: str
    num_queued: int
    keeps_data: bool
    moves_data: bool
    logs_at_worker: bool
    is_simulated: bool
    discipline: str | None
    max_attempts: int


def draw_run(rng: random.Random) -> RunSpec:
    """Draw a small run."""
    numbers = np.random.default_rng(rng.getrandbits(32))
    n, m = rng.randint(3, 9), rng.randint(1, 3)
    pairs = [(u, v) for v in range(n) for u in range(v) if rng.random() < 1.6 / max(2, v)]
    graph = TaskGraph.from_edges(
        numbers.integers(1, 6, n).astype(float),
        np.array([u for u, _ in pairs], dtype=np.int64),
        np.array([v for _, v in pairs], dtype=np.int64),
        numbers.integers(0, 3, len(pairs)).astype(float),
        name="history",
    )
    devices = tuple(Device(f"d{i}", "cpu", float(numbers.choice([1.0, 2.0]))) for i in range(m))
    cluster = Cluster(devices, np.zeros((m, m)), np.full((m, m), 4.0))
    if rng.random() < 0.35:
        cluster = Cluster.parse(f"node:{m}*2c4GB")
    is_simulated = rng.random() < 0.1
    return RunSpec(
        work=Work.timed(graph),
        plan=random_plan(numbers, graph, cluster),
        cluster=cluster,
        # The simulator trusts dispatchers: a time limit would make its results depend on the machine.
        dispatcher=rng.choice(["plan", "plan", "greedy", "late"] + ([] if is_simulated else ["faulty", "faulty"])),
        num_queued=rng.choice([0, 0, 1, 2]),
        keeps_data=rng.random() < 0.6,
        moves_data=rng.random() < 0.4,
        logs_at_worker=rng.random() < 0.5,
        is_simulated=is_simulated,
        discipline=rng.choice([None, None, "sequence", "work-conserving"]),
        max_attempts=rng.choice([1, 2, 6]),
    )


@dataclass
class FaultyDispatcher:
    """Decides like another dispatcher, except where the history has it raise, hang or answer nonsense."""

    world: Any
    inner: Dispatcher = field(default_factory=GreedyDispatcher)
    num_decisions: int = 0

    def choose(self, view: View) -> Sequence[tuple[int, int]]:
        self.num_decisions += 1
        self.world.check_view(view)
        mood = self.world.moods.pop(("dispatcher", self.num_decisions), "")
        if mood == "raises":
            raise ZeroDivisionError("a faulty dispatcher")
        if mood == "hangs":
            self.world.clock.sleep(40.0)
        if mood == "nonsense":
            first, wrong = view.ready[0], len(view.is_alive)
            return [(first, wrong)] if self.num_decisions % 2 else [(first, 0), (first, 0)]
        if mood == "nothing":
            return []
        return self.inner.choose(view)


class RunTruth:
    """What the world knows about a run, over all its processes."""

    def __init__(self, world: Any, spec: RunSpec) -> None:
        self.world, self.spec = world, spec
        self.problem = Problem.of(spec.work.graph, spec.cluster)
        self.expected = expected_outputs(spec.work)
        self.committed: set[int] = set()  # ends that are on disk and were reported
        self.num_seen: int = 0  # events of the run in the log
        self.run_id: str | None = None
        self.status: str | None = None
        self.is_cancelled = False
        self.names = {spec.work.graph.task_name(task): task for task in range(spec.work.graph.num_tasks)}


@dataclass(frozen=True)
class VirtualEngine(DriverEngine):
    """Runs plans on the virtual devices of a world."""

    world: Any = None

    def available(self) -> str | None:
        return None

    def play(self, problem: Problem, decider: Plan | Dispatcher, work: Work, options: RunOptions) -> RunResult:
        spec = self.world.truth.spec
        rules = DriverRules(num_queued=spec.num_queued, keeps_data=spec.keeps_data, moves_data=spec.moves_data)
        driver = driver_for(problem, decider, work, options, rules)
        return Site(self.world, driver, work, options).play()


class Site:
    """Virtual devices and the messages to and from them, as one engine sees them."""

    def __init__(self, world: Any, driver: Driver, work: Work, options: RunOptions) -> None:
        self.world, self.clock, self.truth = world, world.clock, world.truth
        self.driver, self.work, self.options = driver, work, options
        self.recorder = Recorder(work, driver, options)
        self.begin_s = self.clock.now_s
        m = driver.problem.num_devices
        self.alive = [True] * m
        self.told_alive = list(self.alive)  # as far as the driver was told
        self.num_moving = 0
        self.was_alone = False  # the driver once knew of no device
        self.open: dict[tuple[int, int], tuple[int, float]] = {}  # (task, attempt): device, deadline
        self.queues: list[list[Start]] = [[] for _ in range(m)]  # what devices have before them
        self.busy: dict[tuple[int, int], float] = {}  # (task, attempt): started
        self.inbox: list[tuple[float, int, Event]] = []
        self.count = itertools.count()
        self.outputs: dict[int, object] = dict(options.done)
        self.holders: dict[int, set[int]] = {task: {max(driver.device[task], 0)} for task in options.done}
        self.arrived: set[tuple[int, int]] = set()
        self.charged = [0] * work.graph.num_tasks
        self.ended: set[int] = set(options.done)
        self.dropped: set[int] = set()  # tasks whose output was lost
        self.missed: set[int] = set()  # those of which the driver knows
        world.site = self

    # The loop of an engine --------------------------------------------------------------------------------------

    def play(self) -> RunResult:
        driver = self.driver
        self._obey(driver.begin())
        is_interrupted = False
        while not driver.is_over:
            if self.truth.is_cancelled and not driver.is_stopping:
                is_interrupted = True
                self._obey(driver.stop())
            events = self._next_events()
            for event in events:
                self._note(event)
            before_s = self.clock.now_s
            found = driver.handle(events)
            self._check_budget(self.clock.now_s - before_s)
            self._obey(found)
        has_failed = any(count >= self.truth.spec.max_attempts for count in self.charged)
        is_meant = driver.is_done or driver.is_stopping or has_failed or self.was_alone
        self.clock.need(is_meant, "the run ends although no task has failed for good")
        return self.recorder.result("virtual", is_timed=True, is_interrupted=is_interrupted)

    def _check_budget(self, seconds: float) -> None:
        # A view is shown again after each answer, so one event may lead to some decisions.
        most = DECISION_S * (1 + self.work.graph.num_tasks) + 1e-6
        self.clock.need(seconds <= most, f"a decision took {seconds:.1f} s: more than the dispatcher's budget")

    def _next_events(self) -> list[Event]:
        now = self._now()
        due = min(
            self.driver.next_release_s,
            self.inbox[0][0] if self.inbox else math.inf,
            min((deadline for _, deadline in self.open.values()), default=math.inf),
            now + 1.0 if self.num_moving else math.inf,
        )
        self.clock.need(due < math.inf or self.truth.is_cancelled, "the run is stuck: nothing runs, and nothing is due")
        # Whoever drives a run looks up at least once a second: for Ctrl-C, and for devices.
        self.clock.wait(lambda: bool(self.inbox) and self.inbox[0][0] <= self._now(), min(max(due - now, 1e-9), 1.0))
        self.clock.op("looking for messages")
        events: list[Event] = []
        while self.inbox and self.inbox[0][0] <= self._now():
            events.append(heapq.heappop(self.inbox)[2])
        for (task, attempt), (device, deadline) in list(self.open.items()):
            if deadline <= self._now() and not any(_is_about(event, task, attempt) for event in events):
                self._stop(task, attempt, device)
                events.append(TaskFailed(task, device, attempt, self._now(), "timeout", "gave no sign of life"))
        return [*events, Tick(self._now())]

    def _note(self, event: Event) -> None:
        driver = self.driver
        if isinstance(event, (TaskFinished, TaskFailed)):
            is_current = driver.is_current(event.task, event.device, event.attempt)
            if is_current:
                self.open.pop((event.task, event.attempt), None)
            if isinstance(event, TaskFailed):
                self.charged[event.task] += is_current and event.blame in CHARGED
                self.dropped.update(event.lost)
            elif is_current:
                self._finish(event)
                return
        elif isinstance(event, DeviceLost):
            self.open = {key: (device, due) for key, (device, due) in self.open.items() if device != event.device}
            self.missed |= self.dropped
            self.told_alive[event.device] = False
            self.was_alone = self.was_alone or not any(self.told_alive)
        elif isinstance(event, DeviceJoined):
            self.told_alive[event.device] = True
        self.recorder.note(event)

    def _finish(self, event: TaskFinished) -> None:
        """Take an end: what the log has when this returns is committed, unless the disk has failed meanwhile."""
        task = event.task
        value = self.outputs.get(task, self.truth.expected[task])
        failed = self.clock.num_failed_ops
        self.recorder.deliver(task, lambda: value)
        self.recorder.note(event)
        if self.clock.num_failed_ops == failed:
            self.truth.committed.add(task)
        self.clock.tell(f"the end of task {task}, attempt {event.attempt}, is recorded")
        self.ended.add(task)
        if self.holders[task]:
            self.dropped.discard(task)
            self.missed.discard(task)

    # What the driver orders -----------------------------------------------------------------------------------------

    def _obey(self, orders: Sequence[Instruction]) -> None:
        for order in orders:
            if isinstance(order, Start):
                self._check_start(order)
                self._send(order)
            elif isinstance(order, Cancel):
                self._stop(order.task, order.attempt, order.device)
                self._post(0.1, TaskFailed(order.task, order.device, order.attempt, self._now(), "cancelled", "asked"))
            elif isinstance(order, Transfer):
                self._move(order)
        for device in range(len(self.queues)):
            self._work(device)

    def _check_start(self, order: Start) -> None:
        need, driver, task, device = self.clock.need, self.driver, order.task, order.device
        what = f"task {task} on device {device}, attempt {order.attempt}"
        need(self.told_alive[device], f"{what}: that device is lost")
        need(driver.tables.can_run(task, device), f"{what}: that device cannot run it")
        need(not driver.is_stopping, f"{what}: started although the run is stopping")
        need(all(one != task for one, _ in self.open), f"{what}: it is already running")
        need(
            task not in self.truth.committed or task in self.dropped,
            f"{what}: started again although its end was committed",
        )
        for parent in self.work.parents[task]:
            is_there = parent in self.ended and (parent not in self.missed or self.truth.spec.moves_data)
            need(is_there, f"{what}: its parent {parent} has not ended")
        if self.truth.spec.moves_data:
            for item in driver.tables.reads[task]:
                producer = driver.tables.producer[item]
                is_here = device in self.holders.get(producer, ()) or (item, device) in self.arrived
                is_gone = not self.alive[device]  # the driver may not know yet
                need(driver.tables.size[item] == 0 or is_here or is_gone, f"{what}: object {item} has not arrived")
        need(self.charged[task] < self.truth.spec.max_attempts, f"{what}: it has failed for good")
        self.open[task, order.attempt] = (device, math.inf)
        self._check_capacity(device, what)

    def _check_capacity(self, device: int, what: str) -> None:
        here = [task for (task, _), (where, _) in self.open.items() if where == device]
        packing = self.driver.problem.packing
        if packing is not None and packing.packs[device]:
            need = packing.need[here].sum(axis=0)
            self.clock.need(bool(np.all(need <= packing.capacity[device])), f"{what}: the node is over its capacity")
        else:
            most = 1 + self.truth.spec.num_queued
            self.clock.need(len(here) <= most, f"{what}: the device has {len(here)} tasks, {most} at most")

    # Devices ----------------------------------------------------------------------------------------------------------

    def _send(self, order: Start) -> None:
        self.clock.tell(f"task {order.task}, attempt {order.attempt}, is sent to device {order.device}")
        fate = self.world.message_fate("order")
        deadline = self._now() + 15.0 * (1 + len(self.queues[order.device])) + 30.0
        self.open[order.task, order.attempt] = (order.device, deadline)
        if fate != "lost" and self.alive[order.device]:
            self.queues[order.device].append(order)

    def _work(self, device: int) -> None:
        """Have a device begin what it has before it: a node everything, another device one task at a time."""
        packs = self.driver.problem.packing is not None and self.driver.problem.packing.packs[device]
        for place, order in enumerate(list(self.queues[device])):
            if (place > 0 and not packs) or (order.task, order.attempt) in self.busy or not self.alive[device]:
                continue
            self._begin(order)

    def _begin(self, order: Start) -> None:
        key = order.task, order.attempt
        self.busy[key] = self._now()
        if self.world.message_fate("start report") == "":
            self._post(0.05, TaskStarted(order.task, order.device, order.attempt, self._now()))
        lost = [parent for parent in self.work.parents[order.task] if not self._has_data(parent)]
        if lost:
            self.clock.tell(f"task {order.task} misses the outputs of {lost}")
        seconds = self.driver.tables.seconds(order.task, order.device) * self.world.slowness(order.device)
        self.clock.at(self.clock.now_s + (0.05 if lost else seconds), lambda: self._end(order, tuple(lost)))

    def _has_data(self, task: int) -> bool:
        spec = self.truth.spec
        return spec.keeps_data or spec.moves_data or task in self.options.done or bool(self.holders.get(task))

    def _end(self, order: Start, lost: tuple[int, ...]) -> None:
        key = order.task, order.attempt
        process = self.world.run_process
        if key not in self.busy or self.world.site is not self or not process.is_running:
            return
        start_s, task = self.busy.pop(key), order.task
        if order in self.queues[order.device]:
            self.queues[order.device].remove(order)
        trouble = self.world.trouble()
        if lost:
            self._report(TaskFailed(task, order.device, order.attempt, self._now(), "input", "its input is gone", lost))
        elif trouble:
            self._report(TaskFailed(task, order.device, order.attempt, self._now(), trouble, "a fault"))
        else:
            value = timed_output(task, [self.outputs[parent] for parent in self.work.inputs(task)])
            self.clock.need(value == self.truth.expected[task], f"task {task} was given wrong inputs")
            event = TaskFinished(task, order.device, order.attempt, start_s, self._now(), digest(value))
            self.outputs[task] = value
            self.holders[task] = {order.device}
            if self.truth.spec.logs_at_worker and self.options.on_done is not None:
                self.options.on_done(event, value)
            self._report(event)
        self._work(order.device)

    def _report(self, event: TaskFinished | TaskFailed) -> None:
        fate = self.world.message_fate("report")
        if fate != "lost":
            self._post(20.0 if fate == "late" else 0.05, event)
        if fate == "doubled":
            self._post(7.0, event)

    def _move(self, order: Transfer) -> None:
        producer = self.driver.tables.producer[order.item]
        need = self.clock.need
        is_there = order.source in self.holders.get(producer, ()) or (order.item, order.source) in self.arrived
        is_gone = not self.alive[order.source]  # the driver may not know yet
        need(is_there or is_gone, f"object {order.item} is to be sent from device {order.source}, which lacks it")
        fate = self.world.message_fate("transfer")

        def arrive() -> None:
            self.num_moving -= 1
            if self.alive[order.target] and self.world.site is self:
                self.arrived.add((order.item, order.target))
                self._post(0.0, TransferFinished(order.item, order.target, self._now()))
                if fate == "doubled":
                    self._post(3.0, TransferFinished(order.item, order.target, self._now()))

        self.num_moving += 1
        self.clock.at(self.clock.now_s + (12.0 if fate in ("late", "lost") else 0.5), arrive)

    def lose(self, device: int) -> None:
        """Lose a device with what it runs and, unless data is kept elsewhere, what it holds."""
        if device >= len(self.alive) or not self.alive[device] or sum(self.alive) == 1:
            return
        self.clock.tell(f"device {device} is lost")
        self.alive[device] = False
        for order in self.queues[device]:
            self.busy.pop((order.task, order.attempt), None)
        self.queues[device] = []
        if not self.truth.spec.keeps_data:
            self.arrived = {(item, where) for item, where in self.arrived if where != device}
            for task, where in self.holders.items():
                where.discard(device)
                if not where:
                    self.dropped.add(task)
        self._post(0.2, DeviceLost(device, self._now(), "a fault"))

    def join(self, device: int) -> None:
        """Bring a lost device back."""
        if device < len(self.alive) and not self.alive[device]:
            self.clock.tell(f"device {device} is back")
            self.alive[device] = True
            self._post(0.3, DeviceJoined(device, self._now()))

    def _stop(self, task: int, attempt: int, device: int) -> None:
        self.open.pop((task, attempt), None)
        self.busy.pop((task, attempt), None)
        self.queues[device] = [one for one in self.queues[device] if (one.task, one.attempt) != (task, attempt)]

    def _post(self, delay_s: float, event: Event) -> None:
        heapq.heappush(self.inbox, (self._now() + delay_s, next(self.count), event))

    def _now(self) -> float:
        return self.clock.now_s - self.begin_s


def _is_about(event: Event, task: int, attempt: int) -> bool:
    return isinstance(event, (TaskFinished, TaskFailed)) and (event.task, event.attempt) == (task, attempt)


def run_main(world: Any) -> None:
    """What the process of a run does: start the run, or resume it where the log has one."""
    truth: RunTruth = world.truth
    spec = truth.spec
    with RunLog.open() as log:
        known = log.runs("run", limit=1)
        check_log(world, log)
        engine = SimulatedEngine() if spec.is_simulated else VirtualEngine(world)
        options = RunOptions(
            discipline=spec.discipline, max_attempts=spec.max_attempts, keep="all", decision_s=DECISION_S
        )
        makers = {
            "greedy": GreedyDispatcher,
            "late": lambda: LateDispatcher(num_queued=spec.num_queued),
            "faulty": lambda: FaultyDispatcher(world),
        }
        session = run_recorded(
            log,
            engine,
            spec.work,
            spec.plan,
            spec.cluster,
            options,
            settings={},
            resume=known[0].id if known else None,
            dispatcher=None if spec.dispatcher == "plan" else makers[spec.dispatcher](),
            on_begin=lambda run_id, num_done: world.clock.tell(f"run {run_id[-6:]}: {num_done} tasks done before"),
        )
        truth.status = session.result.status
        check_log(world, log)
        check_result(world, session.result)


def check_log(world: Any, log: RunLog) -> None:
    """Check what the log has of the run: whole, in order, and nothing that was committed is missing."""
    truth, need = world.truth, world.clock.need
    infos = log.runs("run", limit=2)
    need(len(infos) <= 1, "there are two runs where one was resumed")
    if not infos:
        need(not truth.committed, "a run with committed ends is not in the log")
        return
    events = log.events(infos[0].id)
    need([event.seq for event in events] == list(range(1, len(events) + 1)), "events of the run log are not in order")
    need(infos[0].num_events == len(events), "the run log counts other events than it has")
    need(len(events) >= truth.num_seen, f"the log had {truth.num_seen} events, and now {len(events)}")
    truth.num_seen = len(events)


def check_result(world: Any, result: RunResult) -> None:
    """Check the result of a run that has ended."""
    truth, need = world.truth, world.clock.need
    if result.status != "done":
        return
    for task, value in truth.expected.items():
        if bool(result.is_finished[task]):
            need(result.digests[task] == digest(value), f"the output of task {task} has another digest")
    with RunLog.open() as log:
        run_id = log.runs("run", limit=1)[0].id
        ends: dict[int, int] = {}
        for event in log.events(run_id, kinds=["task-finished"]):
            task = truth.names[event.subject]
            ends[task] = ends.get(task, 0) + 1
        if not world.is_log_incomplete:
            need(sorted(ends) == sorted(truth.expected), "a run that is done lacks the end of a task")
        if truth.spec.keeps_data and not truth.spec.is_simulated:
            need(max(ends.values(), default=1) == 1, "a task has ended twice")

"""The simulator behind the driver: the same decisions as on real devices, in virtual time.

With contention ``none`` or ``fifo`` the schedule is that of ``graphs.simulator`` to the last bit; tests keep it so.
Faults can be injected, which is how the driver's failure handling is tested.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import Dispatcher
from stretto.engines.driver.driver import Driver, DriverRules
from stretto.engines.driver.elastic import Elastic
from stretto.engines.driver.events import (
    DeviceJoined,
    DeviceLost,
    Event,
    Scale,
    Start,
    TaskFailed,
    TaskFinished,
    Tick,
    Transfer,
    TransferFinished,
)
from stretto.engines.driver_engine import DriverEngine
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.outputs import digest
from stretto.engines.recorder import Recorder
from stretto.engines.work import Work, timed_output
from stretto.errors import EngineFailure
from stretto.graphs.conditions import shared_links

#: A fault to inject: a device that goes or comes, or an attempt of a task that fails at its end.
Fault = DeviceLost | DeviceJoined


@dataclass(frozen=True)
class SimulatedEngine(DriverEngine):
    """Runs nothing and passes no time; outputs are those of timed tasks.

    Attributes
    ----------
    faults
        Losses and returns of devices, at their times.
    failing
        Pairs of a task and how many of its first attempts fail.
    elastic, join_s
        Requested devices join so many seconds later; released ones leave at once.
    """

    contention: Literal["none", "fifo"] = "none"
    keeps_data: bool = False
    faults: tuple[Fault, ...] = ()
    failing: tuple[tuple[int, int], ...] = ()
    elastic: Elastic | None = None
    join_s: float = 0.0

    def available(self) -> str | None:
        return None

    def play(self, problem: Problem, decider: Plan | Dispatcher, work: Work, options: RunOptions) -> RunResult:
        rules = DriverRules(
            options.discipline,
            moves_data=True,
            keeps_data=self.keeps_data,
            max_attempts=options.max_attempts,
            task_attempts=work.task_attempts,
            keep_going=options.keep_going,
        )
        driver = Driver(problem, decider, rules, done=options.done, elastic=self.elastic)
        clock = _Clock(problem, driver, self)
        recorder = Recorder(work, driver, options)
        clock.execute(driver.begin())
        while not driver.is_over:
            events = clock.next_events()
            if not events:
                break
            for event in events:
                recorder.note(event)
            clock.execute(driver.handle(events))
        _fill_outputs(work, recorder, options)
        return recorder.result("simulated", is_timed=True)


class _Clock:
    """What is under way in virtual time; equal times end together, in the order of the reference."""

    def __init__(self, problem: Problem, driver: Driver, engine: SimulatedEngine) -> None:
        self.problem, self.driver, self.engine = problem, driver, engine
        self.failing = dict(engine.failing)
        self.running: dict[int, tuple[float, float, Start]] = {}  # by task: end, start
        self.arrivals: list[tuple[float, int, int]] = []  # time, object, target
        self.faults = deque(sorted(engine.faults, key=lambda fault: fault.at_s))
        self.moves: dict[int, Fault] = {}  # devices that come or go because somebody asked, at most one move each
        self.links = _Links(problem) if engine.contention == "fifo" else None
        self.now = 0.0

    def next_events(self) -> list[Event]:
        """Advance to the next time at which something ends, and return all that ends then."""
        times = [end for end, _, _ in self.running.values()]
        if self.arrivals:
            times.append(self.arrivals[0][0])
        if self.faults:
            times.append(self.faults[0].at_s)
        times += [move.at_s for move in self.moves.values()]
        now = min([*times, self.driver.next_release_s], default=math.inf)
        if now == math.inf:
            return []
        self.now = now
        ended = sorted((order.device, task) for task, (end, _, order) in self.running.items() if end == now)
        events: list[Event] = [self._end(task) for _, task in ended]
        while self.arrivals and self.arrivals[0][0] == now:
            _, item, target = heapq.heappop(self.arrivals)
            events.append(TransferFinished(item, target, now))
            if self.links is not None:
                self.links.leave(item, target)
        while self.faults and self.faults[0].at_s == now:
            fault = self.faults.popleft()
            gone = [task for task, (_, _, order) in self.running.items() if order.device == fault.device]
            for task in gone:
                del self.running[task]
            events.append(fault)
        for device, move in sorted(self.moves.items()):
            if move.at_s == now:
                events.append(self.moves.pop(device))
        events.append(Tick(now))
        return events

    def _end(self, task: int) -> Event:
        end, start, order = self.running.pop(task)
        if order.attempt <= self.failing.get(task, 0):
            return TaskFailed(task, order.device, order.attempt, end, "task", "told to fail")
        return TaskFinished(task, order.device, order.attempt, start, end)

    def execute(self, instructions: Sequence[object]) -> None:
        for order in instructions:
            if isinstance(order, Start):
                is_node = self.problem.cluster.devices[order.device].packs
                if not is_node and any(other.device == order.device for _, _, other in self.running.values()):
                    raise EngineFailure(f"device {order.device} was sent a second task")
                seconds = self.driver.tables.seconds(order.task, order.device)
                self.running[order.task] = (self.now + seconds, self.now, order)
            elif isinstance(order, Transfer):
                self._send(order)
            elif isinstance(order, Scale):
                self._scale(order)
        if self.links is not None:
            for order in self.links.startable():
                self._move(order)

    def _scale(self, order: Scale) -> None:
        """Have the devices of a kind come and go; those on their way that nobody wants any more never come."""
        devices = self.problem.cluster.devices
        kind = {device for device, facts in enumerate(devices) if facts.kind == order.kind}
        for device in sorted(kind):
            is_there, is_wanted = self.driver.states.is_alive[device], device in order.devices
            if is_there == is_wanted:
                self.moves.pop(device, None)
            elif is_wanted:
                self.moves.setdefault(device, DeviceJoined(device, self.now + self.engine.join_s))
            else:
                self.moves[device] = DeviceLost(device, self.now, "released", is_data_safe=True)

    def _send(self, order: Transfer) -> None:
        if self.links is None:
            self._move(order)
        else:
            self.links.request(order)

    def _move(self, order: Transfer) -> None:
        arrays = self.problem.arrays
        work = float(arrays.object_size[order.item]) * float(arrays.inv_bandwidth[order.source, order.target])
        due = self.now + (float(arrays.latency[order.source, order.target]) + work)
        heapq.heappush(self.arrivals, (due, order.item, order.target))


class _Links:
    """Transfers queue on every link of their route, in the order of requests."""

    def __init__(self, problem: Problem) -> None:
        self.shared = shared_links(problem)
        self.num_devices = problem.num_devices
        self.queues: dict[int, deque[Transfer]] = {}
        self.waiting: list[Transfer] = []

    def _route(self, order: Transfer) -> list[int]:
        pair = order.source * self.num_devices + order.target
        if self.shared is None:
            return [pair]
        at = self.shared.route_ptr
        found: list[int] = self.shared.route[at[pair] : at[pair + 1]].tolist()
        return found

    def request(self, order: Transfer) -> None:
        self.waiting.append(order)
        for link in set(self._route(order)):
            self.queues.setdefault(link, deque()).append(order)

    def startable(self) -> list[Transfer]:
        found = [o for o in self.waiting if all(self.queues[link][0] is o for link in self._route(o))]
        self.waiting = [o for o in self.waiting if o not in found]
        return found

    def leave(self, item: int, target: int) -> None:
        for queue in self.queues.values():
            if queue and queue[0].item == item and queue[0].target == target:
                queue.popleft()


def _fill_outputs(work: Work, recorder: Recorder, options: RunOptions) -> None:
    """Work out the outputs that timed tasks would have had."""
    outputs = dict(options.done)
    for task in work.graph.topo.tolist():
        if recorder.end_s[task] == recorder.end_s[task]:
            outputs[task] = timed_output(task, [outputs[parent] for parent in work.inputs(task)])
            if options.digests:
                recorder.digests[task] = digest(outputs[task])
            if recorder.wants_output(task):
                recorder.outputs[task] = outputs[task]

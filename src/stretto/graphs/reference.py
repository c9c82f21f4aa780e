"""The definition of an execution, as a slow and obvious program; the kernels must equal it to the last bit.

**Tasks.** Task t is released at ``release[t]``. It is ready when it is released and every object that it reads is on
its device. A device runs one task at a time, for ``duration * noise factor`` seconds. A *node* (a device that packs)
runs any set of tasks whose needs, added up, are within what it has.

**Rounds.** Time goes from event to event. At one instant, rounds follow each other as long as
something completes; what takes no time completes at the same instant in the next round. A round is:

1. all completions due: tasks (by device), transfers (by object and target), releases of tasks. Objects
   of size zero, and objects read where they were made, are there at once;
2. the transfers that these completions request are numbered, in the order of (object, target device);
3. every idle device, in the order of index, starts its choice;
4. every transfer that can start does, in the order of requests.

**Choice.** ``work-conserving``: the ready task that comes first in the plan's order.
``sequence``: the next task of the device's own sequence, if it is ready; otherwise the device waits.
A node makes its choice again as long as one is ready and fits: under ``work-conserving`` it starts every ready task
that fits, in the plan's order; under ``sequence`` it stops at the first of its sequence that is not ready or does not
fit.

**Transfers.** An object of non-zero size moves once to each other device that has a reader, requested when its producer
ends. It takes ``latency + size * inv_bandwidth`` in these ways:

- ``none``: it starts at once and is not disturbed;
- ``fifo``: it queues, in the order of requests, on every link of its route; it starts when it is the first on all of
  them, and leaves them when it has arrived. Without shared links, each ordered pair of devices is a link;
- ``fair``: the latency passes first. Then the flows of one pair of devices form a class with a clock ``served``:
  the work that each of its flows has received since the class was last empty. A flow leaves when the clock reaches
  its value at joining plus the flow's work. Pair links: the work is ``size * inv_bandwidth`` and the clock of k
  flows runs at 1/k. Shared links: the work is ``size`` and the clock runs at the class's max-min fair rate, by
  progressive filling, and at most at the pair's own bandwidth. Rates change at the end of rounds in which flows
  came or went.

**Memory** (where a device has a limit): in whole bytes, rounded up. Used are the resident bytes of the tasks
assigned to a device, the bytes of the running task, and objects: at home from the producer's start until its
local readers and its outgoing transfers have finished, elsewhere from the start of the transfer until the last
reader there has finished. A task starts only if it fits with its outputs, a transfer only if it fits at its target.
Under ``work-conserving`` a device then takes the first ready task that fits. If nothing can proceed, the plan is
infeasible.

Clocks are used here, too, rather than remaining bytes: same formulas, same rounding. Everything else is as naive
as it can be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.nodes.packing import MEMORY
from stretto.core.plan import Discipline, Plan
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule, Transfers
from stretto.errors import InvalidPlan
from stretto.graphs.conditions import (
    Contention,
    check_options,
    checked_indices,
    fail_deadlock,
    fail_device,
    fail_memory,
    fail_order,
    memory_load,
    noise_factors,
    shared_links,
)

Key = tuple[int, int]  # an object and a target device


@dataclass
class FlowClass:
    """The flows between one pair of devices, and their clock."""

    goals: dict[Key, float] = field(default_factory=dict)
    served: float = 0.0
    since: float = 0.0
    rate: float = 0.0
    next_time: float = math.inf
    is_changed: bool = False


def simulate(
    problem: Problem,
    plan: Plan,
    *,
    discipline: Discipline | None = None,
    contention: Contention = "none",
    noise: float = 0.0,
    seed: int = 0,
    memory_limits: bool = True,
    record_transfers: bool = False,
) -> Schedule:
    """Execute a plan as :func:`stretto.graphs.simulator.simulate` does, slowly."""
    chosen = check_options(plan, discipline, contention, noise, seed)
    checked_indices(problem, plan)
    _check_plan(problem, plan)
    if problem.graph.resources is not None:
        raise InvalidPlan("the reference executes devices, not projects with renewable resources")
    world = _World(problem, plan, chosen, contention, noise_factors(problem.num_tasks, noise, seed), memory_limits)
    world.run()
    keys = sorted(world.arrived)
    transfers = Transfers(
        np.array([item for item, _ in keys], dtype=np.int32),
        np.array([world.home(item) for item, _ in keys], dtype=np.int32),
        np.array([target for _, target in keys], dtype=np.int32),
        np.array([world.began[key] for key in keys]),
        np.array([world.arrived[key] for key in keys]),
    )
    n = problem.num_tasks
    return Schedule(
        np.array(plan.assignment, dtype=np.int32),
        np.array([world.start[task] for task in range(n)]),
        np.array([world.finish[task] for task in range(n)]),
        chosen,
        contention,
        transfers if record_transfers else None,
    )


def _check_plan(problem: Problem, plan: Plan) -> None:
    for task, device in enumerate(plan.assignment.tolist()):
        if not (0 <= device < problem.num_devices and problem.device_duration[task, device] < math.inf):
            fail_device(problem, plan, task)
    seen: set[int] = set()
    for position, task in enumerate(plan.order.tolist()):
        if task in seen or not 0 <= task < problem.num_tasks:
            fail_order(problem, plan, position)
        seen.add(task)


class _World:
    """The state of an execution: plain lists, sets and dicts."""

    def __init__(
        self, problem: Problem, plan: Plan, discipline: str, contention: str, factor: Floats, memory_limits: bool
    ) -> None:
        self.problem, self.plan, self.arrays = problem, plan, problem.arrays
        self.discipline, self.contention = discipline, contention
        n, m = problem.num_tasks, problem.num_devices
        self.device: list[int] = plan.assignment.tolist()
        self.rank: list[int] = plan.rank.tolist()
        self.seconds = [
            float(problem.device_duration[t, self.device[t]]) * (float(factor[t]) if len(factor) else 1.0)
            for t in range(n)
        ]
        self.size: list[float] = self.arrays.object_size.tolist()
        self.reads = [_slice(self.arrays.in_object, self.arrays.in_ptr, t) for t in range(n)]
        self.outputs = [list(range(self.arrays.out_ptr[t], self.arrays.out_ptr[t + 1])) for t in range(n)]
        self.readers = [_slice(self.arrays.object_reader, self.arrays.object_ptr, o) for o in range(len(self.size))]
        self.sequence = [[t for t in plan.order.tolist() if self.device[t] == d] for d in range(m)]
        self.load = memory_load(problem, plan) if memory_limits else None
        self.links = shared_links(problem)
        self.now = 0.0
        self.present: set[Key] = set()  # objects and the devices where they are
        self.released: set[int] = set()
        self.start: dict[int, float] = {}
        self.finish: dict[int, float] = {}
        self.finished: set[int] = set()
        self.running: list[int] = []  # tasks
        self.packing = problem.packing
        self.requested: list[Key] = []  # all transfers, in the order of requests
        self.began: dict[Key, float] = {}
        self.due: dict[Key, float] = {}  # arrivals that are known (none, fifo)
        self.joining: dict[Key, float] = {}  # ends of latencies (fair)
        self.flowing: list[Key] = []  # whose latency has passed, to join in step 4
        self.arrived: dict[Key, float] = {}
        self.classes: dict[tuple[int, int], FlowClass] = {}

    def home(self, item: int) -> int:
        return self.device[int(self.arrays.object_task[item])]

    def run(self) -> None:
        while True:
            times = [self.finish[task] for task in self.running]
            times += [float(r) for t, r in enumerate(self.arrays.release) if t not in self.released]
            times += [*self.due.values(), *self.joining.values()]
            times += [c.next_time for c in self.classes.values()]
            if not times or min(times) == math.inf:
                break
            self.now = min(times)
            ended = self.complete()
            self.request(ended)
            for device in range(self.problem.num_devices):
                self.start_task(device)
            self.start_transfers()
        if len(self.finished) < self.problem.num_tasks:
            self.fail()

    # Step 1 ------------------------------------------------------------------------------------

    def complete(self) -> list[int]:
        """Settle everything that is due now and return the tasks that ended."""
        ended = []
        for task in sorted(self.running):
            if self.finish[task] == self.now:
                self.running.remove(task)
                self.finished.add(task)
                ended.append(task)
                self.present |= {(o, self.device[task]) for o in self.outputs[task]}
                self.present |= {
                    (o, self.device[u]) for o in self.outputs[task] if self.size[o] == 0 for u in self.readers[o]
                }
        landing = [key for key, time in self.due.items() if time == self.now]
        for key in landing:
            del self.due[key]
        for flow_class in self.classes.values():
            if flow_class.next_time == self.now:
                landing += self.leave(flow_class)
        for key in landing:
            self.arrived[key] = self.now
            self.present.add(key)
        self.flowing += [key for key, time in self.joining.items() if time == self.now]
        for key in self.flowing:
            del self.joining[key]
        self.released |= {t for t, r in enumerate(self.arrays.release) if r <= self.now}
        return ended

    def leave(self, flow_class: FlowClass) -> list[Key]:
        flow_class.served = min(flow_class.goals.values())
        flow_class.since = self.now
        flow_class.next_time = math.inf
        flow_class.is_changed = True
        gone = [key for key, goal in flow_class.goals.items() if goal <= flow_class.served]
        for key in gone:
            del flow_class.goals[key]
        return gone

    # Step 2 ------------------------------------------------------------------------------------

    def request(self, ended: list[int]) -> None:
        self.requested += sorted(
            {
                (item, self.device[reader])
                for task in ended
                for item in self.outputs[task]
                if self.size[item] > 0
                for reader in self.readers[item]
                if self.device[reader] != self.device[task]
            }
        )

    # Step 3 ------------------------------------------------------------------------------------

    def start_task(self, device: int) -> None:
        for task in [task for task in self.sequence[device] if task not in self.start]:
            if self.is_ready(task) and self.fits(device, self.need(task)) and self.has_room(device, task):
                self.running.append(task)
                self.start[task] = self.now
                self.finish[task] = self.now + self.seconds[task]
            elif self.discipline == "sequence":
                return

    def has_room(self, device: int, task: int) -> bool:
        """Say whether a device is idle, or whether a node has enough left of everything but memory."""
        here = [other for other in self.running if self.device[other] == device]
        if self.packing is None or not self.packing.packs[device]:
            return not here
        held = sum((self.packing.need[other] for other in here), self.packing.need[task])
        return all(
            held[column] <= self.packing.capacity[device, column]
            for column, name in enumerate(self.packing.names)
            if name != MEMORY
        )

    def is_ready(self, task: int) -> bool:
        return task in self.released and all((o, self.device[task]) in self.present for o in self.reads[task])

    def need(self, task: int) -> float:
        if self.load is None:
            return 0.0
        return float(self.load.task[task]) + sum(float(self.load.object[o]) for o in self.outputs[task])

    def fits(self, device: int, num_bytes: float) -> bool:
        return self.load is None or self.used(device) + num_bytes <= self.load.limit[device]

    def used(self, device: int) -> float:
        """Count what is held on a device now, from scratch."""
        assert self.load is not None
        total = float(self.load.resident[device])
        total += sum(float(self.load.task[task]) for task in self.running if self.device[task] == device)
        for item in range(len(self.size)):
            if self.is_held(item, device):
                total += float(self.load.object[item])
        return total

    def is_held(self, item: int, device: int) -> bool:
        producer = int(self.arrays.object_task[item])
        is_read_here = any(self.device[u] == device and u not in self.finished for u in self.readers[item])
        if device != self.device[producer]:
            return (item, device) in self.began and is_read_here
        if producer not in self.start:
            return False
        targets = {self.device[u] for u in self.readers[item]} - {device}
        is_moving = self.size[item] > 0 and any((item, target) not in self.arrived for target in targets)
        return producer not in self.finished or is_read_here or is_moving

    # Step 4 ------------------------------------------------------------------------------------

    def start_transfers(self) -> None:
        for key in self.requested:
            if key in self.began or not self.is_first(key):
                continue
            item, target = key
            if not self.fits(target, float(self.load.object[item]) if self.load is not None else 0.0):
                continue
            self.began[key] = self.now
            source = self.home(item)
            latency = float(self.arrays.latency[source, target])
            if self.contention == "fair":
                if latency > 0:
                    self.joining[key] = self.now + latency
                else:
                    self.flowing.append(key)
            else:
                work = self.size[item] * float(self.arrays.inv_bandwidth[source, target])
                self.due[key] = self.now + (latency + work)
        if self.contention == "fair":
            self.share_links()

    def route(self, source: int, target: int) -> list[int]:
        pair = source * self.problem.num_devices + target
        if self.links is None:
            return [pair]
        return _slice(self.links.route, self.links.route_ptr, pair)

    def is_first(self, key: Key) -> bool:
        """Say whether no earlier request that has not arrived uses a link of this one."""
        if self.contention != "fifo":
            return True
        mine = set(self.route(self.home(key[0]), key[1]))
        for other in self.requested:
            if other == key:
                return True
            if other not in self.arrived and mine & set(self.route(self.home(other[0]), other[1])):
                return False
        raise AssertionError("only requested transfers are asked about")

    def share_links(self) -> None:
        for key in self.flowing:
            self.join(key)
        self.flowing.clear()
        changed = [c for c in self.classes.values() if c.is_changed]
        if not changed:
            return
        rates = {} if self.links is None else self.fill_rates()
        for pair, flow_class in sorted(self.classes.items()):
            rate = rates.get(pair, flow_class.rate)
            if flow_class.is_changed or rate != flow_class.rate:
                self.advance(flow_class)
                flow_class.rate = rate
                flow_class.next_time = self.first_to_leave(flow_class)
                flow_class.is_changed = False

    def first_to_leave(self, flow_class: FlowClass) -> float:
        if not flow_class.goals:
            return math.inf
        left = min(flow_class.goals.values()) - flow_class.served
        if self.links is None:
            return self.now + left * len(flow_class.goals)
        return self.now + left / flow_class.rate

    def join(self, key: Key) -> None:
        item, target = key
        source = self.home(item)
        flow_class = self.classes.setdefault((source, target), FlowClass())
        self.advance(flow_class)
        if not flow_class.goals:
            flow_class.served = 0.0
        work = self.size[item]
        if self.links is None:
            work *= float(self.arrays.inv_bandwidth[source, target])
        flow_class.goals[key] = flow_class.served + work
        flow_class.is_changed = True

    def advance(self, flow_class: FlowClass) -> None:
        if flow_class.goals and self.now > flow_class.since:
            elapsed = self.now - flow_class.since
            step = elapsed / len(flow_class.goals) if self.links is None else elapsed * flow_class.rate
            flow_class.served = min(flow_class.served + step, min(flow_class.goals.values()))
        flow_class.since = self.now

    def fill_rates(self) -> dict[tuple[int, int], float]:
        """Progressive filling: the tightest link, or pairs below it, fix their classes; then the next one."""
        assert self.links is not None
        left = dict(enumerate(self.links.bandwidth.tolist()))
        flows = {pair: len(c.goals) for pair, c in sorted(self.classes.items()) if c.goals}
        rates: dict[tuple[int, int], float] = {}
        level = 0.0
        while len(rates) < len(flows):
            free = [pair for pair in flows if pair not in rates]
            load = {link: sum(flows[p] * self.route(*p).count(link) for p in free) for link in left}
            shares = [(left[link] / load[link], link) for link in left if load[link] > 0]
            share, narrow = min(shares, default=(math.inf, -1))
            # Shares only grow, so whoever cannot use even the least one gets what its pair allows.
            fixed = sorted((self.cap(*pair), pair) for pair in free if share == math.inf or self.cap(*pair) < share)
            if not fixed:
                fixed = [(max(level, share), pair) for pair in free if narrow in self.route(*pair)]
            for level, pair in fixed:
                rates[pair] = level
                for link in self.route(*pair):
                    if left[link] < math.inf:
                        left[link] = max(0.0, left[link] - level * flows[pair])
        return rates

    def cap(self, source: int, target: int) -> float:
        inverse = float(self.arrays.inv_bandwidth[source, target])
        return 1.0 / inverse if inverse > 0 else math.inf

    # Failure -----------------------------------------------------------------------------------

    def fail(self) -> NoReturn:
        """Raise because nothing can proceed: the order is impossible, or memory is exhausted."""
        is_finished = np.array([t in self.finished for t in range(self.problem.num_tasks)])
        if self.load is None:
            fail_deadlock(self.problem, self.plan.assignment, self.plan.order, is_finished)
        # An order that is impossible even with endless memory is to blame before memory is.
        _World(self.problem, self.plan, self.discipline, "none", np.empty(0), False).run()
        ready = [(self.device[t], self.rank[t], t) for t in range(self.problem.num_tasks) if t not in self.start]
        blocked = [(d, r, t) for d, r, t in ready if self.is_ready(t) and self.may_choose(t)]
        for device, _, task in sorted(blocked):
            self.fail_memory(device, task)
        for item, target in self.requested:
            if (item, target) not in self.began:
                self.fail_memory(target, min(u for u in self.readers[item] if self.device[u] == target))
        raise AssertionError("an execution stops only for want of memory or by its order")

    def may_choose(self, task: int) -> bool:
        waiting = [t for t in self.sequence[self.device[task]] if t not in self.start]
        return self.discipline == "work-conserving" or waiting[0] == task

    def fail_memory(self, device: int, task: int) -> NoReturn:
        assert self.load is not None
        fail_memory(self.problem, device, task, self.now, self.used(device), float(self.load.limit[device]))


def _slice(values: Ints, ptr: Ints, index: int) -> list[int]:
    found: list[int] = values[ptr[index] : ptr[index + 1]].tolist()
    return found

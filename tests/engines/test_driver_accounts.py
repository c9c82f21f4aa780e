"""What the driver counts, by hand: bytes on devices, load, attempts, idle devices, and when it looks again."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import LateDispatcher, View
from stretto.engines.driver.driver import Driver, DriverRules
from stretto.engines.driver.elastic import Elastic, ElasticPool, ElasticWorkers
from stretto.engines.driver.events import DeviceJoined, Start, TaskFailed, TaskFinished, Tick
from stretto.engines.driver.memory import NOWHERE, DeviceMemory
from stretto.engines.driver.states import READY, UNPLACED, WAITING
from stretto.engines.driver.tables import Tables
from stretto.engines.work import Call, Command, Work
from stretto.errors import InvalidInput

# Memory -------------------------------------------------------------------------------------------


class Account:
    """Bytes on devices with limits, and what was evicted from them."""

    def __init__(
        self, sizes: dict[tuple[int, int], float], own: list[float], limits: list[float], *, makes_copies: bool = True,
        done: Sequence[int] = (),
    ) -> None:  # fmt: skip
        source, target = [a for a, _ in sizes], [b for _, b in sizes]
        graph = TaskGraph.from_edges(np.ones(len(own)), source, target, list(sizes.values()), shared_outputs=True)
        problem = Problem.of(graph, Cluster.uniform([Device(f"d{i}", memory_bytes=b) for i, b in enumerate(limits)]))
        declared = TaskGraph.from_edges(
            np.ones(len(own)), source, target, list(sizes.values()), shared_outputs=True, memory_bytes=np.array(own)
        )
        self.evicted: list[tuple[int, int]] = []
        self.memory = DeviceMemory(
            Work(declared, (Call(float),) * len(own)), problem, makes_copies,
            lambda task, device: self.evicted.append((task, device)), done,
        )  # fmt: skip

    def runs(self, task: int, device: int, size: float) -> set[int]:
        """Start a task and end it with an output of a size; return the devices with more room."""
        assert self.memory.admits(task, device, [])
        self.memory.reserve(task, device)
        assert self.memory.weigh(task, device, size) is None
        self.memory.withdraw(task)
        return self.memory.finish(task, device)


def join() -> Account:
    """Tasks 0 and 1 make 10 and 4 bytes that task 2 reads; they take 1, 2 and 3 bytes themselves."""
    return Account({(0, 2): 10.0, (1, 2): 4.0}, [1.0, 2.0, 3.0], [20.0, 9.0])


def test_bytes_are_reserved_held_and_given_back() -> None:
    account = join()
    memory = account.memory
    assert (memory.used, memory.fill(0)) == ([0.0, 0.0], "the device holds 0 of 20")
    assert memory.admits(0, 0, [])
    memory.reserve(0, 0)
    assert memory.used == [11.0, 0.0]  # its own byte, and an output as large as the graph says
    assert memory.admits(1, 0, [0])
    memory.reserve(1, 1)
    assert memory.used == [11.0, 6.0]
    assert memory.weigh(0, 0, 12.0) is None
    assert memory.used == [13.0, 6.0]
    memory.withdraw(0)
    memory.withdraw(0)  # it is under way no longer
    assert memory.used == [0.0, 6.0]
    assert memory.finish(0, 0) == {0}
    assert memory.used == [12.0, 6.0]
    memory.withdraw(1)
    assert memory.finish(1, 1) == {1}
    assert memory.used == [12.0, 4.0]
    assert memory.admits(2, 0, [])
    memory.reserve(2, 0)
    assert memory.used == [19.0, 4.0]  # three bytes of its own, and a copy of the four
    assert memory.why_not(2, 0) == (
        "does not fit: it takes 3 bytes itself, 16 of inputs and 0 of outputs; "
        "the device holds 19 of 20, and no running task will free more"
    )
    memory.withdraw(2)
    assert memory.finish(2, 0) == {0, 1}
    assert memory.used == [0.0, 0.0]
    assert account.evicted == []


def test_an_output_that_is_too_large_is_told_from_one_that_has_no_room_now() -> None:
    memory = join().memory
    memory.reserve(0, 0)
    memory.reserve(1, 0)
    assert memory.used == [17.0, 0.0]
    assert memory.weigh(1, 0, 7.0) is None  # just fits
    assert memory.weigh(0, 0, 11.0) == "full"
    memory.withdraw(0)
    assert memory.used == [9.0, 0.0]
    assert memory.weigh(1, 0, 18.0) is None
    assert memory.weigh(1, 0, 19.0) == "memory"  # 19 and 2 of its own are more than 20
    memory.withdraw(1)
    assert not memory.admits(1, 0, [])
    assert memory.never_fits == {1}


def test_a_task_that_fits_no_empty_device_is_noted_and_one_that_has_to_wait_is_not() -> None:
    account = join()
    account.runs(0, 0, 10.0)
    account.runs(1, 1, 4.0)
    memory = account.memory
    assert not memory.admits(2, 1, [])  # 3 of its own, 4 that are there and 10 to copy, on 9
    assert memory.never_fits == {2}
    memory.never_fits.clear()
    memory.used[0] += 4.0  # something else runs there
    assert not memory.admits(2, 0, [])
    assert memory.never_fits == set()
    memory.used[0] -= 1.0
    assert memory.admits(2, 0, [])


def test_data_that_is_read_in_place_needs_no_room_where_it_is_read() -> None:
    account = Account({(0, 2): 10.0, (1, 2): 4.0}, [1.0, 2.0, 3.0], [20.0, 9.0], makes_copies=False)
    account.runs(0, 0, 10.0)
    account.runs(1, 1, 4.0)
    assert account.memory.admits(2, 1, [])
    account.memory.reserve(2, 1)
    assert account.memory.used == [10.0, 7.0]
    account.memory.withdraw(2)
    assert account.memory.finish(2, 1) == {0, 1}
    assert account.memory.used == [0.0, 0.0]


def shared() -> Account:
    """Tasks 0 to 2 make 6, 4 and 4 bytes on the first device; 3 reads 0 and 1, 4 reads 2, 5 and 6 read again."""
    sizes = {(0, 3): 6.0, (1, 3): 4.0, (2, 4): 4.0, (0, 5): 6.0, (1, 6): 4.0, (2, 6): 4.0}
    account = Account(sizes, [0.0, 0.0, 0.0, 0.0, 3.0, 5.0, 0.0], [100.0, 14.0])
    for task, size in enumerate((6.0, 4.0, 4.0)):
        account.runs(task, 0, size)
    account.runs(3, 1, 0.0)
    assert account.memory.used == [14.0, 10.0]  # both copies stay: they will be read again
    return account


def test_the_largest_copies_are_evicted_first_and_only_as_many_as_needed() -> None:
    account = shared()
    assert account.memory.admits(4, 1, [])
    assert account.evicted == [(0, 1)]
    account.memory.reserve(4, 1)
    assert account.memory.used == [14.0, 11.0]
    assert account.memory.admits(6, 1, [4])  # both that it reads are there
    assert account.evicted == [(0, 1)]


def test_copies_that_somebody_reads_now_stay() -> None:
    account = shared()
    account.memory.reserve(4, 1)
    assert account.memory.used == [14.0, 17.0]
    account.evicted.clear()
    assert not account.memory.admits(6, 1, [3, 4])  # 0 and 1 are read by 3, and 2 by 4
    assert account.evicted == []
    account.memory.used[1] -= 1.0
    assert not account.memory.admits(6, 1, [3])
    assert account.memory.admits(6, 1, [])  # it reads 1 and 2 itself, so 0 goes
    assert account.evicted == [(0, 1)]


def test_outputs_of_an_earlier_run_count_where_they_lie() -> None:
    account = Account({(0, 2): 10.0, (1, 2): 4.0}, [1.0, 2.0, 3.0], [20.0, 9.0], done=[0, 1])
    account.memory.preload(0, 0, 10.0)
    account.memory.preload(1, NOWHERE, 4.0)
    assert account.memory.used == [10.0, 0.0]
    assert account.memory.admits(2, 0, [])
    account.memory.reserve(2, 0)
    assert account.memory.used == [17.0, 0.0]
    account.memory.withdraw(2)
    assert account.memory.finish(2, 0) == {0}
    assert account.memory.used == [0.0, 0.0]


def test_only_calls_are_expected_to_keep_their_outputs_in_memory() -> None:
    graph = TaskGraph.from_edges([1.0] * 3, [0, 0, 1], [1, 2, 2], [5.0, 8.0, 3.0])
    problem = Problem.of(graph, Cluster.uniform([Device("d", memory_bytes=99.0)]))

    def used_by_start(of: TaskGraph, task: int) -> float:
        work = Work(of, (Call(float), Command(("true",)), Call(float)))
        memory = DeviceMemory(work, problem, True, lambda task, device: None)
        memory.reserve(task, 0)
        return memory.used[0]

    assert used_by_start(graph, 0) == 8.0  # of several objects the largest
    with pytest.raises(KeyError):
        used_by_start(graph, 1)  # what it reads was never made
    seconds = TaskGraph.from_edges([1.0] * 3, [0, 0, 1], [1, 2, 2], [5.0, 8.0, 3.0], transfer_unit="seconds")
    assert used_by_start(seconds, 0) == 0.0


# Dispatchers --------------------------------------------------------------------------------------


def view(problem: Problem, ready: Sequence[int], *issued: Sequence[int]) -> View:
    m = problem.num_devices
    return View(problem, 3.0, tuple(ready), tuple(map(tuple, issued)), (True,) * m, (0.0,) * m)


def independent(*work: float) -> Problem:
    return Problem.of(TaskGraph.from_edges(list(work), [], []), Cluster.parse("cpu:2"))


def test_what_waits_on_a_device_counts_in_full_and_what_runs_by_half() -> None:
    late = LateDispatcher(num_queued=2)
    problem = independent(2.0, 4.0, 12.0, 1.0)
    assert list(late.choose(view(problem, [3], [0, 1], [2]))) == [(3, 0)]  # 1 and 4 against 6
    problem = independent(2.0, 6.0, 12.0, 1.0)
    assert list(late.choose(view(problem, [3], [0, 1], [2]))) == [(3, 1)]  # 1 and 6 against 6


def test_the_load_of_a_device_grows_with_every_task_that_is_placed() -> None:
    late = LateDispatcher(num_queued=5)
    problem = independent(8.0, 3.0, 2.0, 2.0, 1.0)
    # Half of 8 runs on the first: 3 goes to the second, 2 too (till 5), the other 2 to the first (till 6), 1 again.
    assert list(late.choose(view(problem, [1, 2, 3, 4], [0], []))) == [(1, 1), (2, 1), (3, 0), (4, 1)]
    assert LateDispatcher().num_queued == 1


class Patient:
    """Places one ready task at a time, on the first device, and wants to look again."""

    def __init__(self, look_again_s: float | None) -> None:
        self.look_again_s = look_again_s

    def choose(self, seen: View) -> list[tuple[int, int]]:
        return [] if any(seen.issued) else [(seen.ready[0], 0)]


def test_a_dispatcher_that_lets_tasks_wait_beside_an_idle_device_is_asked_again() -> None:
    driver = Driver(independent(1.0, 1.0), Patient(7.0))
    assert driver.handle([Tick(3.0)]) == [Start(0, 0, 1)]
    assert driver.next_release_s == 10.0
    assert driver.handle([TaskFinished(0, 0, 1, 3.0, 4.0)]) == [Start(1, 0, 1)]
    assert driver.next_release_s == inf  # nothing waits
    assert Driver(independent(1.0, 1.0), Patient(None)).next_release_s == inf
    never = Driver(independent(1.0, 1.0), Patient(None))
    never.begin()
    assert never.next_release_s == inf
    alone = Driver(Problem.of(TaskGraph.from_edges([1.0, 1.0], [], []), Cluster.parse("cpu:1")), Patient(7.0))
    alone.begin()
    assert alone.next_release_s == inf  # no device is idle


def test_single_tasks_may_have_attempts_of_their_own() -> None:
    plan = Plan(np.zeros(2, np.int32), np.arange(2, dtype=np.int32))
    rules = DriverRules(task_attempts={0: 1}, max_attempts=2, keep_going=True)
    driver = Driver(Problem.of(TaskGraph.from_edges([1.0, 1.0], [], []), Cluster.parse("cpu:1")), plan, rules)
    driver.begin()
    assert driver.handle([TaskFailed(0, 0, 1, 1.0, "task", "x")]) == [Start(1, 0, 1)]
    assert driver.handle([TaskFailed(1, 0, 1, 2.0, "task", "x")]) == [Start(1, 0, 2)]
    assert driver.handle([TaskFailed(1, 0, 2, 3.0, "task", "x")]) == []
    assert (driver.is_over, driver.is_done) == (True, False)


# Elastic pools ------------------------------------------------------------------------------------


def states(
    state: list[int], device: list[int], issued: list[list[int]], is_alive: list[bool], work: Sequence[float] = ()
) -> Any:
    graph = TaskGraph.from_edges(list(work) or [1.0] * len(state), [], [])
    tables = Tables.of(Problem.of(graph, Cluster.parse(f"cpu:{len(is_alive)}")))
    return SimpleNamespace(state=state, device=device, issued=issued, is_alive=is_alive, tables=tables)


def pool(num_devices: int, *, is_planned: bool = False, time_scale: float = 1.0, **settings: Any) -> ElasticPool:
    found = {"backlog_s": 10.0, "idle_s": 5.0, "min_devices": 1, **settings}
    return ElasticPool(Elastic(**found), Cluster.parse(f"cpu:{num_devices}").devices, is_planned, time_scale)


def test_a_device_whose_task_waits_for_data_is_idle_only_by_plan() -> None:
    waits = states([WAITING], [1], [[], []], [True, True])
    for is_planned, idle in ((True, {0, 1}), (False, {0})):
        some = pool(2, is_planned=is_planned)
        some.wanted.add(1)
        some.orders(waits, 100.0)
        assert set(some._idle_since) == idle
    ready = states([READY, WAITING], [1, UNPLACED], [[], []], [True, True])
    for is_planned in (True, False):
        some = pool(2, is_planned=is_planned)
        some.orders(ready, 100.0)
        assert set(some._idle_since) == {0}
        assert some.wanted == {0, 1}


def test_idle_devices_are_released_from_the_last_one_on() -> None:
    some = pool(3, min_devices=1)
    some.wanted = {0, 1, 2}
    quiet = states([], [], [[], [], []], [True] * 3, [1.0])
    assert some.next_s == inf
    assert some.orders(quiet, 100.0) == []
    assert some.next_s == 105.0
    assert some.orders(quiet, 104.9) == []
    (order,) = some.orders(quiet, 105.0)
    assert (order.kind, order.devices, order.num_devices) == ("cpu", (0,), 1)
    assert some.next_s == inf  # the first one stays
    kept = pool(3, min_devices=2)
    kept.wanted = {0, 1, 2}
    kept.orders(quiet, 0.0)
    (order,) = kept.orders(quiet, 50.0)
    assert order.devices == (0, 1)
    slow = pool(2, time_scale=4.0)
    slow.wanted = {0, 1}
    slow.orders(states([], [], [[], []], [True] * 2, [1.0]), 100.0)
    assert slow.next_s == 120.0


def test_a_device_is_requested_when_there_is_more_ready_work_than_the_others_do_in_time() -> None:
    def wanted(work: list[float], is_alive: list[bool], **settings: Any) -> set[int]:
        some = pool(len(is_alive), **settings)
        n = len(work)
        some.orders(states([READY] * n, [UNPLACED] * n, [[] for _ in is_alive], is_alive, work), 0.0)
        return some.wanted

    one = [True, False, False]
    assert wanted([5.0, 5.0], one) == {0}
    assert wanted([5.0, 5.5], one) == {0, 1}
    assert wanted([10.0, 10.5], one) == {0, 1, 2}
    assert wanted([1.0, 1.5], one, time_scale=9.0) == {0}  # both counts scale
    assert wanted([5.0], [False, False], min_devices=0) == {0}  # nobody is there
    assert wanted([50.0, 50.0], one, is_planned=True) == {0}


def test_a_device_that_gets_work_is_idle_no_longer() -> None:
    some = pool(2)
    some.wanted = {0, 1}
    quiet = states([], [], [[], []], [True, True], [1.0])
    some.orders(quiet, 0.0)
    some.orders(states([], [], [[], [0]], [True, True], [1.0]), 3.0)
    assert some.next_s == inf
    some.orders(quiet, 4.0)
    assert some.next_s == 9.0
    some.orders(states([], [], [[], []], [True, False], [1.0]), 5.0)  # it is gone
    assert some.next_s == inf


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Elastic(backlog_s=-1.0), "backlog_s: -1.0 must not be negative"),
        (lambda: Elastic(idle_s=-1.0), "idle_s: -1.0 must not be negative"),
        (lambda: Elastic(idle_s=float("nan")), "idle_s: nan must not be negative"),
        (lambda: Elastic(min_devices=-1), "min_devices: -1 must not be negative"),
        (
            lambda: ElasticWorkers(is_elastic=True, min_devices=0),
            "min_devices: must be at least 1: data is kept on workers",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(make: Any, text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        make()
    assert str(caught.value) == text


def test_workers_are_elastic_where_they_are_said_to_be() -> None:
    assert ElasticWorkers().elastic is None
    assert ElasticWorkers(is_elastic=True, backlog_s=1.0, idle_s=2.0, min_devices=3).elastic == Elastic(1.0, 2.0, 3)
    assert ElasticWorkers(is_elastic=True).elastic == Elastic() == Elastic(60.0, 60.0, 1)
    assert ElasticWorkers(min_devices=0).elastic is None
    assert list(Elastic(min_devices=2).absent_at_first(4)) == [2, 3]
    assert list(Elastic(min_devices=9).absent_at_first(4)) == []
    assert Elastic(0.0, 0.0, 0).min_devices == 0


def test_a_run_waits_for_devices_that_were_requested_and_no_longer() -> None:
    problem = Problem.of(TaskGraph.from_edges([30.0, 30.0], [], []), Cluster.parse("cpu:2"))
    driver = Driver(problem, Patient(None), elastic=Elastic(backlog_s=1.0, min_devices=0))
    (order,) = driver.begin()
    assert order.devices == (0, 1)
    assert not driver.is_over
    driver.handle([DeviceJoined(0, 1.0), DeviceJoined(1, 1.0)])
    assert driver.device == [0, -1]
    assert not driver.is_over

"""Memory limits of devices: tasks wait until they fit, and fail only when they never would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.plan import Discipline, Plan
from stretto.core.problem import Problem
from stretto.engines.driver.driver import Driver, DriverRules
from stretto.engines.driver.events import Start, TaskFinished
from stretto.engines.driver.memory import DeviceMemory
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.local.engine import LocalEngine
from stretto.engines.work import Call, Work

both = pytest.mark.parametrize("workers", ["thread", "process"])
MB = 1_000_000


def cluster(*limits: float) -> Cluster:
    return Cluster.uniform([Device(f"d{i}", memory_bytes=limit) for i, limit in enumerate(limits)])


def run(workers: str, work: Work, assignment: list[int], limits: list[float], **options: Any) -> RunResult:
    plan = Plan(np.array(assignment, dtype=np.int32), np.arange(len(assignment), dtype=np.int32), "work-conserving")
    engine = LocalEngine(workers=workers)  # type: ignore[arg-type]
    return engine.run(work, plan, cluster(*limits), RunOptions(**options))


def pairs(num_pairs: int, says_sizes: bool) -> Work:
    """Make arrays of 1 MB, and for each of them a reader; in the order of the plan all makers come first."""
    n = num_pairs
    size = float(MB) if says_sizes else 0.0
    graph = TaskGraph.from_edges(np.ones(2 * n), np.arange(n), np.arange(n) + n, size)
    makers = [Call(_full, (i,)) for i in range(n)]
    return Work(graph, (*makers, *[Call(_mean)] * n))


def _full(value: int) -> np.ndarray:
    return np.full(MB // 8, float(value))


def _mean(array: np.ndarray) -> float:
    return float(array.mean())


def most_held(found: RunResult, work: Work, device: int) -> int:
    """Count the arrays that a device held at the worst moment, from the start of a task to the end of its readers."""
    n = len(work.actions) // 2
    made = [t for t in range(n) if found.device[t] == device]
    moments = found.start_s[made]
    return max(int(np.sum((found.start_s[made] <= at) & (found.end_s[[t + n for t in made]] > at))) for at in moments)


@both
def test_tasks_wait_until_their_output_fits(workers: str) -> None:
    work = pairs(8, says_sizes=True)
    assignment = [0] * 8 + [0] * 8
    free = run(workers, work, assignment, [1e12]).check()
    assert most_held(free, work, 0) == 8
    found = run(workers, work, assignment, [2.5 * MB]).check()
    assert most_held(found, work, 0) == 2
    assert not found.failures
    assert found.attempts.tolist() == [1] * 16
    assert [found.outputs[8 + i] for i in range(8)] == list(range(8))


@both
def test_outputs_of_unknown_size_wait_as_well(workers: str) -> None:
    found = run(workers, pairs(6, says_sizes=False), [0] * 12, [2.5 * MB]).check()
    assert {failure.blame for failure in found.failures} <= {"full"}
    assert [found.outputs[6 + i] for i in range(6)] == list(range(6))
    assert found.device.tolist() == [0] * 12


@both
def test_room_that_another_device_makes_is_used(workers: str) -> None:
    """The readers are elsewhere: each end over there makes room here, and the copies over there have a limit too."""
    work = pairs(6, says_sizes=True)
    found = run(workers, work, [0] * 6 + [1] * 6, [2.5 * MB, 1.5 * MB]).check()
    assert not found.failures
    assert most_held(found, work, 0) <= 2
    assert [found.outputs[6 + i] for i in range(6)] == list(range(6))


@both
def test_copies_make_room_and_are_made_again(workers: str) -> None:
    """Device 1 reads a, then b, then both once more, and holds one of them at a time."""
    graph = TaskGraph.from_edges(
        np.ones(6), [0, 1, 0, 1, 2, 3, 4], [2, 3, 4, 5, 3, 4, 5], [MB, MB, MB, MB, 8.0, 8.0, 8.0]
    )
    actions = (
        Call(_full, (1,)),
        Call(_full, (2,)),
        Call(_mean, inputs=(0,)),
        Call(_mean, inputs=(1,)),
        Call(_mean, inputs=(0,)),
        Call(_mean, inputs=(1,)),
    )
    found = run(workers, Work(graph, actions), [0, 0, 1, 1, 1, 1], [1e12, 1.2 * MB], keep="all").check()
    assert not found.failures
    assert [found.outputs[t] for t in (2, 3, 4, 5)] == [1.0, 2.0, 1.0, 2.0]


@both
def test_what_never_fits_moves_or_is_told(workers: str) -> None:
    work = pairs(2, says_sizes=True)
    moved = run(workers, work, [0] * 4, [0.5 * MB, 1e12]).check()
    assert moved.device.tolist()[:2] == [1, 1]
    assert {failure.blame for failure in moved.failures} == {"memory"}
    found = run(workers, work, [0] * 4, [0.5 * MB, 0.6 * MB])
    assert found.status == "failed"
    assert found.failures[-1].blame == "memory"
    assert "1,000,000 of outputs" in found.failures[-1].reason
    assert "of 600,000" in found.failures[-1].reason


@both
def test_a_standstill_for_want_of_memory_ends_with_the_reason(workers: str) -> None:
    """Both outputs are read together, and only one of them fits: nothing can ever go on."""
    graph = TaskGraph.from_edges(np.ones(3), [0, 1], [2, 2], float(MB))
    work = Work(graph, (Call(_full, (1,)), Call(_full, (2,)), Call(lambda a, b: float(a[0] + b[0]))))
    found = run(workers, work, [0, 0, 0], [1.5 * MB])
    assert found.status == "failed"
    assert int(found.is_finished.sum()) == 1
    assert "does not fit" in found.failures[-1].reason


@st.composite
def crowded(draw: st.DrawFn) -> tuple[Work, Cluster, Plan]:
    """Draw a graph of sizes 0 to 9, devices that hold 5 to 30 of them, and a plan."""
    n, m = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    source, target = np.nonzero(np.triu(rng.random((n, n)) < 0.3, 1))
    sizes = rng.integers(0, 10, n)[source].astype(float)
    graph = TaskGraph.from_edges(np.ones(n), source, target, sizes)
    order = np.arange(n, dtype=np.int32)
    discipline: Discipline = draw(st.sampled_from(["work-conserving", "sequence"]))
    plan = Plan(rng.integers(0, m, n).astype(np.int32), order, discipline)
    limits = [float(draw(st.integers(5, 30))) for _ in range(m)]
    return Work(graph, (Call(_mean),) * n), cluster(*limits), plan


def play(
    work: Work, where: Cluster, plan: Plan, pick: Callable[[int], int], num_queued: int
) -> tuple[Driver, DeviceMemory]:
    """Run a driver whose tasks end in any order; only copies that exist may be evicted."""
    problem = Problem.of(work.graph, where)
    copies: set[tuple[int, int]] = set()
    memory = DeviceMemory(work, problem, True, lambda task, device: copies.remove((task, device)))
    driver = Driver(problem, plan, DriverRules(num_queued=num_queued), memory=memory)
    under_way: list[Start] = []
    instructions = driver.begin()
    made = driver.tables.outputs
    size = [max((work.graph.object_size[i] for i in items), default=0.0) for items in made]
    while True:
        for order in instructions:
            assert isinstance(order, Start)
            under_way.append(order)
            copies |= {(p, order.device) for p in work.inputs(order.task) if driver.device[p] != order.device}
        assert all(used <= limit for used, limit in zip(memory.used, memory.limit, strict=True))
        if not under_way:
            return driver, memory
        order = under_way.pop(pick(len(under_way)))
        assert memory.weigh(order.task, order.device, size[order.task]) is None
        instructions = driver.handle([TaskFinished(order.task, order.device, order.attempt, 0.0, 1.0)])


@settings(max_examples=200, deadline=None)
@given(case=crowded(), num_queued=st.integers(0, 1), data=st.data())
def test_no_device_ever_holds_more_than_it_can(
    case: tuple[Work, Cluster, Plan], num_queued: int, data: st.DataObject
) -> None:
    driver, memory = play(*case, pick=lambda count: data.draw(st.integers(0, count - 1)), num_queued=num_queued)
    assert driver.is_over
    if driver.is_done:
        assert memory.used == [0.0] * len(memory.used)  # everything was let go of
    else:
        assert driver.refused
        assert "does not fit" in driver.refused[-1].reason


@both
def test_a_resumed_run_does_not_hold_what_nobody_will_read_again(workers: str) -> None:
    """Four arrays were made and read before; where they counted again, nothing more would fit."""
    work = pairs(8, says_sizes=True)
    done: dict[int, object] = {task: _full(task) for task in range(5)} | {8 + i: float(i) for i in range(4)}
    found = run(workers, work, [0] * 16, [2.5 * MB], done=done).check()
    assert not found.failures
    assert [found.outputs[8 + i] for i in range(4, 8)] == [4.0, 5.0, 6.0, 7.0]


@both
def test_an_output_whose_readers_had_ended_makes_room_at_once(workers: str) -> None:
    """The makers run again, as for files that were changed, and their readers do not."""
    work = pairs(4, says_sizes=True)
    found = run(workers, work, [0] * 8, [1.5 * MB], done={4 + i: 0.0 for i in range(4)}).check()
    assert not found.failures

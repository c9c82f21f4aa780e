"""The compiled queue with promises against its slow twin, start for start and promise for promise."""

from __future__ import annotations

import numpy as np
import pytest
from promise_cases import Case, expected_of, make_case, reference_of

from stretto.queues.kernels import keys
from stretto.queues.promises.queue import GIVEN, WEIGHTED, Preference, PromiseQueue, preference
from stretto.queues.promises.reference import PromiseReference
from stretto.queues.promises.validate import check_promises

CODES = (
    GIVEN,
    WEIGHTED,
    keys.FCFS,
    keys.SHORTEST,
    keys.LONGEST,
    keys.SMALLEST_AREA,
    keys.LARGEST_AREA,
    keys.FEWEST_PROCS,
    keys.MOST_PROCS,
    keys.F1,
    keys.F2,
    keys.F3,
    keys.F4,
    keys.DEADLINE,
    keys.EXPANSION,
    keys.WFP3,
    keys.UNICEP,
)


def order_of(seed: int) -> Preference:
    """Return one of all orders, reservations and limits of tests."""
    return preference(
        CODES[seed % len(CODES)],
        by_length=seed % 3 == 0,
        reservation=(seed // 2) % 3,
        procs_power=0.7,
        wait_power=0.3,
        max_tests=(0, 1, 2, 1000)[(seed // 5) % 4],
    )


def played(case: Case, order: Preference) -> PromiseQueue:
    queue = PromiseQueue.of(case.jobs, case.num_procs, case.slack_s)
    queue.state.key[:] = case.key
    queue.state.length[:] = case.length
    queue.advance(order)
    return queue


def assert_equal(seed: int, *, outlive: bool) -> None:
    case, order = make_case(seed, outlive=outlive), order_of(seed)
    state, expected = played(case, order).state, expected_of(case, order)
    assert state.start.tolist() == expected.start, seed
    assert state.due.tolist() == expected.due, seed
    if not outlive:
        assert check_promises(case.jobs, case.num_procs, case.slack_s, state.start, state.due).is_valid, seed


def assert_plan_equal(queue: PromiseQueue, wanted: PromiseReference) -> None:
    """Compare all that is kept between events, and the profile with what it sums up."""
    state, moment = queue.state, queue.state.moment[0]
    assert queue.now_s == wanted.now
    assert queue.waiting.tolist() == wanted.waiting
    assert moment["free"] == wanted.free()
    assert state.latest.tolist() == wanted.latest
    planned = state.plan[: moment["num_planned"]].tolist()
    assert planned == wanted.by_planned_start()
    assert {job: float(state.planned[job]) for job in planned} == wanted.planned
    running = state.running[: moment["num_running"]].tolist()
    ends = [float(state.expected[job]) for job in running]
    assert ends == sorted(ends)
    assert dict(zip(running, ends, strict=True)) == wanted.expected
    taken = wanted.running() + wanted.plans(wanted.planned)
    moments = sorted({wanted.now, *(time for begin, end, _ in taken for time in (begin, end) if time > wanted.now)})
    free = [wanted._free_at(time, taken) for time in moments]
    size = int(state.steps.size[0])
    profile = list(zip(state.steps.begin[:size].tolist(), state.steps.free[:size].tolist(), strict=True))
    assert profile == [(moments[i], free[i]) for i in range(len(moments)) if i == 0 or free[i] != free[i - 1]]


@pytest.mark.parametrize("seed", range(6))
def test_what_is_counted_is_what_happened(seed: int) -> None:
    """Ends, outlived estimates and forced starts, seen from outside; and no refusal without a test."""
    case, order, rng = make_case(seed, outlive=True), order_of(3 * seed + 1), np.random.default_rng(seed)
    queue = PromiseQueue.of(case.jobs, case.num_procs, 0.0)
    queue.state.key[:] = case.key
    queue.state.length[:] = case.length
    moment, ended, raised, forced = queue.state.moment[0], 0, 0, 0

    def running() -> dict[int, float]:
        jobs = queue.state.running[: moment["num_running"]]
        return dict(zip(jobs.tolist(), queue.state.expected[jobs].tolist(), strict=True))

    while queue.next_event_s() < np.inf:
        before = running()
        can_start = queue.happen(order)
        after = running()
        ended += len(before.keys() - after.keys())
        raised += sum(after[job] != before[job] for job in after)
        if can_start:
            assert queue.allowed().dtype == np.bool_
            if rng.random() < 0.5:  # otherwise those who cannot wait are forced to start
                queue.propose(order)
            proposed = len(running())
            queue.settle()
            forced += len(running()) - proposed
    assert (moment["num_ended"], moment["num_raised"], moment["num_forced"]) == (ended, raised, forced)
    assert min(raised, forced) > 1
    assert ended == len(case.jobs.submit)
    assert moment["num_tests"] >= moment["num_refused"] >= 0
    assert moment["free"] == case.num_procs


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("outlive", [False, True])
def test_the_plan_is_that_of_the_twin_at_every_event(seed: int, outlive: bool) -> None:
    case, order = make_case(seed, outlive=outlive), order_of(7 * seed + outlive)
    queue, wanted = PromiseQueue.of(case.jobs, case.num_procs, case.slack_s), reference_of(case, order)
    queue.state.key[:] = case.key
    queue.state.length[:] = case.length
    while queue.next_event_s() < np.inf:
        wanted.now = queue.next_event_s()
        can_start = queue.happen(order)
        wanted.happen()
        assert_plan_equal(queue, wanted)
        assert can_start == any(case.jobs.procs[job] <= wanted.free() for job in wanted.waiting)
        if can_start:
            queue.propose(order)
            wanted.propose()
            queue.settle()
            wanted.settle()
    assert (queue.state.start >= 0).all()


@pytest.mark.parametrize("first", range(0, 300, 3))
def test_the_kernel_equals_its_twin_and_keeps_every_promise(first: int) -> None:
    for seed in range(first, first + 3):
        assert_equal(seed, outlive=False)


@pytest.mark.parametrize("first", range(1000, 1080, 10))
def test_the_kernel_equals_its_twin_where_jobs_outlive_their_estimates(first: int) -> None:
    for seed in range(first, first + 10):
        assert_equal(seed, outlive=True)


@pytest.mark.long
@pytest.mark.parametrize("first", range(10_000, 30_000, 1000))
def test_twenty_thousand_random_queues_are_equal_and_keep_every_promise(first: int) -> None:
    for seed in range(first, first + 1000):
        assert_equal(seed, outlive=False)


def test_the_cases_test_plans_refuse_and_force_starts() -> None:
    moments = [played(make_case(seed), order_of(seed)).state.moment for seed in range(100)]
    for name in ("num_tests", "num_refused", "num_forced"):
        assert sum(int(moment[name][0]) for moment in moments) > 10
    raised = [played(make_case(seed, outlive=True), order_of(seed)).state for seed in range(60)]
    assert sum(int(state.moment["num_raised"][0]) for state in raised) > 30
    assert any(np.any(state.start > state.due) for state in raised), "outlived estimates break promises, and are seen"

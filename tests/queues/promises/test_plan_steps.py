"""The parts of the plan of promised starts, each by itself: the profile against processors counted second by second."""

from __future__ import annotations

import numpy as np
import pytest

from stretto.queues.promises.kernels.steps import (
    NUM_BOUNDS,
    Steps,
    add,
    bound_of,
    copy_steps,
    drop_before,
    earlier,
    earliest,
    most_free,
    new_steps,
    no_bounds,
    note_bound,
    split,
    step_at,
)

SECONDS, PROCS = 40, 6
SEEDS = range(25)


def drawn(seed: int, num_jobs: int = 8) -> tuple[Steps, np.ndarray, list[tuple[int, int, int]]]:
    """Return a profile, what is free in each second, and the jobs (begin, end, procs) that are in it."""
    rng = np.random.default_rng(seed)
    steps, free = new_steps(60, PROCS), np.full(SECONDS, PROCS)
    jobs = []
    for _ in range(num_jobs):
        begin = int(rng.integers(0, SECONDS - 2))
        end = int(rng.integers(begin + 1, SECONDS - 1))
        procs = int(rng.integers(1, 4))
        if free[begin:end].min() >= procs:
            add(steps, float(begin), float(end), -procs)
            free[begin:end] -= procs
            jobs.append((begin, end, procs))
    return steps, free, jobs


def told(steps: Steps) -> list[tuple[float, int]]:
    size = int(steps.size[0])
    return list(zip(steps.begin[:size].tolist(), steps.free[:size].tolist(), strict=True))


def changes(free: np.ndarray, first: int = 0) -> list[tuple[float, int]]:
    """Return the shortest profile that says the same."""
    at = [first, *(second for second in range(first + 1, SECONDS) if free[second] != free[second - 1])]
    return [(float(second), int(free[second])) for second in at]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_profile_says_what_is_free_and_says_it_once(seed: int) -> None:
    steps, free, jobs = drawn(seed)
    assert told(steps) == changes(free)
    other = new_steps(60, 1)
    copy_steps(steps, other)
    assert told(other) == told(steps)
    for begin, end, procs in jobs:
        add(steps, float(begin), float(end), procs)
    assert told(steps) == [(0.0, PROCS)]
    add(steps, 5.0, 5.0, -1)  # takes no time
    add(steps, 5.0, 4.0, -1)
    assert told(steps) == [(0.0, PROCS)]


@pytest.mark.parametrize("seed", SEEDS)
def test_steps_are_found_and_made(seed: int) -> None:
    steps, free, _ = drawn(seed)
    begins = [begin for begin, _ in told(steps)]
    for second in range(SECONDS):
        assert step_at(steps, float(second)) == sum(begin < second for begin in begins)
        halves = new_steps(60, 1)
        copy_steps(steps, halves)
        at = split(halves, float(second))
        assert told(halves)[at] == (float(second), int(free[second]))
        assert len(told(halves)) == len(begins) + (second not in begins)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_past_is_forgotten(seed: int) -> None:
    steps, free, _ = drawn(seed)
    for now in range(0, SECONDS, 3):
        drop_before(steps, float(now))
        assert told(steps) == changes(free, now)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_earliest_place_is_the_first_where_a_job_fits_throughout(seed: int) -> None:
    steps, free, _ = drawn(seed)
    open_end = np.concatenate([free, np.full(SECONDS, PROCS)])
    begins = [int(begin) for begin, _ in told(steps)]
    for procs in range(1, PROCS + 1):
        for span in (1, 3, 9, 20):
            for first in range(len(begins)):
                wanted = next(
                    k for k in range(first, len(begins)) if open_end[begins[k] : begins[k] + span].min() >= procs
                )
                assert earliest(steps, first, procs, float(span)) == wanted
    for begin in range(0, SECONDS, 4):
        for end in range(begin + 1, SECONDS, 5):
            assert most_free(steps, float(begin), float(end)) == free[begin:end].max()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_planned_job_moves_to_the_first_place_that_is_free_without_it(seed: int) -> None:
    steps, free, jobs = drawn(seed)
    begins = [int(begin) for begin, _ in told(steps)]
    for begin, end, procs in jobs:
        alone = free.copy()
        alone[begin:end] += procs
        span = end - begin
        for first in range(0, len(begins), 2):
            fitting = [at for at in begins[first:] if at < begin and alone[at : at + span].min() >= procs]
            assert earlier(steps, first, procs, float(span), float(begin)) == min([*fitting, begin])


def test_an_earlier_search_bounds_those_for_no_less() -> None:
    bounds = no_bounds()
    assert bound_of(bounds, 100, 1e9) == -np.inf
    note_bound(bounds, 0, 2, 10.0, 50.0)
    note_bound(bounds, 1, 3, 5.0, 70.0)
    found = {(2, 10.0): 50.0, (1, 10.0): -np.inf, (2, 9.0): -np.inf, (3, 5.0): 70.0, (9, 99.0): 70.0, (2, 99.0): 50.0}
    assert {key: bound_of(bounds, *key) for key in found} == found
    for at in range(NUM_BOUNDS):
        note_bound(bounds, at, 1, 1.0, float(at))
    assert bound_of(bounds, 9, 99.0) == NUM_BOUNDS - 1.0
    note_bound(bounds, NUM_BOUNDS + 3, 1, 1.0, 99.0)  # takes the place of the fourth
    assert sorted(bounds[:, 2].tolist()) == [0.0, 1.0, 2.0, 4.0, 5.0, 6.0, 7.0, 99.0]


def test_an_empty_machine_is_one_step_of_whole_processors() -> None:
    steps = new_steps(3, 7)
    assert told(steps) == [(0.0, 7)]
    assert [array.dtype for array in steps] == [np.float64, np.int64, np.int64]
    assert [len(array) for array in steps] == [3, 3, 1]


def test_what_stands_behind_the_last_step_counts_for_nothing() -> None:
    for behind in (0.0, 1.0, 6.0, 8.0, 1e9):
        steps = Steps(np.array([0.0, 5.0, behind, behind]), np.array([2, 3, 99, 99]), np.array([2]))
        assert most_free(steps, 0.0, 10.0) == most_free(steps, 7.0, 9.0) == 3
        assert [step_at(steps, time) for time in (0.0, 5.0, 5.5, 99.0)] == [0, 1, 2, 2]
        assert (earliest(steps, 0, 2, 9.0), earliest(steps, 0, 3, 9.0)) == (0, 1)
        assert (earlier(steps, 0, 3, 9.0, 20.0), earlier(steps, 0, 4, 9.0, 20.0)) == (5.0, 20.0)
        add(steps, 5.0, 7.0, -1)
        assert told(steps) == [(0.0, 2), (7.0, 3)]
        drop_before(steps, 7.0)
        assert told(steps) == [(7.0, 3)]


def test_a_profile_may_fill_its_arrays() -> None:
    steps = Steps(np.array([0.0, 5.0, 8.0]), np.array([2, 1, 3]), np.array([3]))
    assert most_free(steps, 6.0, 99.0) == 3
    assert step_at(steps, 99.0) == 3
    assert [earliest(steps, 0, procs, 4.0) for procs in (1, 2, 3)] == [0, 0, 2]
    assert [earlier(steps, 0, procs, 99.0, 200.0) for procs in (1, 2, 3, 4)] == [0.0, 8.0, 8.0, 200.0]
    assert split(steps, 8.0) == 2

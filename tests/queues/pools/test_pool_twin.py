"""Queues in pools: the compiled loop against its slow twin, and promises against every order and pool rule."""

from __future__ import annotations

import numpy as np
import pytest
from pool_cases import PoolCase, make_case

from stretto.queues.kernels.codes import DONE, EASY, PROMISE
from stretto.queues.kernels.general import run_general
from stretto.queues.kernels.outcome import ReplayOutcome, new_outcome
from stretto.queues.kernels.state import new_state
from stretto.queues.mars.pools import pool_result
from stretto.queues.pools.queue import PoolQueue
from stretto.queues.pools.reference import promise_pools_slowly
from stretto.queues.pools.validate import check_pool_promises
from stretto.queues.validate import check_replay

COLUMNS = ("start", "end", "ready", "pool", "killed", "interruptions", "node_s")


def assert_same(found: ReplayOutcome, expected: ReplayOutcome, seed: int) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=f"{name} of {seed}")
    np.testing.assert_allclose(found.usd, expected.usd, rtol=1e-12)


def assert_kept(case: PoolCase, queue: PoolQueue, seed: int) -> None:
    """Check everything about a replay that stays within estimates."""
    setup = case.setup
    result = pool_result(setup, queue, setup.trace.num_jobs, {}, (), with_promises=True)
    try:
        check_pool_promises(result, case.slack_s)
        check_replay(setup.trace, setup.pools, result)
    except Exception as error:
        raise AssertionError(f"seed {seed}") from error


def assert_twin(seed: int, *, outlive: bool) -> None:
    case = make_case(seed, outlive=outlive)
    expected, status, slow = promise_pools_slowly(case.setup, case.slack_s)
    assert status == DONE
    queue = PoolQueue.of(case.setup, case.slack_s)
    queue.advance(case.setup.rules)
    assert_same(queue.out, expected, seed)
    assert queue.plan.due.tolist() == slow.due, seed
    assert queue.plan.margin.tolist() == slow.margin, seed
    if not outlive:
        assert_kept(case, queue, seed)


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_the_kernel_equals_its_twin_and_keeps_every_promise(first: int) -> None:
    for seed in range(first, first + 100):
        assert_twin(seed, outlive=False)


def test_the_kernel_equals_its_twin_where_jobs_outlive_their_estimates() -> None:
    for seed in range(1000, 1100):
        assert_twin(seed, outlive=True)


def led_astray(seed: int) -> tuple[PoolCase, PoolQueue]:
    """Replay with another order and pool rule, drawn at random, after every arrival."""
    case = make_case(seed)
    queue = PoolQueue.of(case.setup, case.slack_s)
    for count in range(1, case.setup.trace.num_jobs):
        queue.advance(case.other_rules(), count)
    until = queue.now_s
    while queue.advance(case.other_rules(), until_s=until) != DONE:
        until += 20.0
    return case, queue


@pytest.mark.parametrize("first", range(5000, 6500, 500))
def test_no_order_and_no_pool_rule_breaks_a_promise(first: int) -> None:
    given = 0
    for seed in range(first, first + 500):
        case, queue = led_astray(seed)
        assert_kept(case, queue, seed)
        given += int(np.isfinite(queue.plan.due).sum())
    assert given > 500


def general(case: PoolCase, backfill: int) -> ReplayOutcome:
    setup = case.setup
    pools, rules = setup.pool_arrays(), setup.rules._replace(backfill=backfill)
    out = new_outcome(setup.trace.num_jobs, len(setup.pools))
    state = new_state(setup.jobs, pools, rules)
    assert run_general(setup.jobs, pools, rules, setup.limit, setup.draws, state, out) == DONE
    return out


@pytest.mark.parametrize("backfill", [EASY, PROMISE])
def test_without_promises_every_start_is_that_of_easy(backfill: int) -> None:
    """The loop that stops after arrivals equals the general one; promises of infinite slack change nothing."""
    for seed in range(2000, 2150):
        case = make_case(seed, outlive=seed % 2 == 0)
        queue = PoolQueue.of(case.setup)
        rules = case.setup.rules._replace(backfill=backfill)
        for count in range(1, case.setup.trace.num_jobs, 3):
            queue.advance(rules, count)
        queue.advance(rules)
        assert_same(queue.out, general(case, EASY), seed)


@pytest.mark.long
@pytest.mark.parametrize("first", range(10_000, 30_000, 1000))
def test_twenty_thousand_random_cases_are_equal_and_keep_every_promise(first: int) -> None:
    for seed in range(first, first + 1000):
        assert_twin(seed, outlive=False)
        assert_kept(*led_astray(seed), seed)

"""Orders of a live queue: formulas, simulated futures, MARS."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.catalog import ONLINE_ORDERS, STRATEGIES
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.live_order import PortfolioOrder, StrategyOrder, warm_up
from stretto.queues.mars.candidates import candidates_of, classic_candidate
from stretto.queues.mars.live import MarsOrder, candidate_order
from stretto.queues.mars.parameters import MarsParameters
from stretto.queues.portfolio import Forecast
from stretto.queues.strategies import ORDERS
from stretto.queues.view import QueueView
from stretto.registry import resolve

NUM_PROCS = 16


def make_view(seed: int, num_jobs: int = 40, num_procs: int = NUM_PROCS) -> QueueView:
    """Some jobs have ended, a few run, the others wait; some of those are not ready, some too wide."""
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.uniform(0.0, 5000.0, num_jobs))
    submit -= submit[0]
    estimate = rng.choice([60.0, 600.0, 3600.0, 7200.0], num_jobs)
    start, end = np.full(num_jobs, np.nan), np.full(num_jobs, np.nan)
    past = num_jobs // 3
    start[:past] = submit[:past] + 1.0
    end[:past] = start[:past] + estimate[:past] * rng.uniform(0.1, 1.0, past)
    now = float(max(submit[-1], np.nanmax(end[:past], initial=0.0))) + 10.0
    procs = rng.integers(1, NUM_PROCS // 2, num_jobs).astype(np.int32)
    start[past : past + 2] = now - 30.0
    procs[-1] = num_procs + 1
    ready = rng.uniform(size=num_jobs) < 0.9
    user = rng.integers(0, 4, num_jobs).astype(np.int32)
    return QueueView(now, num_procs, np.arange(100, 100 + num_jobs), submit, estimate, procs, user, start, end, ready)


FORMULAS: dict[str, Callable[[QueueView, int], float]] = {
    "fcfs": lambda v, j: j,
    "sjf": lambda v, j: v.estimate_s[j],
    "ljf": lambda v, j: -v.estimate_s[j],
    "saf": lambda v, j: v.estimate_s[j] * v.procs[j],
    "laf": lambda v, j: -v.estimate_s[j] * v.procs[j],
    "smallest": lambda v, j: v.procs[j],
    "expansion": lambda v, j: -(v.now_s - v.submit_s[j] + v.estimate_s[j]) / v.estimate_s[j],
    "wfp3": lambda v, j: -(((v.now_s - v.submit_s[j]) / v.estimate_s[j]) ** 3) * v.procs[j],
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("seed", range(3))
def test_a_strategy_orders_by_its_formula(name: str, seed: int) -> None:
    view = make_view(seed)
    fits = [job for job in view.waiting.tolist() if view.procs[job] <= NUM_PROCS]
    wide = [job for job in view.waiting.tolist() if view.procs[job] > NUM_PROCS]
    expected = sorted(fits, key=lambda job: (FORMULAS[name](view, job), job)) + wide
    assert list(StrategyOrder(name).decide(view).order) == expected


ALL = [name for name in STRATEGIES if not resolve(STRATEGIES[name]).uses_weights]


@pytest.mark.parametrize("name", [*ALL, "saf-believed"])
def test_every_strategy_orders_all_that_wait(name: str) -> None:
    view = make_view(7)
    found = StrategyOrder(name).decide(view)
    assert sorted(found.order) == view.waiting.tolist()
    assert found.chosen == name


def test_users_with_a_past_are_believed_less() -> None:
    """Of two jobs with one estimate, that of the user whose jobs always end at once goes first."""
    ended = 10
    submit = np.arange(12.0)
    estimate = np.full(12, 3600.0)
    user = np.array([0, 1] * 6, np.int32)
    start, end = submit + 1.0, submit + np.where(user == 1, 11.0, 3000.0)
    start[ended:], end[ended:] = np.nan, np.nan
    ones = np.ones(12, np.int32)
    view = QueueView(4000.0, 4, np.arange(12), submit, estimate, ones, user, start, end, ones.astype(bool))
    assert StrategyOrder("sjf").decide(view).order == (10, 11)
    assert StrategyOrder("sjf-believed").decide(view).order == (11, 10)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 60))
def test_a_portfolio_follows_one_of_its_members(seed: int, num_jobs: int) -> None:
    view = make_view(seed, num_jobs)
    found = PortfolioOrder(forecast=Forecast(num_scenarios=4, num_arrivals=5), budget_s=60.0).decide(view)
    assert found.chosen in ORDERS
    assert found.order == StrategyOrder(found.chosen).decide(view).order


def test_a_portfolio_takes_what_costs_least() -> None:
    """One processor, nine short jobs behind a long one: whoever starts the long one first is wrong."""
    estimate = np.array([1000.0, 36000.0, *([60.0] * 9)])
    n = len(estimate)
    start, end = np.full(n, np.nan), np.full(n, np.nan)
    start[0] = 50.0
    ones = np.ones(n, np.int32)
    submit = np.arange(float(n))
    view = QueueView(100.0, 1, np.arange(n), submit, estimate, ones, 0 * ones, start, end, ones.astype(bool))
    order = PortfolioOrder(("ljf", "fcfs", "sjf"), Forecast(num_arrivals=0), budget_s=60.0)
    found = order.decide(view)
    assert found.chosen == "sjf"
    assert found.costs["sjf"] < found.costs["fcfs"]
    assert order.decide(view) == found  # same seed, same decision


def test_a_portfolio_stops_in_time() -> None:
    order = PortfolioOrder(forecast=Forecast(num_scenarios=100_000), budget_s=0.05)
    found = order.decide(make_view(1, 200))
    assert set(found.costs) == set(ORDERS)


@pytest.mark.parametrize("name", ["saf", "sjf", "fcfs", "smallest", "wfp3"])
def test_a_classic_candidate_orders_like_the_strategy(name: str) -> None:
    view = make_view(3)
    assert candidate_order(view, classic_candidate(name)) == StrategyOrder(name).decide(view).order


def test_every_candidate_orders_all_that_wait_and_puts_what_does_not_fit_last() -> None:
    view = make_view(3)
    wide = [job for job in view.waiting.tolist() if view.procs[job] > NUM_PROCS]
    for one in candidates_of(starts_jobs=False):
        order = candidate_order(view, one)
        assert sorted(order) == view.waiting.tolist(), one.name
        assert list(order[len(order) - len(wide) :]) == wide, one.name


def test_mars_follows_the_policy_until_it_has_seen_enough() -> None:
    order = MarsOrder([classic_candidate("fcfs"), classic_candidate("sjf")])
    found = order.decide(make_view(2))
    assert (found.chosen, found.costs) == ("fcfs", {})
    assert found.order == StrategyOrder("fcfs").decide(make_view(2)).order


def test_mars_turns_to_what_would_have_done_better() -> None:
    """A busy machine with many short and some long jobs: shortest first would have been far better than longest."""
    rng = np.random.default_rng(0)
    n = 600
    submit = np.sort(rng.uniform(0.0, 40_000.0, n))
    submit -= submit[0]
    run = np.where(rng.uniform(size=n) < 0.8, 30.0, 3000.0)
    start = submit + 5.0
    end = np.where(np.arange(n) < n - 20, start + run, np.nan)
    start[-20:] = np.nan
    ones = np.ones(n, np.int32)
    ready = ones.astype(bool)
    view = QueueView(float(np.nanmax(end)) + 1.0, 8, np.arange(n), submit, run * 1.5, ones, 0 * ones, start, end, ready)
    rules = MarsParameters(epoch_jobs=100, lag_jobs=20, block_epochs=1)
    order = MarsOrder([classic_candidate("ljf"), classic_candidate("sjf")], rules=rules)
    found = order.decide(view)
    assert found.chosen == "sjf"
    assert found.costs["sjf"] < found.costs["ljf"]
    assert order.decide(view).costs == found.costs  # no news, no new choice


@pytest.mark.parametrize("name", ONLINE_ORDERS)
def test_those_of_the_catalog_decide(name: str) -> None:
    order = resolve(ONLINE_ORDERS[name])()
    warm_up(order)
    view = make_view(5)
    assert sorted(order.decide(view).order) == view.waiting.tolist()


@pytest.mark.parametrize("order", [StrategyOrder("saf"), PortfolioOrder(), MarsOrder()], ids=lambda o: type(o).__name__)
def test_nothing_waits_nothing_is_ordered(order: StrategyOrder) -> None:
    view = make_view(1)
    nobody = dataclasses.replace(view, is_ready=np.zeros(view.num_jobs, np.bool_))
    assert order.decide(nobody).order == ()
    empty = QueueView(0.0, 1, *(np.zeros(0, kind) for kind in (int, float, float, "i4", "i4", float, float, bool)))
    assert order.decide(empty).order == ()


def test_more_may_run_than_there_are_processors() -> None:
    view = dataclasses.replace(make_view(4), num_procs=2)
    assert sorted(PortfolioOrder().decide(view).order) == view.waiting.tolist()


def test_refuses_what_cannot_be() -> None:
    with pytest.raises(UnknownName):
        StrategyOrder("shortest")
    with pytest.raises(InvalidInput, match="Slurm does by itself"):
        StrategyOrder("multifactor")
    with pytest.raises(InvalidInput):
        PortfolioOrder(())
    with pytest.raises(InvalidInput):
        PortfolioOrder(budget_s=0.0)
    with pytest.raises(InvalidInput):
        MarsOrder([])
    view = make_view(1)
    with pytest.raises(InvalidInput, match="order of submission"):
        dataclasses.replace(view, submit_s=view.submit_s[::-1].copy())
    with pytest.raises(InvalidInput, match="estimate"):
        dataclasses.replace(view, estimate_s=0.0 * view.estimate_s)
    with pytest.raises(InvalidInput, match="shape"):
        dataclasses.replace(view, user=view.user[1:])

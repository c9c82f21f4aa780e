"""MARS and the portfolio in pools."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import stretto
from stretto.core.pool import Pool, Spot
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.compare import compare_strategies, usable_strategies
from stretto.queues.evaluate import evaluate_replay
from stretto.queues.mars.cost import JobCost
from stretto.queues.mars.pool_candidates import pool_candidates
from stretto.queues.mars.pools import ASSUMED_MONEY
from stretto.queues.mars.replay import MarsSettings
from stretto.queues.pools.validate import check_pool_promises
from stretto.queues.replay import make_rules, replay, replay_told
from stretto.queues.result import QueueResult
from stretto.queues.validate import check_replay

CLOUD = Pool("cloud", 4, procs_per_node=8, price_usd_per_hour=0.4, provision_s=90.0, min_nodes=0, idle_shutdown_s=300.0)
MARKET = Spot(np.zeros(1), np.array([0.15]), np.array([0.05]), checkpoint_s=600.0)
POOLS = (Pool("own", 64), CLOUD, replace(CLOUD, name="spot", spot=MARKET))


@pytest.fixture(scope="module")
def trace() -> Trace:
    return stretto.load_trace("trace:lublin?num_jobs=1500&num_procs=64&load=0.9&seed=5")


def told_of(trace: Trace, strategy: str, **how: Any) -> tuple[QueueResult, Any]:
    """Replay in the pools, and also return what the selector tells."""
    return replay_told(trace, POOLS, strategy=strategy, **how)


def cost_of(result: QueueResult, money: float) -> float:
    metrics = result.metrics
    return float(metrics.bounded_slowdown.mean + money * metrics.cost_usd / metrics.num_jobs)


def test_candidates_are_pairs_and_the_operators_own_comes_first() -> None:
    base = make_rules("fcfs")
    found = pool_candidates(base, JobCost(money=2.0), default="wfp3", pool_rule="pack")
    names = [one.name for one in found]
    assert names[0] == "wfp3+pack"
    assert len(set(names)) == len(names)
    assert {"saf+owned", "saf+cheapest", "wfp3+owned", "wfp3+burst-0.5"} <= set(names)
    trained = next(one for one in found if one.is_trained)
    assert trained.name == "saf+burst-5"  # ten units an hour, each of which is worth half a USD
    assert trained.rules.wait_usd_per_hour == 5.0
    assert trained.rules.strategy == make_rules("saf").strategy


def test_mars_saves_against_the_operators_policy_and_says_what_decided(trace: Trace) -> None:
    settings = MarsSettings(cost=JobCost(money=10.0))
    found, told = told_of(trace, "mars", settings=settings)
    check_replay(trace, POOLS, found)
    policy = replay(trace, POOLS, strategy="fcfs")
    assert cost_of(found, 10.0) < cost_of(policy, 10.0)
    assert told.candidates[0] == "fcfs+cheapest"
    assert all(name in told.candidates for name in told.shares)
    assert told.choices[-1].chosen in told.candidates
    assert "fcfs+cheapest" in told.choices[-1].cost


def test_promises_hold_whatever_mars_follows(trace: Trace) -> None:
    pools = (POOLS[0], replace(CLOUD, promised=True), POOLS[2])
    found = evaluate_replay(trace, pools, timed=False, strategy="mars", backfill="promise", slack="1h+1e")
    check_pool_promises(found.result, 3600.0 + found.result.trace.estimate_s)
    figures: dict[str, Any] = found.to_json()
    assert figures["promises_given"] == trace.num_jobs
    assert figures["promises_broken"] == 0
    assert figures["promise_margin_p01_s"] >= 0
    assert figures["policy"] == "fcfs+cheapest"
    assert 0 < figures["trained_share"] <= 1
    assert ASSUMED_MONEY in found.result.notes


def test_the_same_seed_gives_the_same_replay(trace: Trace) -> None:
    few = trace.window(0, 700)
    one, other = (replay(few, POOLS, strategy="mars", seed=4) for _ in range(2))
    np.testing.assert_array_equal(one.start_s, other.start_s)


def test_a_replay_can_be_stopped(trace: Trace) -> None:
    found, told = told_of(trace, "mars", watch=lambda done, total: done < 500)
    assert found.trace.num_jobs == 500
    assert told.num_unplayed == 1000
    assert np.all(found.end_s > 0)


def test_the_portfolio_chooses_pairs(trace: Trace) -> None:
    few = trace.window(0, 400)
    found, told = told_of(few, "portfolio")
    check_replay(few, POOLS, found)
    assert told.num_epochs > 0
    assert "fcfs+owned" in told.strategies
    assert len(set(told.chosen.tolist())) > 1


def test_compare_has_selectors_in_pools(trace: Trace) -> None:
    few = trace.window(0, 300)
    assert {"mars", "portfolio"} <= set(usable_strategies(few, POOLS))
    rows = compare_strategies(few, POOLS, ["fcfs", "mars"]).rows
    assert [row.strategy for row in rows] == ["fcfs", "mars"]


def test_what_cannot_be_combined_is_refused(trace: Trace) -> None:
    few = trace.window(0, 50)
    with pytest.raises(InvalidInput, match="neither prices nor pools"):
        replay_told(few, POOLS, strategy="mars", settings=MarsSettings(nets="nets.npz"))
    with pytest.raises(InvalidInput, match="those of the pools"):
        replay_told(few, POOLS, strategy="mars", settings=MarsSettings(cost=JobCost(price_usd_per_proc_hour=1.0)))
    with pytest.raises(InvalidInput, match="works only with 'easy'"):
        replay(few, POOLS, strategy="portfolio", backfill="promise")
    chain = replace(few, parent=np.array([0], np.int32), child=np.array([1], np.int32))
    for name in ("mars", "portfolio"):
        with pytest.raises(InvalidInput, match="without dependencies"):
            replay(chain, POOLS, strategy=name)

"""The facade: its options, its errors, and rules whose effect can be derived by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stretto.catalog import BACKFILLS, ESTIMATES, POOL_RULES, STRATEGIES
from stretto.core.pool import Pool, Spot
from stretto.core.trace import Trace
from stretto.errors import Infeasible, InvalidInput, StrettoError, UnknownName
from stretto.queues.replay import replay
from stretto.queues.strategies import PriorityWeights
from stretto.registry import resolve

TINY = Trace.of([0, 0, 1], [4, 4, 2], [1, 2, 1])
TABLES = {**STRATEGIES, **BACKFILLS, **ESTIMATES, **POOL_RULES}


@pytest.mark.parametrize("name", TABLES)
def test_rows_have_a_summary(name: str) -> None:
    assert len(resolve(TABLES[name]).summary) > 5


@pytest.mark.parametrize("table", [STRATEGIES, BACKFILLS, ESTIMATES, POOL_RULES])
def test_codes_differ(table: dict[str, str]) -> None:
    assert len({resolve(target).code for target in table.values()}) == len(table)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"strategy": "fifo"}, UnknownName),
        ({"backfill": "eazy"}, UnknownName),
        ({"estimates": "oracle"}, UnknownName),
        ({"pool_rule": "best"}, UnknownName),
        ({"tie": "random"}, UnknownName),
        ({"slack": -1.0}, InvalidInput),
        ({"slack": float("nan")}, InvalidInput),
        ({"quantile": 0.0}, InvalidInput),
        ({"wait_usd_per_hour": float("inf")}, InvalidInput),
        ({"seed": -1}, InvalidInput),
        ({"weights": PriorityWeights()}, InvalidInput),
    ],
)
def test_bad_options(options: dict[str, Any], error: type[StrettoError]) -> None:
    with pytest.raises(error):
        replay(TINY, 2, **options)


@pytest.mark.parametrize("machine", [0, -3, (), (Pool("small", 1, gpus_per_node=0),)])
def test_bad_machines(machine: Any) -> None:
    wide = Trace.of([0], [1], [4])
    with pytest.raises(InvalidInput):
        replay(wide, machine)


def test_jobs_that_never_ran_or_do_not_fit_are_left_out() -> None:
    result = replay(Trace.of([5, 6, 7], [0, 3, 3], [1, 9, 1]), 2)
    assert result.num_dropped == 2
    assert result.trace.submit_s.tolist() == [0.0]


def test_kill_ends_jobs_at_their_limit() -> None:
    result = replay(Trace.of([0, 0], [10, 3], [1, 1], [4, 5]), 1, kill=True)
    assert result.end_s.tolist() == [4.0, 7.0]
    assert result.is_killed.tolist() == [True, False]


def test_children_wait_for_their_parents() -> None:
    trace = Trace.of([0, 0, 1], [4, 1, 1], [1, 1, 1], parent=np.array([0], np.int32), child=np.array([1], np.int32))
    result = replay(trace, 4)
    assert result.start_s.tolist() == [0.0, 4.0, 1.0]
    assert result.wait_s.tolist() == [0.0, 0.0, 0.0]


def test_a_prediction_lets_a_job_be_backfilled() -> None:
    # One user. A and B end after 2 s each, though they said 50. C holds three of four processors; D needs all four.
    # E says 50 and will take 2: too long by its estimate, but the last two jobs took 2 s.
    jobs = Trace.of([0, 0, 3, 4, 5], [2, 2, 10, 5, 2], [1, 1, 3, 4, 1], [50, 50, 10, 5, 50])
    assert replay(jobs, 4).start_s.tolist() == [0, 0, 3, 13, 18]
    assert replay(jobs, 4, estimates="last-two").start_s[4] == 5
    assert replay(jobs, 4, estimates="quantile").start_s[4] == 5


def test_pool_rules_choose() -> None:
    slow_and_cheap = Pool("a", 4, price_usd_per_hour=1.0)
    fast_and_dear = Pool("b", 4, speed=2.0, price_usd_per_hour=5.0)
    trace = Trace.of([0], [10], [2])
    machine = (fast_and_dear, slow_and_cheap)
    assert replay(trace, machine, pool_rule="first").pool.tolist() == [0]
    assert replay(trace, machine, pool_rule="cheapest").pool.tolist() == [1]
    assert replay(trace, machine[::-1], pool_rule="fastest").pool.tolist() == [1]


def test_bursting_weighs_the_wait_against_the_price() -> None:
    # One home processor, busy for an hour. The second job would wait 3600 s; the cloud costs 2 USD for its hour.
    home, cloud = Pool("home", 1), Pool("cloud", 1, price_usd_per_hour=2.0, min_nodes=0, provision_s=60.0)
    trace = Trace.of([0, 0], [3600, 3600], [1, 1])
    patient = replay(trace, (home, cloud), pool_rule="burst", wait_usd_per_hour=1.0)
    assert patient.pool.tolist() == [0, 0]
    assert patient.cost_usd.tolist() == [0.0, 0.0]
    hurried = replay(trace, (home, cloud), pool_rule="burst", wait_usd_per_hour=3.0)
    assert hurried.start_s.tolist() == [0.0, 60.0]
    assert hurried.cost_usd[1] == pytest.approx(2.0)


def test_packing_fills_nodes_that_are_up_and_counts_what_new_ones_idle() -> None:
    # One home processor, busy for an hour. Cloud nodes have four, cost 2 USD an hour, and idle for half an hour.
    home = Pool("home", 1)
    cloud = Pool(
        "cloud", 2, procs_per_node=4, price_usd_per_hour=2.0, min_nodes=0, provision_s=60.0, idle_shutdown_s=1800.0
    )
    alone = Trace.of([0, 0], [3600, 3600], [1, 1])
    # A new node costs 2 USD by burst, and 3 with what it idles.
    for rule, usd, pool in (("burst", 2.5, 1), ("pack", 2.5, 0), ("pack", 3.5, 1)):
        assert replay(alone, (home, cloud), pool_rule=rule, wait_usd_per_hour=usd).pool.tolist() == [0, pool]
    # A third job finds the node up: burst would have it pay for all of it, pack for a quarter.
    third = Trace.of([0, 0, 100], [3600, 3600, 3500], [1, 1, 1], deadline_s=np.array([np.inf, 3700.0, np.inf]))
    for rule, pool in (("burst", 0), ("pack", 1)):
        found = replay(third, (home, cloud), pool_rule=rule, wait_usd_per_hour=0.6)
        assert found.pool.tolist() == [0, 1, pool]


def test_bursting_saves_a_deadline() -> None:
    home, cloud = Pool("home", 1), Pool("cloud", 1, price_usd_per_hour=2.0, min_nodes=0, provision_s=60.0)
    trace = Trace.of([0, 0], [3600, 3600], [1, 1], deadline_s=np.array([np.inf, 4000.0]))
    result = replay(trace, (home, cloud), pool_rule="burst", wait_usd_per_hour=0.0)
    assert result.end_s.tolist() == [3600.0, 3660.0]


def test_a_closed_pool_loses_its_jobs_and_checkpoints_survive() -> None:
    # The price is above the bid from 10 to 20. The job has done 10 s then; with checkpoints of 4 s it keeps 8.
    def spot(checkpoint_s: float) -> tuple[Pool, ...]:
        market = Spot(np.array([0.0, 10, 20]), np.array([1.0, 9, 1]), np.zeros(3), 2.0, checkpoint_s)
        return (Pool("spot", 1, spot=market),)

    trace = Trace.of([0], [15], [1])
    assert replay(trace, spot(float("inf"))).end_s.tolist() == [35.0]
    kept = replay(trace, spot(4.0))
    assert kept.end_s.tolist() == [27.0]
    assert kept.num_interruptions.tolist() == [1]
    assert kept.cost_usd[0] == pytest.approx(17.0 / 3600.0)


def test_a_pool_that_never_opens_again_is_infeasible() -> None:
    market = Spot(np.array([0.0, 5]), np.array([1.0, 9]), np.zeros(2), 2.0)
    with pytest.raises(Infeasible, match="for ever"):
        replay(Trace.of([0], [15], [1]), (Pool("spot", 1, spot=market),))


def test_interruptions_follow_the_seed() -> None:
    market = Spot(np.array([0.0]), np.array([1.0]), np.array([40.0]), checkpoint_s=10.0)
    trace = Trace.of(np.arange(20.0), np.full(20, 200.0), np.ones(20, int))
    machine = (Pool("spot", 20, spot=market),)
    one, again, other = (replay(trace, machine, seed=seed) for seed in (1, 1, 2))
    assert one.num_interruptions.sum() > 0
    np.testing.assert_array_equal(one.end_s, again.end_s)
    assert not np.array_equal(one.end_s, other.end_s)


def test_gpus_take_their_share_of_processors() -> None:
    # Nodes of 8 processors and 2 GPUs: a job of one processor and one GPU takes 4 processors, two fill the node.
    gpus = np.array([1, 1, 1], np.int32)
    result = replay(Trace.of([0, 0, 0], [5, 5, 5], [1, 1, 1], num_gpus=gpus), (Pool("gpu", 1, 8, gpus_per_node=2),))
    assert result.start_s.tolist() == [0.0, 0.0, 5.0]


def test_fair_share_lets_the_user_who_used_less_go_first() -> None:
    # User 0 has used the machine; then both submit, user 0 first.
    user = np.array([0, 0, 1], np.int32)
    trace = Trace.of([0, 1, 1], [10, 5, 5], [2, 2, 2], user=user)
    weights = PriorityWeights(age=0.0, size=0.0, fair_share=1.0)
    assert replay(trace, 2, strategy="multifactor", weights=weights).start_s.tolist() == [0.0, 15.0, 10.0]
    assert replay(trace, 2).start_s.tolist() == [0.0, 10.0, 15.0]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("backfill", BACKFILLS)
@pytest.mark.parametrize("estimates", ESTIMATES)
def test_every_combination_runs_all_jobs(strategy: str, backfill: str, estimates: str) -> None:
    result = replay(TINY, 2, strategy=strategy, backfill=backfill, estimates=estimates)
    assert bool(np.all(result.end_s == result.start_s + TINY.run_s))
    assert result.makespan_s <= 10.0

"""What promises across pools count on, when they rent, and what cannot be combined."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stretto.core.pool import Pool, Spot
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, InvalidPlan
from stretto.files.clusters.pool_toml import parse_pools, read_pools, write_pools
from stretto.files.document import Document
from stretto.queues.evaluate import evaluate_replay
from stretto.queues.pools.validate import check_pool_promises
from stretto.queues.replay import replay

CLOUD = Pool("cloud", 4, procs_per_node=2, price_usd_per_hour=1.0, provision_s=60.0, min_nodes=0, idle_shutdown_s=10.0)
OWN = Pool("own", 4)
SPOT = Spot(np.zeros(1), np.array([0.1]), np.zeros(1))


def crowd(count: int = 6) -> Trace:
    """Return jobs that take the whole owned pool for 1000 s, one a second."""
    n = np.full(count, 1.0)
    return Trace.of(np.arange(count, dtype=float), 1000.0 * n, (4 * n).astype(int), 1000.0 * n)


def promised(pools: list[Pool], slack: str = "100s", trace: Trace | None = None, **rules: Any) -> Any:
    how: dict[str, Any] = {"pool_rule": "owned", **rules}
    return replay(crowd() if trace is None else trace, pools, backfill="promise", slack=slack, **how)


def test_on_demand_nodes_count_only_where_the_operator_says_so() -> None:
    """Behind five jobs of 1000 s, or after the provisioning time, its margin and the slack."""
    without = promised([OWN, CLOUD])
    np.testing.assert_array_equal(without.due_s, 1000.0 * np.arange(6) + 100.0)
    counted = promised([OWN, replace(CLOUD, promised=True)])
    np.testing.assert_array_equal(counted.due_s[1:3], [1 + 61 + 100, 2 + 61 + 100])
    assert np.all(counted.margin_s >= 0)


def test_the_plan_rents_as_late_as_it_can() -> None:
    """Under the rule never to rent, forced starts come at the promised time, and no node is up long before it."""
    found = promised([OWN, replace(CLOUD, promised=True)])
    forced = found.pool == 1
    assert np.any(forced)
    np.testing.assert_array_equal(found.start_s[forced], found.due_s[forced])
    assert np.all(found.pool[~forced] == 0)
    nodes = 2 * np.count_nonzero(forced)
    assert found.billed_node_s[1] < nodes * 1000.0 + nodes * 15.0


def test_nothing_is_rented_for_promises_without_the_word_of_the_operator() -> None:
    assert promised([OWN, CLOUD]).cost_usd[1] == 0.0


def test_spot_counts_for_nothing() -> None:
    """With a spot pool that could start everybody at once, promises are those of the owned pool alone."""
    found = promised([OWN, replace(CLOUD, spot=SPOT)], pool_rule="cheapest")
    assert np.any(found.pool == 1)
    alone = promised([OWN], trace=crowd(1))
    assert found.due_s[0] == alone.due_s[0]
    assert np.all(found.margin_s >= 0)
    with pytest.raises(InvalidInput, match="cannot count on spot"):
        replace(CLOUD, spot=SPOT, promised=True)


def test_jobs_that_fit_no_pool_of_the_plan_are_promised_nothing() -> None:
    wide = Trace.of([0.0, 1.0], [10.0, 10.0], [8, 2], [10.0, 10.0])
    found = promised([OWN, CLOUD], trace=wide)
    assert np.isinf(found.due_s[0])
    assert np.isfinite(found.due_s[1])
    assert evaluate_replay(wide, [OWN, CLOUD], timed=False, backfill="promise").to_json()["promises_given"] == 1


def test_an_interrupted_job_is_promised_a_start_again() -> None:
    """Spot nodes are lost all the time: the first start keeps the promise of the submission, the last a later one."""
    often = Spot(np.zeros(1), np.array([0.1]), np.array([40.0]), checkpoint_s=100.0)
    spot = replace(CLOUD, spot=often, provision_s=0.0)
    slack = np.full(6, 100.0)
    found = promised([OWN, spot], pool_rule="cheapest", seed=3)
    hit = found.num_interruptions > 0
    assert np.any(hit)
    check_pool_promises(found, slack)
    assert np.all(found.margin_s[hit] <= (found.due_s - found.start_s)[hit])
    with pytest.raises(InvalidPlan, match="after its promise"):
        check_pool_promises(replace(found, margin_s=found.margin_s - 1e6), slack)


def test_jobs_beyond_their_estimates_break_promises_that_are_counted() -> None:
    late = crowd(3)
    late = replace(late, estimate_s=np.array([10.0, 10.0, 10.0]))
    found = evaluate_replay(late, [OWN, replace(CLOUD, num_nodes=1)], timed=False, backfill="promise", slack="0")
    assert found.to_json()["promises_broken"] == 2


def test_pool_files_say_what_promises_count_on() -> None:
    pools = (OWN, replace(CLOUD, promised=True))
    back = read_pools(Document("pools.toml", write_pools(pools)))
    assert [pool.promised for pool in back] == [False, True]
    assert [pool.keeps_promises for pool in (*back, *parse_pools("own:4,cloud:0-4"))] == [True, True, True, False]
    with pytest.raises(InvalidInput, match="is not true or false"):
        read_pools(Document("pools.toml", b'[[pool]]\nname = "a"\nnum_nodes = 1\npromised = "yes"\n'))


def test_what_cannot_be_combined_is_refused() -> None:
    with pytest.raises(InvalidInput, match="tie 'batch'"):
        promised([OWN, CLOUD], tie="one-event")
    with pytest.raises(InvalidInput, match="do not depend on the wait"):
        replay(crowd(), [OWN, CLOUD], strategy=lambda jobs, wait_s: -wait_s, backfill="promise")
    with pytest.raises(InvalidInput, match="other pool rules"):
        replay(crowd(), [OWN, CLOUD], strategy=lambda jobs: jobs.estimate_s, backfill="promise", pool_rule="pack")

"""Orders on a site: key functions, multifactor with the site's weights, and the portfolio."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.queues.nodes.random_sites import random_jobs, random_site

from stretto.core.request import ResourceRequest
from stretto.core.site import Partition, Site, SiteNode
from stretto.core.site_policy import Account, PriorityFactors, Qos, SitePolicy
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.nodes.portfolio import portfolio_on_site
from stretto.queues.replay import replay
from stretto.queues.strategies import PriorityWeights, Submitted
from stretto.queues.validate import check_replay


def one_node(policy: SitePolicy | None = None, **partition: object) -> Site:
    parts = (
        Partition("p", ("n",), is_default=True, priority_job_factor=1),
        Partition("high", ("n",), priority_job_factor=9),
    )
    return Site("s", (SiteNode("n", 2),), parts, (), policy or SitePolicy())


def line_up(count: int, **columns: object) -> Trace:
    """Return a job that fills the node, and others that come one after the other behind it."""
    n = count + 1
    return Trace.of(np.arange(n), np.full(n, 10.0), np.full(n, 2), **columns)


def order_of(trace: Trace, site: Site, **rules: object) -> list[int]:
    result = replay(trace, site, strategy="multifactor", backfill="none", **rules)  # type: ignore[arg-type]
    check_replay(trace, site, result)
    return np.argsort(result.start_s, kind="stable").tolist()


def test_static_key_equals_the_order_of_the_catalog() -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        site = random_site(rng)
        trace = random_jobs(rng, site)
        try:
            expected = replay(trace, site, strategy="sjf")
        except (InvalidInput, UnknownName):
            continue
        found = replay(trace, site, strategy=lambda jobs: jobs.estimate_s)
        np.testing.assert_array_equal(found.start_s, expected.start_s)
        slow = replay(trace, site, strategy=lambda jobs, wait_s: jobs.estimate_s + 0 * wait_s)
        np.testing.assert_array_equal(slow.start_s, expected.start_s)
        check_replay(trace, site, slow)


def test_key_that_depends_on_the_wait() -> None:
    def last_come(jobs: Submitted, wait_s: np.ndarray) -> np.ndarray:
        return wait_s

    result = replay(line_up(3), one_node(), strategy=last_come, backfill="none")
    assert np.argsort(result.start_s).tolist() == [0, 3, 2, 1]


def test_multifactor_falls_back_to_default_weights() -> None:
    assert order_of(line_up(3), one_node()) == [0, 1, 2, 3]


def test_multifactor_weighs_the_partition() -> None:
    policy = SitePolicy(PriorityFactors(partition=100))
    partition = np.array([0, 0, 1, 0], np.int32)
    trace = line_up(3, partition=partition, meta={"partition_names": ("p", "high")})
    assert order_of(trace, one_node(policy)) == [0, 2, 1, 3]


def test_multifactor_weighs_the_qos() -> None:
    policy = SitePolicy(PriorityFactors(qos=100), qos=(Qos("low", 1), Qos("urgent", 50)))
    trace = line_up(3, qos=np.array([0, 0, -1, 1], np.int32), meta={"qos_names": ("low", "urgent")})
    assert order_of(trace, one_node(policy)) == [0, 3, 1, 2]


def test_fair_share_counts_what_accounts_have_used() -> None:
    """The account that has used the node waits; by its shares it may use nine times as much as the other one."""
    factors = PriorityFactors(fair_share=1000, half_life_s=1e9)
    accounts = (Account("big", "root", 9), Account("small", "root", 1))
    meta = {"account_names": ("big", "small", "other")}
    trace = line_up(2, account=np.array([0, 0, 1], np.int32), meta=meta)
    equal = replace(trace, account=np.array([0, 0, 2], np.int32))
    assert order_of(trace, one_node(SitePolicy(factors, accounts=accounts))) == [0, 2, 1]
    assert order_of(equal, one_node(SitePolicy(factors))) == [0, 2, 1]
    # Both have used as much: the one with more shares comes first, although it came later.
    both = Trace.of([0, 0, 1, 2], [10, 10, 5, 5], [1, 1, 2, 2], account=np.array([0, 1, 1, 0], np.int32), meta=meta)
    assert order_of(both, one_node(SitePolicy(factors, accounts=accounts))) == [0, 1, 3, 2]


def test_classic_fair_share_of_users_within_an_account() -> None:
    """A user without usage in an account that has used much comes behind one of an account without usage."""
    factors = PriorityFactors(fair_share=1000, half_life_s=1e9)
    meta = {"account_names": ("a", "b"), "user_names": ("u", "v", "w")}
    trace = line_up(3, account=np.array([0, 0, 0, 1], np.int32), user=np.array([0, 0, 1, 2], np.int32), meta=meta)
    assert order_of(trace, one_node(SitePolicy(factors))) == [0, 3, 2, 1]


def test_own_weights_come_before_those_of_the_site() -> None:
    policy = SitePolicy(PriorityFactors(partition=100))
    partition = np.array([0, 0, 1, 0], np.int32)
    trace = line_up(3, partition=partition, meta={"partition_names": ("p", "high")})
    assert order_of(trace, one_node(policy), weights=PriorityWeights(size=0, fair_share=0)) == [0, 1, 2, 3]


def test_account_that_is_its_own_parent() -> None:
    policy = SitePolicy(PriorityFactors(fair_share=1), accounts=(Account("a", "b"), Account("b", "a")))
    with pytest.raises(InvalidInput, match="its own parent"):
        replay(line_up(1), one_node(policy), strategy="multifactor")


def test_portfolio_of_one_order_is_that_order() -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        site = random_site(rng)
        trace = random_jobs(rng, site)
        try:
            expected = replay(trace, site, strategy="sjf")
        except (InvalidInput, UnknownName):
            continue
        found, told = portfolio_on_site(trace, site, strategies=("sjf",), interval_s=7.0)
        np.testing.assert_array_equal(found.start_s, expected.start_s)
        np.testing.assert_array_equal(found.node, expected.node)
        assert told.chosen.tolist() == [0] * len(found.start_s)


def test_portfolio_keeps_the_rules_and_changes_orders() -> None:
    used: set[int] = set()
    for seed in range(60):
        rng = np.random.default_rng(seed)
        site = random_site(rng)
        trace = random_jobs(rng, site)
        try:
            found, told = portfolio_on_site(trace, site, strategies=("fcfs", "sjf", "wfp3"), interval_s=3.0)
        except (InvalidInput, UnknownName):
            continue
        check_replay(trace, site, found)
        used.update(told.chosen.tolist())
    assert used == {0, 1, 2}


def test_portfolio_puts_a_short_job_first() -> None:
    request = ResourceRequest(num_tasks=2)
    trace = Trace.of([0, 1, 2], [5000, 8000, 20], [2, 2, 2], request=np.zeros(3, np.int32), requests=(request,))
    result = replay(trace, one_node(), strategy="portfolio")
    check_replay(trace, one_node(), result)
    assert np.argsort(result.start_s).tolist() == [0, 2, 1]

"""MARS on nodes and partitions: it keeps promises and nodes, knows no run time early, and follows what is cheaper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.queues.nodes.random_sites import random_jobs, random_site

import stretto
from stretto.core.site import Partition, Site, SiteNode
from stretto.core.site_policy import PriorityFactors, SitePolicy
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.kernels.codes import MULTIFACTOR, PROMISE
from stretto.queues.mars.candidates import Candidate, classic_candidate, network_candidate
from stretto.queues.mars.kernels import score
from stretto.queues.mars.network import MarsNet, linear_net
from stretto.queues.mars.parameters import MarsParameters
from stretto.queues.mars.replay import MarsSettings
from stretto.queues.mars.site import mars_on_site
from stretto.queues.mars.site_queue import SiteRules, correct_ends
from stretto.queues.nodes.promised import NodePromiseQueue
from stretto.queues.nodes.rules import node_rules
from stretto.queues.nodes.setup import prepare_nodes
from stretto.queues.promises.slack import Slack
from stretto.queues.promises.validate import check_given
from stretto.queues.replay import replay, replay_told
from stretto.queues.validate import check_replay

#: Choices so often that small queues see some, and readily.
QUICK = MarsParameters(epoch_jobs=5, lag_jobs=2, certainty=0.0, prior_epochs=0.5, guard=1.0)


def random_net(seed: int) -> Candidate:
    """Return a network with random weights."""
    rng = np.random.default_rng(seed)
    net = linear_net("", {}).net._replace(weight=rng.normal(size=score.NUM_JOB) * 3)
    return network_candidate(MarsNet(f"random-{seed}", net))


def random_case(seed: int, most: int = 60) -> tuple[Trace, Site]:
    """Return jobs without dependencies on a random site."""
    rng = np.random.default_rng(seed)
    site = random_site(rng)
    jobs = random_jobs(rng, site, most)
    return replace(jobs, parent=None, child=None, submit_s=jobs.submit_s * rng.choice([1.0, 4.0, 10.0])), site


def crowd(num_jobs: int = 400, seed: int = 3, num_users: int = 12) -> Trace:
    """Return more work than two nodes of four processors can do for a while: some users have short jobs only."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, num_users, num_jobs)
    run = np.where(user % 3 > 0, rng.integers(20, 90, num_jobs), rng.integers(2000, 5000, num_jobs)).astype(float)
    submit = np.sort(rng.integers(0, 260 * num_jobs, num_jobs)).astype(float)
    submit -= submit[0]
    return Trace.of(submit, run, rng.integers(1, 5, num_jobs), np.full(num_jobs, 7200.0), user=user.astype(np.int32))


def two_nodes(policy: SitePolicy | None = None) -> Site:
    nodes = (SiteNode("a", 4), SiteNode("b", 4))
    return Site("two", nodes, (Partition("p", ("a", "b"), is_default=True),), (), policy or SitePolicy())


def test_no_network_and_no_choice_breaks_a_promise() -> None:
    followed: set[str] = set()
    num_cases = 0
    for seed in range(60):
        trace, site = random_case(seed)
        orders = [random_net(seed), classic_candidate("saf"), random_net(seed + 1000)]
        if seed % 2:
            orders.append(classic_candidate("multifactor", on_site=True))
        slack = Slack(*((0.0, 0.0), (6.0, 1.0), (12.0, 2.0), (24.0, 4.0))[seed % 4])
        try:
            setup = prepare_nodes(trace, site)
        except (InvalidInput, UnknownName):
            continue
        result, told = mars_on_site(trace, site, candidates=orders, slack=slack, rules=QUICK, seed=seed, num_threads=1)
        check_replay(trace, site, result)
        check_given(result, slack.of(setup.arrays.estimate))
        followed.update(one.chosen.split("-")[0] for one in told.choices)
        num_cases += 1
    assert num_cases > 40
    assert followed == {"random", "saf", "multifactor"}


def test_one_candidate_is_that_order() -> None:
    for seed in range(20):
        trace, site = random_case(seed)
        name = ("fcfs", "wfp3", "multifactor")[seed % 3]
        try:
            expected = replay(trace, site, strategy=name, backfill="promise", slack="12s+1e")
        except (InvalidInput, UnknownName):
            continue
        one = classic_candidate(name, on_site=True)
        found, told = mars_on_site(trace, site, candidates=[one], slack=Slack(12.0, 1.0), rules=QUICK)
        np.testing.assert_array_equal(found.start_s, expected.start_s)
        np.testing.assert_array_equal(found.node, expected.node)
        np.testing.assert_array_equal(found.due_s, expected.due_s)
        assert told.shares == {name: 1.0}


def test_nothing_is_known_of_jobs_that_have_not_ended() -> None:
    trace, site = crowd(), two_nodes()
    rng = np.random.default_rng(1)
    first, told = mars_on_site(trace, site, rules=QUICK)
    assert len({one.chosen for one in told.choices}) > 1
    for share in (0.3, 0.6):
        then = float(np.quantile(trace.submit_s, share))
        is_open = first.start_s + trace.run_s > then
        least = np.where(first.start_s <= then, then - first.start_s + 1.0, 1.0)
        other = np.where(is_open, np.maximum(least, rng.integers(1, 7000, trace.num_jobs)), trace.run_s)
        assert np.any(other != trace.run_s)
        second, told_again = mars_on_site(replace(trace, run_s=other), site, rules=QUICK)
        before = first.start_s <= then
        np.testing.assert_array_equal(first.start_s[before], second.start_s[before])
        assert np.all(second.start_s[~before] > then)
        earlier = [one for one in told.choices if one.time_s <= then]
        assert earlier == [one for one in told_again.choices if one.time_s <= then]
        assert earlier


def test_orders_by_forecast_beat_the_policy_where_users_are_alike() -> None:
    """All estimates are the same, so that only who submits a job tells how long it will run."""
    trace, site = crowd(900), two_nodes()
    smith = network_candidate(linear_net("smith", {score.MEAN: -1.0, score.SHARP: -1.0}), is_trained=False)
    result, told = mars_on_site(trace, site, candidates=[classic_candidate("fcfs"), smith])
    check_replay(trace, site, result)
    assert told.shares["smith"] > 0.3
    assert told.choices[-1].chosen == "smith"
    assert "less than fcfs" in told.choices[-1].reason
    fcfs = replay(trace, site, strategy="fcfs")
    late = trace.submit_s > np.quantile(trace.submit_s, 0.5)
    assert np.mean(result.wait_s[late]) < 0.8 * np.mean(fcfs.wait_s[late])


def test_default_is_the_policy_of_the_site() -> None:
    weights = SitePolicy(PriorityFactors(age=1000, fair_share=1000))
    trace = crowd(40)
    assert mars_on_site(trace, two_nodes())[1].candidates[0] == "fcfs"
    names = mars_on_site(trace, two_nodes(weights))[1].candidates
    assert names[0] == "multifactor"
    assert {"saf", "f4", "wfp3", "net-1"} < set(names)
    settings = MarsSettings(default="saf")
    assert mars_on_site(trace, two_nodes(weights), settings=settings)[1].candidates[0] == "saf"
    with pytest.raises(InvalidInput, match="'edf' cannot be a candidate"):
        mars_on_site(trace, two_nodes(), settings=MarsSettings(default="edf"))


def test_usage_is_counted_while_another_order_is_followed() -> None:
    site = two_nodes(SitePolicy(PriorityFactors(fair_share=1000)))
    setup = prepare_nodes(crowd(40), site)
    orders = [classic_candidate("multifactor", on_site=True), classic_candidate("saf")]
    rules = SiteRules(setup, orders).of(orders[1])
    queue = NodePromiseQueue.of(setup, np.inf, rules)
    queue.advance(rules)
    plain = node_rules(setup, orders[1].code, PROMISE)
    expected = NodePromiseQueue.of(setup, np.inf, plain)
    expected.advance(plain)
    np.testing.assert_array_equal(queue.start_s, expected.start_s)
    assert queue.replay.state.usage.max() > 0
    assert orders[0].code == MULTIFACTOR


def test_run_times_of_running_jobs_can_be_corrected() -> None:
    trace = Trace.of([0, 1], [50, 10], [8, 8], [100, 100])
    setup = prepare_nodes(trace, two_nodes())
    rules = node_rules(setup, 0, PROMISE)
    for run, start in ((70.0, 70.0), (30.0, 30.0), (5.0, 20.0)):
        own = replace(setup, arrays=setup.arrays._replace(run=setup.arrays.run.copy()))
        queue = NodePromiseQueue.of(own, np.inf)
        queue.advance(rules, 1.0)
        queue.replay.state.clock[0] = 20.0
        own.arrays.run[0] = run
        correct_ends(queue)
        queue.advance(rules)
        assert queue.start_s.tolist() == [0.0, start]


def test_a_replay_that_is_stopped_holds_what_has_arrived() -> None:
    trace, site = crowd(60), two_nodes()
    result, told = mars_on_site(trace, site, rules=QUICK, slack=Slack(1e5), watch=lambda done, total: done < 30)
    assert told.num_unplayed == 60 - result.trace.num_jobs
    assert 30 <= result.trace.num_jobs < 60
    check_replay(trace.window(0, result.trace.num_jobs), site, result)
    check_given(result, np.full(result.trace.num_jobs, 1e5))


def test_replay_and_explain_tell_what_was_followed() -> None:
    trace, site = crowd(800), two_nodes()
    result, told = replay_told(trace, site, strategy="mars", backfill="promise", slack="24h+4e")
    assert (result.spec["strategy"], result.spec["backfill"], result.spec["slack"]) == ("mars", "promise", "24h+4e")
    assert result.due_s is not None
    check_replay(trace, site, result)
    check_given(result, Slack.parse("24h+4e").of(result.trace.estimate_s))
    assert told is not None
    assert replay(trace, site, strategy="mars").due_s is None
    found = stretto.explain(trace, site, job="row:790", strategy="mars", alternatives=False)
    assert found.choice is not None
    assert found.followed == found.choice.chosen
    assert found.choice.reason


def test_dependencies_are_refused() -> None:
    trace = replace(crowd(10), parent=np.zeros(1, np.int32), child=np.ones(1, np.int32))
    with pytest.raises(InvalidInput, match="without dependencies"):
        mars_on_site(trace, two_nodes())

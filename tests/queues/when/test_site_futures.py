"""Futures on nodes: told what really comes, they are the replay; and answers to other requests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.queues.nodes.random_sites import random_jobs, random_site

import stretto
from stretto.core.request import ResourceRequest
from stretto.core.site import Partition, Site, SiteNode
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.kernels import keys
from stretto.queues.replay import replay
from stretto.queues.when.change import RequestChange, changed_queue
from stretto.queues.when.futures import PlainFutures, futures_of
from stretto.queues.when.known import FutureRules, KnownQueue
from stretto.queues.when.on_site import PlacedQueue, SiteFutures, _Present, fewer
from stretto.queues.when.replayed import replayed_queue
from stretto.queues.workloads.lublin import lublin

CODES = {"fcfs": keys.FCFS, "sjf": keys.SHORTEST, "saf": keys.SMALLEST_AREA}


def told_the_truth(queue: KnownQueue, now: float) -> int:
    """Check that a future with true run times and arrivals is the replay; return how many jobs waited."""
    assert queue.site is not None
    plain, known = PlainFutures(queue), queue.known()
    plain.look(now)
    m = plain.moment
    there = int(m.num[0] + m.num[1])
    rows = m.job[:there]
    m.run[:there] = np.where(queue.start_s[rows] <= now, queue.end_s[rows] - now, queue.jobs.run[rows])
    later = np.flatnonzero(queue.jobs.submit > now)
    m.num[2] = len(later)
    for name, values in (
        ("job", later),
        ("submit", queue.jobs.submit[later] - now),
        ("run", queue.jobs.run[later]),
        ("estimate", queue.jobs.estimate[later]),
        ("procs", queue.jobs.procs[later]),
        ("key", known.key[later]),
    ):
        getattr(m, name)[there : there + len(later)] = values
    wanted = np.arange(int(m.num[0]), there + len(later))
    wait = _Present(queue, queue.site, m, now).play(m, wanted)
    # The wait of a job that comes later counts from now, too.
    np.testing.assert_allclose(wait + now, queue.start_s[m.job[wanted]], rtol=0, atol=1e-6)
    return int(m.num[1])


@pytest.mark.parametrize("backfill", ["easy", "none"])
@pytest.mark.parametrize("strategy", CODES)
def test_a_future_that_is_told_the_truth_is_the_replay(strategy: str, backfill: str) -> None:
    waited = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        site = random_site(rng)
        trace = random_jobs(rng, site)
        trace = replace(trace, parent=None, child=None)
        try:
            queue = replayed_queue(trace, site, strategy, backfill=backfill).queue
        except InvalidInput:  # no job of the case can run
            continue
        for share in (0.3, 0.6):
            waited += told_the_truth(queue, float(np.quantile(queue.jobs.submit, share)))
    assert waited > 50


@pytest.mark.parametrize("backfill", ["easy", "none"])
@pytest.mark.parametrize(("strategy", "code"), [("expansion", 20), ("wfp3", 21), ("unicep", 22)])
def test_orders_that_change_with_time_are_played_on_one_node(strategy: str, code: int, backfill: str) -> None:
    waited = 0
    for seed in range(6):
        trace = lublin(150, seed=seed, num_procs=16, load=2.0)
        result = replay(trace, 16, strategy=strategy, backfill=backfill)
        rules = FutureRules(code, easy=backfill == "easy")
        queue = KnownQueue(result.trace, result.trace.arrays(), 16, result.start_s, result.end_s, rules)
        queue = replace(queue, site=PlacedQueue.on_one_node(queue))
        # At an event: a future begins with a look at the queue, and between events the replay has none.
        waited += told_the_truth(queue, float(queue.jobs.submit[len(queue.jobs.submit) * 6 // 10]))
        assert isinstance(futures_of(replace(queue, site=None)), SiteFutures)
    assert waited > 20


def two_partitions() -> Site:
    nodes = tuple(SiteNode(name, 4) for name in "abcd")
    return Site(
        "two",
        nodes,
        (Partition("main", ("a", "b", "c"), is_default=True), Partition("short", ("d",), max_time_s=3600.0)),
    )


def crowded_main(num_jobs: int = 60) -> Trace:
    """Return jobs that crowd one partition, and leave the other empty."""
    requests = (ResourceRequest(("main",), num_tasks=4), ResourceRequest(("short",), num_tasks=1))
    which = np.zeros(num_jobs, np.int32)
    which[1] = 1
    submit = np.arange(num_jobs) * 60.0
    run = np.full(num_jobs, 1200.0)
    return Trace.of(submit, run, np.full(num_jobs, 4), np.full(num_jobs, 1800.0), request=which, requests=requests)


def test_another_partition_is_answered() -> None:
    found = stretto.when(crowded_main(), two_partitions(), job="row:50", change="partition=short", learn=20)
    assert found.instead is not None
    assert found.change == "partition=short"
    assert found.instead.likely_s < found.start.likely_s
    assert found.instead.likely_s == found.instead.submit_s
    assert not found.assumed


def test_other_nodes_and_limits_are_answered() -> None:
    queue = replayed_queue(crowded_main(), two_partitions()).queue
    wide = changed_queue(queue, 50, RequestChange.parse("nodes=3"))
    assert wide.site is not None
    now, row = float(queue.jobs.submit[50]), np.array([50])
    waits = [SiteFutures(one, 0, 10).outlooks(now, row)[0].by_estimates_s for one in (queue, wide)]
    assert waits[0] < waits[1]
    quick = changed_queue(queue, 50, RequestChange.parse("limit=10min"))
    assert quick.jobs.estimate[50] == 600.0


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        ("partition=shrot", UnknownName, "short"),
        ("partition=short,limit=2h", InvalidInput, "never run"),
        ("partition=short,procs=8", InvalidInput, "never run"),
    ],
)
def test_requests_that_cannot_be_are_refused(words: str, error: type[Exception], says: str) -> None:
    queue = replayed_queue(crowded_main(), two_partitions()).queue
    with pytest.raises(error, match=says):
        changed_queue(queue, 50, RequestChange.parse(words))


def test_a_long_queue_gets_fewer_futures() -> None:
    assert fewer(30, 10, 1000) == 30
    assert fewer(30, 100, 1000) == 10
    assert fewer(30, 10_000, 1000) == 3

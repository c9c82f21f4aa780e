"""Promises on a live queue: given once, kept by raising jobs at risk, counted; and replays that play such steering."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stretto.core.request import ResourceRequest
from stretto.core.site import Partition, Site, SiteNode
from stretto.core.site_policy import SchedulerTiming, SitePolicy
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.live_order import StrategyOrder
from stretto.queues.nodes.slurm_model.replay import replay_like_slurm
from stretto.queues.nodes.slurm_model.steered import SteeringTiming, replay_as_steered
from stretto.queues.nodes.validate import check_nodes
from stretto.queues.promises.live import PromisedOrder, planned_starts
from stretto.queues.promises.slack import Slack
from stretto.queues.replay import replay
from stretto.queues.view import QueueView


def view(now: float, rows: list[tuple[int, float, float, int, float]], num_procs: int = 4) -> QueueView:
    """Return a queue of (number, submission, estimate, processors, start or NaN)."""
    columns = list(zip(*rows, strict=True))
    n = len(rows)
    return QueueView(
        now,
        num_procs,
        np.array(columns[0], np.int64),
        np.array(columns[1], np.float64),
        np.array(columns[2], np.float64),
        np.array(columns[3], np.int32),
        np.zeros(n, np.int32),
        np.array(columns[4], np.float64),
        np.full(n, np.nan),
        np.ones(n, np.bool_),
    )


NAN = float("nan")
#: All four processors run until 100; a long job came first, then two short ones.
ROWS = [(1, 0.0, 100.0, 4, 0.0), (2, 1.0, 1000.0, 4, NAN), (3, 2.0, 10.0, 4, NAN), (4, 3.0, 10.0, 4, NAN)]


def test_planned_starts_by_hand() -> None:
    assert planned_starts(view(5.0, ROWS), [2, 3, 1]) == {2: 100.0, 3: 110.0, 1: 120.0}
    narrow = [(1, 0.0, 100.0, 2, 0.0), (2, 1.0, 50.0, 4, NAN), (3, 2.0, 90.0, 2, NAN), (4, 3.0, 200.0, 2, NAN)]
    assert planned_starts(view(5.0, narrow), [1, 2, 3]) == {1: 100.0, 2: 5.0, 3: 150.0}


def test_a_job_that_would_be_late_comes_first() -> None:
    order = PromisedOrder(StrategyOrder("sjf"), Slack(5.0))
    first = order.decide(view(5.0, ROWS))
    # Planned behind each other at 100, 1100 and 1110; the short jobs must not delay the first by more than 5 s.
    assert first.due_s == {1: 105.0, 2: 1105.0, 3: 1115.0}
    assert first.order == (1, 2, 3)
    assert first.at_risk == (1,)
    loose = PromisedOrder(StrategyOrder("sjf"), Slack(60.0))
    assert loose.decide(view(5.0, ROWS)).order == (2, 3, 1)
    assert loose.counts.at_risk == 0
    # With a margin of 50 s the plan would be too near to the promise.
    careful = PromisedOrder(StrategyOrder("sjf"), Slack(60.0), margin_s=50.0)
    assert careful.decide(view(5.0, ROWS)).order[0] == 1


def test_promises_do_not_change_and_outlive_a_restart() -> None:
    order = PromisedOrder(StrategyOrder("sjf"), Slack(60.0))
    order.decide(view(5.0, ROWS))
    later = [*ROWS, (5, 20.0, 10.0, 4, NAN)]
    moved = [
        (number, submit + 500.0, estimate, procs, start + 500.0) for number, submit, estimate, procs, start in later
    ]
    again = PromisedOrder(StrategyOrder("sjf"), Slack(60.0))
    assert again.restore(order.state())
    assert not PromisedOrder(StrategyOrder("sjf"), Slack(61.0)).restore(order.state())
    found = again.decide(view(520.0, moved))
    assert {job: due - 500.0 for job, due in found.due_s.items()} == {1: 160.0, 2: 1160.0, 3: 1170.0, 4: 1180.0}
    assert again.counts.given == 4


def test_late_starts_are_counted() -> None:
    order = PromisedOrder(StrategyOrder("fcfs"), Slack(0.0))
    order.decide(view(5.0, ROWS))
    started = [ROWS[0], (2, 1.0, 1000.0, 4, 100.0), (3, 2.0, 10.0, 4, 2000.0), ROWS[3]]
    order.decide(view(2001.0, started))
    assert (order.counts.given, order.counts.kept, order.counts.broken) == (3, 1, 1)


def test_too_wide_jobs_get_no_promise() -> None:
    rows = [*ROWS, (9, 4.0, 10.0, 99, NAN)]
    found = PromisedOrder(StrategyOrder("sjf"), Slack(60.0)).decide(view(5.0, rows))
    assert found.order[-1] == 4
    assert 4 not in found.due_s


def site(num_nodes: int = 4) -> Site:
    names = tuple(f"n{i}" for i in range(num_nodes))
    timing = SchedulerTiming(bf_interval_s=5.0, bf_resolution_s=1.0)
    nodes = tuple(SiteNode(name, 4) for name in names)
    return Site("test", nodes, (Partition("all", names),), policy=SitePolicy(scheduler=timing))


def random_trace(seed: int, num_jobs: int = 80) -> Trace:
    rng = np.random.default_rng(seed)
    run = rng.integers(10, 400, num_jobs).astype(float)
    width = rng.integers(1, 5, num_jobs)
    requests = tuple(ResourceRequest(num_tasks=int(w) * 4, min_nodes=int(w), max_nodes=int(w)) for w in width)
    return Trace.of(
        np.sort(rng.uniform(0, 6000, num_jobs)).round(1),
        run,
        width * 4,
        run,
        request=np.arange(num_jobs, dtype=np.int32),
        requests=requests,
    )


def test_the_order_reaches_the_jobs() -> None:
    """Steered by shortest first, the queue waits less than in Slurm's own order; each result is valid."""
    trace, place = random_trace(1), site()
    own = replay_like_slurm(trace, place)
    steered = replay_as_steered(trace, place, StrategyOrder("sjf"), SteeringTiming(10.0))
    check_nodes(place, steered)
    assert steered.metrics.wait_s.mean < 0.9 * own.metrics.wait_s.mean
    fcfs = replay_as_steered(trace, place, StrategyOrder("fcfs"), SteeringTiming(10.0))
    assert fcfs.metrics.wait_s.mean == pytest.approx(own.metrics.wait_s.mean, rel=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_promises_are_kept_by_order_alone_where_estimates_are_exact(seed: int) -> None:
    """Jobs of whole nodes with exact estimates: Slurm's plan is that of the promises, up to its intervals."""
    trace, place = random_trace(seed), site()
    loose = replay(trace, place, strategy="sjf", as_steered="10s")
    tight = replay(trace, place, strategy="sjf", backfill="promise", slack="10min", as_steered="10s")
    check_nodes(place, tight)
    assert tight.due_s is not None
    assert tight.spec["as_steered_s"] == 10.0
    late = np.maximum(0.0, tight.start_s - tight.due_s)
    promised = np.isfinite(tight.due_s)
    assert promised.mean() > 0.5
    assert late.max() <= 60.0  # one of Slurm's passes and rounding
    assert tight.wait_s.max() < loose.wait_s.max()


def test_what_steering_cannot_do_is_refused() -> None:
    trace, place = random_trace(1), site()
    with pytest.raises(InvalidInput, match="needs --site"):
        replay(trace, 16, as_steered="10s")
    with pytest.raises(InvalidInput, match="not what steering can do"):
        replay(trace, place, backfill="conservative", as_steered="10s")
    with pytest.raises(InvalidInput, match="between looks"):
        replay(trace, place, as_steered="0.001s")


def test_jobs_between_looks_have_no_label() -> None:
    """With an hour between looks the order is mostly Slurm's own."""
    trace, place = random_trace(2), site()
    rare = replay_as_steered(trace, place, StrategyOrder("sjf"), SteeringTiming(1e6, first_s=1e5))
    own = replay_like_slurm(trace, place)
    assert rare.start_s.tolist() == own.start_s.tolist()
    assert replace(rare, due_s=None).due_s is None

"""Replays that play the steering of a live queue inside promises."""

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
from stretto.queues.replay import replay


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

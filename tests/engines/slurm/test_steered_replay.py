"""A replay as steered starts jobs as a real Slurm does that is steered, inside promises."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from research.slurm_mixes import Mix
from research.slurm_twin import agreement, as_taken, host_list, run_daemons

from stretto.core.request import ResourceRequest
from stretto.core.site import Partition, Site, SiteNode
from stretto.core.site_policy import PriorityFactors, SchedulerTiming, SitePolicy
from stretto.core.trace import Trace
from stretto.engines.slurm.client.client import SlurmClient
from stretto.engines.slurm.steer.label_store import LabelStore
from stretto.engines.slurm.steer.steer import Steerer, SteerSettings, Step
from stretto.engines.slurm.testbed.testbed import Testbed
from stretto.queues.live_order import StrategyOrder, warm_up
from stretto.queues.nodes.slurm_model.replay import replay_like_slurm
from stretto.queues.nodes.slurm_model.steered import SteeringTiming, replay_as_steered
from stretto.queues.promises.live import PromisedOrder
from stretto.queues.promises.slack import Slack

NUM_JOBS = 40
INTERVAL_S = 2.0
SLACK = Slack(120.0)


def overloaded() -> Mix:
    """Jobs of 1 to 4 whole nodes that arrive within 25 s; limits are minutes, so shortest-first changes much."""
    rng = np.random.default_rng(5)
    names = tuple(f"n{i:02d}" for i in range(1, 7))
    policy = SitePolicy(priority=PriorityFactors(age=1.0), scheduler=SchedulerTiming(bf_interval_s=2.0))
    nodes = tuple(SiteNode(name, 4) for name in names)
    site = Site("steered", nodes, (Partition("all", names, is_default=True),), policy=policy)
    width = rng.choice([1, 1, 2, 3], NUM_JOBS)
    limit = rng.choice([60.0, 120.0, 300.0, 600.0], NUM_JOBS)
    run = np.round(2.0 + limit / 120.0 + rng.uniform(0, 2, NUM_JOBS), 1)
    requests = tuple(ResourceRequest(num_tasks=4 * int(w), min_nodes=int(w), max_nodes=int(w)) for w in width)
    trace = Trace.of(np.round(np.sort(rng.uniform(0, 25, NUM_JOBS)), 3), run, 4 * width, limit)
    return Mix("steered", site, replace(trace, request=np.arange(NUM_JOBS, dtype=np.int32), requests=requests))


def test_a_steered_slurm_starts_as_its_replay_does(slurm_place: Path, tmp_path: Path) -> None:
    mix, steps = overloaded(), list[Step]()
    order = PromisedOrder(StrategyOrder("sjf"), SLACK, 2 * INTERVAL_S)
    warm_up(PromisedOrder(StrategyOrder("sjf"), SLACK))

    @contextmanager
    def steering(bed: Testbed) -> Iterator[None]:
        off = tmp_path / "off"
        store = LabelStore(tmp_path / "store.json", conf=str(bed.conf))
        how = SteerSettings(is_applied=True, interval_s=INTERVAL_S, budget_s=20.0)
        layer = Steerer(SlurmClient(bed.commands), order, store, off, how)
        thread = threading.Thread(target=layer.follow, args=(steps.append,))
        thread.start()
        try:
            yield
        finally:
            off.touch()
            thread.join(30.0)

    recorded = run_daemons(mix, slurm_place / "steered", beside=steering)
    assert any(step.updates for step in steps)
    jobs, timing = as_taken(mix, recorded)
    jobs = replace(jobs, run_s=recorded.run_s)
    timing = replace(timing, launch_s=0.0)
    first = steps[0].at_s - timing.clock_s
    again = PromisedOrder(StrategyOrder("sjf"), SLACK, 2 * INTERVAL_S)
    steered = replay_as_steered(jobs, mix.site, again, SteeringTiming(INTERVAL_S, first % INTERVAL_S), timing=timing)
    own = replay_like_slurm(jobs, mix.site, timing=timing)
    found, without = (
        agreement(one.start_s + recorded.submit_s[0], [host_list(one.nodes_of(j)) for j in range(NUM_JOBS)], recorded)
        for one in (steered, own)
    )
    # A busy machine may be late with everything; that the order was ours must show all the same.
    assert found.rank_correlation > 0.85, (found, without)
    assert found.rank_correlation > without.rank_correlation, (found, without)
    assert abs(found.mean_wait_s / found.recorded_mean_wait_s - 1) < 0.25, (found, without)
    last = steps[-1].promises
    assert last is not None
    assert last.given > NUM_JOBS // 2

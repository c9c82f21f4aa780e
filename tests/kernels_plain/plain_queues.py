"""Queues: every strategy, backfill, estimate and pool rule, choosers, environments and the reader of their traces."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from queues.nodes.promised_cases import make_case as make_node_case
from queues.nodes.random_sites import random_jobs, random_site
from stretto.catalog import BACKFILLS, ESTIMATES, POOL_RULES, STRATEGIES
from stretto.core.pool import Pool, Spot
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.files.traces.load import load_trace
from stretto.queues.env.queue_env import QueueEnv
from stretto.queues.env.strategy_env import StrategyEnv
from stretto.queues.forecasts.kernels.online import NUM_QUANTILES, forecast_all
from stretto.queues.forecasts.state import new_forecasts
from stretto.queues.kernels.codes import MULTIFACTOR
from stretto.queues.kernels.keys import EXPANSION
from stretto.queues.kernels.profile import new_profile
from stretto.queues.live_order import PortfolioOrder
from stretto.queues.mars.candidates import candidates_of, network_candidate, untrained_nets
from stretto.queues.mars.counterfactual import CounterfactualReplays
from stretto.queues.mars.kernels.score import new_scores
from stretto.queues.mars.live import MarsOrder
from stretto.queues.mars.parameters import MarsParameters
from stretto.queues.mars.replay import mars_replay
from stretto.queues.nodes.promised import NodePromiseQueue
from stretto.queues.nodes.replay import NODE_RULES
from stretto.queues.portfolio import Forecast, portfolio_replay
from stretto.queues.promises.kernels.reserve_all import reserve_all
from stretto.queues.promises.queue import BY_LENGTH, GIVEN, WEIGHTED, PromiseQueue, preference
from stretto.queues.promises.slack import Slack
from stretto.queues.recorded.kernels.conditions import ConditionArrays, PolicyCode
from stretto.queues.recorded.kernels.limited import run_limited
from stretto.queues.replay import replay, replay_told
from stretto.queues.view import QueueView
from stretto.queues.when.futures import futures_of
from stretto.queues.when.known import FutureRules, KnownQueue
from stretto.queues.when.replayed import replayed_queue

PROCS = 8


def make_trace(seed: int, num_jobs: int, *, needs: bool = False) -> Trace:
    """Draw jobs that crowd; with ``needs`` some want processors of graphics, and some wait for others."""
    rng = np.random.default_rng(seed)
    run = rng.integers(0 if needs else 1, 60, num_jobs)
    columns: dict[str, Any] = {"user": rng.integers(0, 3, num_jobs).astype(np.int32)}
    submit = np.cumsum(rng.integers(0, 9, num_jobs)).astype(float)
    columns["deadline_s"] = submit + rng.integers(10, 90, num_jobs)
    if needs:
        columns["num_gpus"] = rng.integers(0, 2, num_jobs).astype(np.int32)
        columns["parent"], columns["child"] = np.array([0, 2, 3], np.int32), np.array([4, 4, 7], np.int32)
    procs = rng.integers(1, PROCS if not needs else 5, num_jobs)
    estimate = run + rng.integers(0, 40, num_jobs) - (10 if needs else 0)
    return Trace.of(submit, run, procs, np.maximum(estimate, 1), max_procs=PROCS, **columns)


def make_pools() -> tuple[Pool, ...]:
    """Return a fixed pool, an elastic one, and one at prices that change."""
    spot = Spot(
        np.array([0.0, 40.0, 90.0]),
        np.array([0.5, 3.0, 1.0]),
        np.array([30.0, 600.0, 60.0]),
        bid_usd_per_hour=2.0,
        checkpoint_s=2.5,
    )
    return (
        Pool("own", 8, procs_per_node=2, gpus_per_node=1),
        Pool(
            "cloud",
            3,
            procs_per_node=4,
            gpus_per_node=2,
            price_usd_per_hour=2.5,
            provision_s=7.5,
            min_nodes=0,
            idle_shutdown_s=3.0,
        ),
        Pool(
            "spot",
            4,
            procs_per_node=4,
            gpus_per_node=1,
            speed=2.0,
            price_usd_per_hour=1.0,
            billing_s=60.0,
            min_nodes=1,
            spot=spot,
        ),
    )


def replays() -> Iterator[tuple[str, Any]]:
    plain, needy, pools = make_trace(1, 24), make_trace(2, 18, needs=True), make_pools()
    for strategy in STRATEGIES:
        for backfill in BACKFILLS:
            found = replay(plain, PROCS, strategy=strategy, backfill=backfill)
            yield f"replay {strategy} {backfill}", (found.start_s, found.end_s)
    # Every name with every other one, rather than all of them with all: that would be four times as many.
    set_apart = [name for name in BACKFILLS if name != "promise"]  # which knows no tie "one-event"
    combinations = list(itertools.product(enumerate(ESTIMATES), enumerate(set_apart), enumerate(POOL_RULES)))
    for (i, estimates), (j, backfill), (k, pool_rule) in combinations:
        if (i + j + k) % 4 == 0:
            rules: dict[str, Any] = {"estimates": estimates, "backfill": backfill, "pool_rule": pool_rule}
            kill, tie = bool(j % 2), ("batch", "one-event")[i % 2]
            found = replay(needy, pools, strategy="multifactor", kill=kill, tie=tie, seed=3, **rules)
            moments = found.start_s, found.end_s, found.cost_usd
            yield (
                f"pools {estimates} {backfill} {pool_rule}",
                (*moments, found.pool, found.is_killed, found.num_interruptions),
            )


def reservations() -> Iterator[tuple[str, Any]]:
    """Reserve room for many jobs, of few sizes and of many."""
    rng = np.random.default_rng(5)
    for most in (3, 60):
        procs, span = rng.integers(1, 4, 50) * 4, rng.integers(1, most, 50).astype(float)
        yield f"reservations of up to {most} s", reserve_all(new_profile(50, 16), procs, span)


def promises_in_pools() -> Iterator[tuple[str, Any]]:
    """Replay with promises that count on rented nodes, and jobs that are interrupted or outlive their estimates."""
    own, cloud, *others = make_pools()
    pools = (own, replace(cloud, promised=cloud.spot is None), *others)
    for seed, pool_rule in enumerate(POOL_RULES):
        trace = make_trace(seed, 30, needs=seed % 2 == 0)
        rules: dict[str, Any] = {"backfill": "promise", "slack": f"{20 * seed}s", "pool_rule": pool_rule}
        found = replay(trace, pools, strategy=("saf", "expansion")[seed % 2], seed=seed, **rules)
        yield f"promises in pools {pool_rule}", (found.start_s, found.end_s, found.due_s, found.margin_s, found.pool)
        alone = make_trace(seed, 30)
        led, _ = replay_told(alone, pools, strategy=("mars", "portfolio")[seed % 2], seed=seed)
        yield f"selectors in pools {seed}", (led.start_s, led.pool, led.cost_usd)


def under_conditions() -> Iterator[tuple[str, Any]]:
    """Replay on a machine that shrinks and fails."""
    for seed in (1, 4):
        trace = make_trace(seed, 40)
        assert trace.user is not None
        conditions = ConditionArrays(
            np.array([0.0, 60.0, 120.0, 200.0]),
            np.array([6, 0, 5, PROCS], np.int64),
            np.array([PROCS, 0, PROCS, PROCS], np.int64),
        )
        for easy, code in itertools.product((False, True), (seed - 1, EXPANSION, MULTIFACTOR)):
            start = np.empty(trace.num_jobs)
            policy = PolicyCode(code, easy, 5.0, 3.0, 100.0, 50.0, 30.0)
            status = run_limited(trace.arrays(), conditions, policy, start)
            yield f"limited {seed} {easy} {code}", (start, np.array([status]))


def on_nodes() -> Iterator[tuple[str, Any]]:
    """Replay random jobs on random sites, by all kinds of orders and backfillings."""
    rules = itertools.cycle(
        itertools.product(("fcfs", "expansion", "multifactor", "portfolio"), NODE_RULES["backfill"])
    )
    for seed in range(60):
        rng = np.random.default_rng(seed)
        site = random_site(rng)
        trace = random_jobs(rng, site)
        strategy, backfill = next(rules)
        with suppress(InvalidInput):  # none of the jobs fits
            found = replay(trace, site, strategy=strategy, backfill="easy" if strategy == "portfolio" else backfill)
            yield f"nodes {seed}", (found.start_s, found.end_s, found.node, found.tasks)


def on_nodes_with_promises() -> Iterator[tuple[str, Any]]:
    """Lead random queues on random sites: proposals, single starts, the mask, and nothing at all."""
    for seed in range(40, 76):
        case = make_node_case(seed)
        if case is None:
            continue
        queue = NodePromiseQueue.of(case.setup, case.slack_s, case.rules)
        allowed = 0
        while queue.next_event_s() < np.inf:
            if queue.happen(case.rules):
                if seed % 3 == 0 and queue.now_s < 10:
                    allowed += int(queue.allowed().sum())
                    queue.start(int(queue.waiting[-1]))
                if seed % 4:
                    queue.propose(case.rules, max_tests=case.max_tests)
            queue.settle()
        whole = NodePromiseQueue.of(case.setup, case.slack_s, case.rules)
        whole.advance(case.rules, max_tests=case.max_tests)
        yield f"promises on nodes {seed}", (queue.start_s, queue.due_s, np.array([allowed]), whole.start_s)


def starts() -> Iterator[tuple[str, Any]]:
    """Predict starts: by a fixed order, by one that changes with time, and with promises."""
    found = replay(make_trace(4, 24), PROCS)
    trace, jobs = found.trace, found.trace.arrays()
    for name, rules, slack in (
        ("fcfs", FutureRules(0), None),
        ("f4", FutureRules(10), None),
        ("expansion", FutureRules(20), None),
        ("promise", FutureRules(1, promises=True), np.full(24, 60.0)),
    ):
        queue = KnownQueue(trace, jobs, PROCS, found.start_s, found.end_s, rules, slack_s=slack)
        now = float(jobs.submit[18])
        outlooks = futures_of(queue, 0, 1).outlooks(now, queue.waiting_at(now)[:3])
        yield f"starts {name}", [[one.by_estimates_s, *one.futures_s] for one in outlooks]
    rng = np.random.default_rng(0)
    site = random_site(rng)
    on_site = replayed_queue(random_jobs(rng, site), site).queue
    now = float(np.median(on_site.jobs.submit))
    outlooks = futures_of(on_site, 0, 1).outlooks(now, on_site.waiting_at(now)[:3])
    yield "starts on a site", [[one.by_estimates_s, *one.futures_s] for one in outlooks]


def promises() -> Iterator[tuple[str, Any]]:
    trace = make_trace(11, 40)
    jobs = trace.arrays()
    short = jobs._replace(estimate=0.6 * jobs.estimate)  # some jobs outlive it
    for name, some, slack in (("tight", jobs, 5.0), ("wide", jobs, 200.0), ("outlived", short, 20.0)):
        queue = PromiseQueue.of(some, PROCS, slack, new_forecasts(some, trace))
        queue.advance(preference(WEIGHTED, by_length=True, reservation=BY_LENGTH, quantile=2, procs_power=0.5), 60.0)
        allowed, order = queue.allowed(), preference(GIVEN)
        queue.state.key[:] = -np.arange(40.0)
        while queue.next_event_s() < np.inf:
            if queue.happen(order):
                queue.start(int(queue.waiting[-1]))
                queue.propose(order)
                queue.settle()
        yield f"promises {name}", (allowed, queue.state.start, queue.state.due)
    quantiles = np.zeros((40, NUM_QUANTILES))
    forecast_all(new_forecasts(jobs, trace), jobs.submit, jobs.run, jobs.submit, quantiles)
    yield "forecasts", quantiles


def taken_over(trace: Trace) -> Any:
    """Replay what was never followed, and let another network take over in the middle."""
    jobs, n = trace.arrays(), trace.num_jobs
    queue = PromiseQueue.of(jobs, PROCS, 60.0, new_forecasts(jobs))
    queue.advance(preference(WEIGHTED, quantile=2))
    scores = new_scores(n)
    scores.static[:] = np.random.default_rng(2).normal(size=scores.static.shape)
    reserving, smith = (network_candidate(net, is_trained=False) for net in untrained_nets())
    replays = CounterfactualReplays(queue, scores, [smith, reserving], np.array(60.0))
    replays.learn(queue.forecasts, n, 1e12)
    replays.play(n // 2)
    replays.replace(0, reserving)
    replays.play(n)
    return replays.epochs(n, 10)


def choosers() -> Iterator[tuple[str, Any]]:
    for seed in (1, 5):
        trace = make_trace(seed, 40)
        if seed == 5:  # hours: some jobs are long, and leave room to others
            times = {name: 300.0 * getattr(trace, name) for name in ("submit_s", "run_s", "estimate_s")}
            trace = replace(trace, **times)
        forecast = Forecast(num_scenarios=4, num_arrivals=5, memory=20, depth=6, review=20)
        found = portfolio_replay(trace, PROCS, forecast=forecast, seed=2)
        yield f"portfolio {seed}", (found.start_s, found.chosen)
        hasty = MarsParameters(epoch_jobs=10, lag_jobs=2, block_epochs=1, certainty=0.0)
        slack = Slack(0.0 if seed == 1 else 3600.0, 1.0)
        played = mars_replay(trace, PROCS, candidates=candidates_of(), rules=hasty, slack=slack, num_threads=1)
        yield f"mars {seed}", (played.start_s, played.chosen)
        yield f"mars taken over {seed}", taken_over(trace)
    nan = np.nan
    view = QueueView(
        20.0,
        PROCS,
        job_id=np.arange(6),
        submit_s=np.arange(6.0),
        estimate_s=np.array([30.0, 100.0, 60.0, 5.0, 400.0, 20.0]),
        procs=np.array([3, 5, 2, 4, 1, 3], np.int32),
        user=np.array([0, 1, 0, 1, 0, 1], np.int32),
        start_s=np.array([0.0, 1.0, nan, nan, nan, nan]),
        end_s=np.array([9.0, nan, nan, nan, nan, nan]),
        is_ready=np.ones(6, np.bool_),
    )
    yield "online portfolio", list(PortfolioOrder().decide(view).order)
    yield "online mars", list(MarsOrder().decide(view).order)


def episodes() -> Iterator[tuple[str, Any]]:
    trace = make_trace(7, 24)
    for backfill in ("none", "easy"):
        for reward in ("bounded-slowdown", "wait"):
            queue = QueueEnv(trace=trace, num_jobs=18, num_visible=5, order="wfp3", backfill=backfill)
            yield f"queue environment {backfill} {reward}", walk(queue)
        strategies = StrategyEnv(trace=trace, num_jobs=18, backfill=backfill, strategies=("saf", "laf", "unicep"))
        yield f"strategy environment {backfill}", walk(strategies)


def walk(env: Any) -> list[Any]:
    """Play an episode by chance; return all that was seen."""
    rng = np.random.default_rng(0)
    observation, _ = env.reset(options={"first": 2})
    seen: list[Any] = [observation]
    over = False
    while not over:
        observation, reward, over, _, _ = env.step(np.int64(rng.integers(env.action_space.n)))
        seen += [observation, reward]
    return seen


def files() -> Iterator[tuple[str, Any]]:
    rows = [
        "; MaxProcs: 8",
        "1 0 5 10 4 -1 -1 4 20 -1 1 2 3 4 1 1 -1 -1",
        " 2 7.5 0 1e2 2 -1 -1 2 300 -1 1 2 3 4 1 1 -1 -1",
        "",
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.swf"
        path.write_text("\n".join(rows))
        trace = load_trace(path)
    yield "swf", (trace.submit_s, trace.run_s, trace.num_procs, trace.estimate_s)


def cases() -> Iterator[tuple[str, Any]]:
    yield from files()
    yield from replays()
    yield from reservations()
    yield from promises_in_pools()
    yield from under_conditions()
    yield from on_nodes()
    yield from on_nodes_with_promises()
    yield from promises()
    yield from starts()
    yield from choosers()
    yield from episodes()

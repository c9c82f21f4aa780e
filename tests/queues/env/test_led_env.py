"""Environments on a site and with promises: the checker, the mask of allowed starts, and agents that obey nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env

from stretto.core.request import ResourceRequest
from stretto.core.site import Partition, Site, SiteNode
from stretto.core.trace import Trace
from stretto.queues.env.led_batch import LedBatch
from stretto.queues.env.queue_env import QueueEnv, QueueVectorEnv
from stretto.queues.env.strategy_env import StrategyEnv
from stretto.queues.replay import replay
from stretto.queues.workloads.lublin import lublin

SITE = Site(
    "four",
    tuple(SiteNode(f"n{i}", 8, gpus={"a100": 1} if i == 3 else {}) for i in range(4)),
    (Partition("main", ("n0", "n1", "n2", "n3"), is_default=True), Partition("gpu", ("n2", "n3"), priority_tier=2)),
)
REQUESTS = (
    ResourceRequest(("main",), cpus_per_task=3, max_nodes=1),
    ResourceRequest(("main",), num_tasks=2, cpus_per_task=8, min_nodes=2, max_nodes=2),
    ResourceRequest(("gpu",), cpus_per_task=2, gpus_per_node={"a100": 1}),
    ResourceRequest(("main", "gpu"), num_tasks=6),
)


def jobs(num: int, seed: int) -> Trace:
    rng = np.random.default_rng(seed)
    run = rng.integers(5, 400, num).astype(float)
    request = rng.integers(0, len(REQUESTS), num).astype(np.int32)
    submit = np.cumsum(rng.integers(0, 60, num)).astype(float)
    cpus = np.array([one.num_cpus for one in REQUESTS])[request]
    return Trace.of(submit, run, cpus, run * rng.choice([1, 2, 5], num), request=request, requests=REQUESTS)


def setting(where: str) -> dict[str, Any]:
    """Return the parameters of environments on a site or on a plain machine."""
    if where == "site":
        return {"trace": jobs(120, 1), "site": SITE, "num_jobs": 24}
    return {"trace": lublin(120, num_procs=32, load=2.5, seed=4), "num_procs": 32, "num_jobs": 40}


@pytest.mark.parametrize("where", ["site", "machine"])
def test_gymnasium_finds_no_fault(where: str) -> None:
    for env in (QueueEnv(backfill="promise", **setting(where)), StrategyEnv(backfill="promise", **setting(where))):
        check_env(env, skip_render_check=True)


def play(env: Any, choose: Any, first: int) -> tuple[float, dict[str, Any]]:
    _, info = env.reset(options={"first": first})
    total, over = 0.0, False
    while not over:
        _, reward, over, _, info = env.step(choose(info))
        total += reward
    return total, info


@pytest.mark.parametrize("where", ["site", "machine"])
@pytest.mark.parametrize("slack", ["0", "2min+1e", "24h+4e"])
def test_no_agent_breaks_a_promise(where: str, slack: str) -> None:
    rng = np.random.default_rng(7)
    env = QueueEnv(backfill="promise", slack=slack, order="laf", num_visible=16, **setting(where))
    agents = (
        lambda info: np.int64(rng.choice(np.flatnonzero(info["action_mask"]))),  # random
        lambda info: np.int64(np.flatnonzero(info["action_mask"])[0]),  # the largest that may start
        lambda info: np.int64(16),  # never starts anything
        lambda info: np.int64(rng.integers(17)),  # does not look at the mask
    )
    for at, agent in enumerate(agents):
        total, info = play(env, agent, 20 * at)
        assert (info["promises_given"], info["promises_broken"]) == (env.batch.episode.num_jobs, 0)
        assert total == pytest.approx(-info["mean_bounded_slowdown"])


def test_the_mask_is_exact() -> None:
    env = QueueEnv(backfill="promise", slack="1min", **setting("site"))
    _, info = env.reset(options={"first": 5})
    assert isinstance(env.batch, LedBatch)
    over, refused = False, 0
    while not over:
        queue, game = env.batch.queue(0), env.batch._games[0]
        for place, job in enumerate(game.visible):
            may = bool(info["action_mask"][place])
            refused += not may
            assert queue._queue.copy().start(job) == may
        _, _, over, _, info = env.step(np.int64(np.flatnonzero(info["action_mask"])[0]))
    assert refused > 5


@pytest.mark.parametrize("backfill", ["easy", "promise"])
@pytest.mark.parametrize("where", ["site", "machine"])
def test_one_strategy_all_the_time_is_the_replay(where: str, backfill: str) -> None:
    if where == "machine" and backfill == "easy":
        pytest.skip("this is the compiled environment, which has a test of its own")
    given = setting(where)
    env = StrategyEnv(strategies=["sjf", "fcfs"], backfill=backfill, interval_s=0.0, **given)
    for action, name in enumerate(["sjf", "fcfs"]):
        play(env, lambda info, action=action: np.int64(action), 30)
        part = given["trace"].take(slice(30, 30 + given["num_jobs"]))
        machine = SITE if where == "site" else 32
        found = replay(part, machine, strategy=name, backfill=backfill)
        assert np.array_equal(env.batch.start_s(0), found.start_s)


def test_without_promises_the_first_place_that_fits_starts() -> None:
    env = QueueEnv(order="fcfs", **setting("site"))
    total, info = play(env, lambda info: np.int64(np.flatnonzero(info["action_mask"])[0]), 0)
    assert info["promises_given"] == 0
    assert total == pytest.approx(-info["mean_bounded_slowdown"])


@pytest.mark.parametrize("reward", ["wait", "final-bounded-slowdown"])
def test_rewards_add_up(reward: str) -> None:
    env = QueueEnv(reward=reward, backfill="promise", **setting("site"))
    total, info = play(env, lambda info: np.int64(np.flatnonzero(info["action_mask"])[0]), 0)
    assert total == pytest.approx(-info["mean_wait_s" if reward == "wait" else "mean_bounded_slowdown"])


def test_environments_side_by_side_are_the_same_as_one() -> None:
    envs = QueueVectorEnv(3, backfill="promise", **setting("site"))
    _, info = envs.reset(options={"first": 0})
    over = np.zeros(3, bool)
    while not over.any():
        _, _, over, _, info = envs.step(np.argmax(info["action_mask"], axis=1))
    assert over.all()
    _, one = play(
        QueueEnv(backfill="promise", **setting("site")), lambda info: np.int64(np.argmax(info["action_mask"])), 0
    )
    assert info["mean_wait_s"].tolist() == [one["mean_wait_s"]] * 3

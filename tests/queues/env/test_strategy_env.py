"""``stretto/Strategy-v1``: choosing one strategy for ever is a replay, and choices matter."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.env.batch import plain_strategies
from stretto.queues.env.strategy_env import StrategyEnv
from stretto.queues.replay import replay


def play(env: StrategyEnv, choose: Any, first: int) -> tuple[list[float], float, dict[str, Any]]:
    """Play an episode; return the times of choices, the sum of rewards and the last info."""
    _, info = env.reset(options={"first": first})
    times, total, over = [], 0.0, False
    while not over:
        times.append(info["time_s"])
        _, reward, over, _, info = env.step(np.int64(choose(len(times))))
        total += reward
    return times, total, info


@pytest.mark.parametrize("backfill", ["none", "easy"])
@pytest.mark.parametrize("strategy", plain_strategies())
def test_one_strategy_for_ever_is_a_replay(strategy: str, backfill: str) -> None:
    env = StrategyEnv(num_jobs=300, backfill=backfill, interval_s=900.0)
    action = plain_strategies().index(strategy)
    times, total, info = play(env, lambda _: action, first=900)
    expected = replay(env.batch.trace.window(900, 300), 256, strategy=strategy, backfill=backfill)
    np.testing.assert_array_equal(env.batch.start_s(0), expected.start_s)
    assert total == pytest.approx(-info["mean_bounded_slowdown"])
    assert len(times) > 10
    assert min(np.diff(times)) >= 900.0


def test_a_choice_matters_at_every_epoch() -> None:
    # A choice is due only when two jobs wait and a processor is free: one strategy for ever cannot be all there is.
    env = StrategyEnv(num_jobs=300, strategies=("saf", "laf"))
    results = {name: play(env, choose, first=900)[1] for name, choose in _CHOICES.items()}
    assert len(set(results.values())) == len(_CHOICES)
    assert max(results, key=results.__getitem__) == "small"


_CHOICES = {"small": lambda _: 0, "large": lambda _: 1, "in turn": lambda number: number % 2}


def test_two_strategies_by_hand() -> None:
    # P=2. A(0,10,2). B(1,9,1,9) and C(2,5,1,5), D(3,1,2,1) wait. At 10 all of them are waiting and 2 are free.
    # fcfs: B and C at 10; D at 19. saf: D (area 2) at 10, then B and C at 11.
    trace = Trace.of([0, 1, 2, 3], [10, 9, 5, 1], [2, 1, 1, 2], max_procs=2)
    env = StrategyEnv(trace=trace, num_jobs=4, strategies=("fcfs", "saf"), backfill="none")
    assert play(env, lambda _: 0, first=0)[0] == [10.0]
    assert env.batch.start_s(0).tolist() == [0, 10, 10, 19]
    play(env, lambda _: 1, first=0)
    assert env.batch.start_s(0).tolist() == [0, 11, 11, 10]


def test_an_episode_without_choices_is_over_after_one_step() -> None:
    env = StrategyEnv(trace=Trace.of([0, 100], [5, 5], [1, 1], max_procs=1), num_jobs=2)
    env.reset()
    _, reward, over, _, info = env.step(np.int64(0))
    assert over
    assert reward == -info["mean_bounded_slowdown"] == -1.0


def test_the_vector_form_takes_one_choice_per_environment() -> None:
    vector = gymnasium.make_vec("stretto/Strategy-v1", num_envs=2, num_jobs=300, strategies=("saf", "laf"))
    vector.reset(options={"first": 900})
    total = np.zeros(2)
    over = np.zeros(2, dtype=bool)
    while not over.all():
        _, reward, now_over, _, info = vector.step(np.array([0, 1]))
        total += np.where(over, 0.0, reward)
        over |= now_over
    assert info["action_mask"].shape == (2, 2)
    env = StrategyEnv(num_jobs=300, strategies=("saf", "laf"))
    assert total.tolist() == [play(env, lambda _, a=a: a, first=900)[1] for a in (0, 1)]


def test_there_must_be_something_to_choose() -> None:
    with pytest.raises(InvalidInput, match="nothing to choose"):
        StrategyEnv(strategies=())

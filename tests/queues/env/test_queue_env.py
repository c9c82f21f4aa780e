"""``stretto/Queue-v1`` and its vector form, against a plain twin and against replays."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from env_twin import Twin
from gymnasium.utils.env_checker import check_env
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stretto.envs
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.env.queue_env import QueueEnv, QueueVectorEnv
from stretto.queues.replay import replay

QUICK = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
PROCS = 6


@st.composite
def jobs(draw: st.DrawFn) -> Trace:
    """Jobs within a few seconds of each other, so that times coincide."""
    n = draw(st.integers(1, 12))
    gaps = draw(st.lists(st.sampled_from([0, 0, 1, 2, 7]), min_size=n, max_size=n))
    run = draw(st.lists(st.sampled_from([1, 2, 3, 8, 40]), min_size=n, max_size=n))
    longer = draw(st.lists(st.sampled_from([0, 0, 1, 5, 30]), min_size=n, max_size=n))
    procs = draw(st.lists(st.integers(1, PROCS), min_size=n, max_size=n))
    submit = np.cumsum([0, *gaps[1:]])
    return Trace.of(submit, run, procs, np.add(run, longer), max_procs=PROCS)


def play(env: Any, choose: Any, first: int = 0) -> tuple[float, dict[str, Any]]:
    """Play an episode; return the sum of its rewards and the last info."""
    _, info = env.reset(options={"first": first})
    total = 0.0
    while True:
        _, reward, over, truncated, info = env.step(choose(info))
        total += reward
        assert not truncated
        if over:
            return total, info


@pytest.mark.parametrize("name", stretto.envs.ENVIRONMENTS)
def test_gymnasium_finds_no_fault(name: str) -> None:
    check_env(gymnasium.make(name).unwrapped)


@QUICK
@given(jobs(), st.sampled_from(["fcfs", "sjf", "saf", "wfp3"]), st.booleans(), st.integers(1, 6), st.data())
def test_every_step_equals_the_twin(trace: Trace, order: str, easy: bool, visible: int, data: st.DataObject) -> None:
    backfill = "easy" if easy else "none"
    env = QueueEnv(trace=trace, num_jobs=trace.num_jobs, num_visible=visible, order=order, backfill=backfill)
    twin = Twin(trace, PROCS, order, easy)
    observation, info = env.reset()
    twin.settle()
    paid = 0.0
    while not twin.is_over:
        assert info["time_s"] == twin.now
        assert int(info["action_mask"].sum()) == min(visible, len(twin.queue))
        shares = observation["jobs"][: min(visible, len(twin.queue)), 2]
        np.testing.assert_allclose(shares * PROCS, [twin.procs(job) for job in twin.queue[:visible]], rtol=1e-6)
        assert observation["machine"][0] == pytest.approx(twin.free / PROCS)
        action = data.draw(st.integers(0, visible - 1))
        observation, reward, over, _, info = env.step(np.int64(action))
        twin.pick(twin.queue[action] if action < min(visible, len(twin.queue)) else twin.queue[0])
        assert over == twin.is_over
        # Jobs that have arrived count one each from the beginning.
        assert reward == pytest.approx(-(twin.slowdown_so_far() - paid) / trace.num_jobs)
        paid = twin.slowdown_so_far()
    assert env.batch.start_s(0).tolist() == [twin.start[job] for job in range(trace.num_jobs)]


@pytest.mark.parametrize("backfill", ["none", "easy"])
@pytest.mark.parametrize("order", ["fcfs", "sjf", "wfp3", "f3"])
def test_always_the_head_is_a_replay(order: str, backfill: str) -> None:
    env = QueueEnv(num_jobs=400, num_visible=3, order=order, backfill=backfill)
    total, info = play(env, lambda _: 0, first=700)
    expected = replay(env.batch.trace.window(700, 400), 256, strategy=order, backfill=backfill)
    np.testing.assert_array_equal(env.batch.start_s(0), expected.start_s)
    assert info["max_wait_s"] == expected.wait_s.max()
    assert total == pytest.approx(-info["mean_bounded_slowdown"])


def test_picking_the_shortest_visible_job_is_shortest_first() -> None:
    env = QueueEnv(num_jobs=300, num_visible=300)

    def shortest(info: dict[str, Any]) -> int:
        estimate = np.where(info["action_mask"], env.batch.jobs[0, :, 1], np.inf)
        return int(np.argmin(estimate))

    play(env, shortest, first=50)
    window = env.batch.trace.window(50, 300)
    np.testing.assert_array_equal(env.batch.start_s(0), replay(window, 256, strategy="sjf", backfill="none").start_s)


@pytest.mark.parametrize(
    ("reward", "figure"), [("wait", "mean_wait_s"), ("final-bounded-slowdown", "mean_bounded_slowdown")]
)
def test_rewards_add_up_to_a_mean(reward: str, figure: str) -> None:
    total, info = play(QueueEnv(num_jobs=200, reward=reward), lambda _: 0, first=100)
    assert total == pytest.approx(-info[figure])
    assert info[figure] > 1


def test_a_final_reward_comes_last() -> None:
    env = QueueEnv(num_jobs=50, reward="final-bounded-slowdown")
    env.reset(seed=3)
    rewards = []
    over = False
    while not over:
        _, reward, over, _, _ = env.step(np.int64(0))
        rewards.append(reward)
    assert rewards[-1] < 0
    assert not any(rewards[:-1])


def test_the_vector_form_equals_single_environments() -> None:
    vector = gymnasium.make_vec("stretto/Queue-v1", num_envs=3, num_jobs=40, num_visible=8)
    assert isinstance(vector.unwrapped, QueueVectorEnv)
    observation, _ = vector.reset(seed=5)
    firsts = [vector.unwrapped.batch.first(place) for place in range(3)]
    assert len(set(firsts)) == 3
    singles = [QueueEnv(num_jobs=40, num_visible=8) for _ in range(3)]
    for env, first in zip(singles, firsts):
        env.reset(options={"first": first})
    rng = np.random.default_rng(0)
    is_over = [False] * 3
    ended = 0
    for _ in range(400):
        actions = rng.integers(0, 8, size=3)
        observation, reward, over, _, info = vector.step(actions)
        for place, env in enumerate(singles):
            if is_over[place]:  # the vector form has begun the next episode
                seen, _ = env.reset(options={"first": vector.unwrapped.batch.first(place)})
                assert reward[place] == 0
                is_over[place] = False
            else:
                seen, single, is_over[place], _, last = env.step(actions[place])
                assert single == reward[place]
                if is_over[place]:
                    ended += 1
                    assert info["_mean_wait_s"][place]
                    assert info["mean_wait_s"][place] == last["mean_wait_s"]
            assert is_over[place] == over[place]
            for name, value in seen.items():
                np.testing.assert_array_equal(observation[name][place], value)
    assert ended > 3


def test_the_same_seed_gives_the_same_episodes() -> None:
    def firsts(seed: int) -> list[int]:
        env = QueueEnv(num_jobs=20)
        env.reset(seed=seed)
        found = [env.batch.first(0)]
        for _ in range(3):
            env.reset()
            found.append(env.batch.first(0))
        return found

    assert firsts(1) == firsts(1) != firsts(2)


def test_mistakes_are_explained() -> None:
    with pytest.raises(UnknownName, match="did you mean"):
        QueueEnv(reward="bounded-slowdwn")
    with pytest.raises(UnknownName, match="did you mean sjf"):
        QueueEnv(order="sjff")
    with pytest.raises(InvalidInput, match="multifactor"):
        QueueEnv(order="multifactor")
    with pytest.raises(InvalidInput, match="too few for episodes of 9999"):
        QueueEnv(num_jobs=9999)
    with pytest.raises(InvalidInput, match="on how many processors"):
        QueueEnv(trace=Trace.of([0], [1], [1]), num_jobs=1)
    chain = Trace.of([0, 0], [1, 1], [1, 1], parent=np.array([0], np.int32), child=np.array([1], np.int32))
    with pytest.raises(InvalidInput, match="wait for other jobs"):
        QueueEnv(trace=chain, num_procs=2, num_jobs=2)
    env = QueueEnv(num_jobs=1)
    with pytest.raises(InvalidInput, match="call reset"):
        env.step(np.int64(0))
    with pytest.raises(InvalidInput, match=r"not in 0\.\."):
        env.reset(options={"first": -1})
    env.reset()
    with pytest.raises(InvalidInput, match="Discrete"):
        env.step(np.int64(64))


def test_a_recorded_log_can_be_played(data_dir: Any) -> None:
    env = QueueEnv(trace=data_dir / "swf" / "SDSC-SP2-1998-4.2-cln.swf.gz", num_jobs=500, order="saf", backfill="easy")
    play(env, lambda _: 0, first=20_000)
    expected = replay(env.batch.trace.window(20_000, 500), 128, strategy="saf", backfill="easy")
    np.testing.assert_array_equal(env.batch.start_s(0), expected.start_s)

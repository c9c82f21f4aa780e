"""``stretto/Rack-v1``: Gymnasium's own checker, masks, rewards that add up, and many at once."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import stretto.envs  # noqa: F401 (makes the names known)
from stretto.errors import InvalidInput


def test_gymnasium_finds_no_fault():
    check_env(gymnasium.make("stretto/Rack-v1", case="two-nics", num_streams=4).unwrapped, skip_render_check=True)


def test_a_return_is_minus_the_sum_of_completion_times():
    env = gymnasium.make("stretto/Rack-v1", case="two-nics", num_streams=4).unwrapped
    _, info = env.reset(seed=1, options={"stream": 2})
    rng = np.random.default_rng(0)
    total, over = 0.0, False
    while not over:
        action = np.int64(rng.choice(np.flatnonzero(info["action_mask"])))
        _, reward, over, _, info = env.step(action)
        total += reward
    arrival = env._racks.world.streams.arrival_s[2]
    assert total == pytest.approx(-(info["job_end_s"] - arrival).sum(), rel=1e-6)
    with pytest.raises(InvalidInput, match="over"):
        env.step(np.int64(0))


def test_an_invalid_action_costs_nothing_and_changes_nothing():
    env = gymnasium.make("stretto/Rack-v1", case="two-nics", num_streams=2).unwrapped
    before, info = env.reset(seed=0)
    wrong = np.int64(np.flatnonzero(info["action_mask"] == 0)[0])
    after, reward, over, _, info = env.step(wrong)
    assert (reward, over, info["is_valid"]) == (0.0, False, False)
    np.testing.assert_array_equal(before["numbers"], after["numbers"])


def test_what_is_hidden_is_not_in_the_observation():
    """Foreign load that has not been read yet must not show; what counters read before the first decision does."""
    env = gymnasium.make("stretto/Rack-v1", case="two-nics", num_streams=2).unwrapped
    first, info = env.reset(seed=0, options={"stream": 0})
    streams = env._racks.world.streams
    is_later = streams.flow_s[0] > info["time_s"]
    assert 0 < np.sum(is_later) < is_later.size
    streams.flow_level[0][is_later] += 0.5
    second, _ = env.reset(seed=0, options={"stream": 0})
    np.testing.assert_array_equal(first["numbers"], second["numbers"])
    streams.flow_level[0][~is_later] += 0.5
    third, _ = env.reset(seed=0, options={"stream": 0})
    assert np.any(first["numbers"] != third["numbers"])


def test_many_at_once_with_beliefs():
    env = gymnasium.make_vec("stretto/Rack-v1", num_envs=3, case="two-nics", num_streams=4, belief=True)
    observation, info = env.reset(seed=3)
    assert observation["numbers"].shape[0] == 3
    for _ in range(30):
        actions = np.array([np.flatnonzero(mask)[0] for mask in info["action_mask"]])
        observation, reward, _, _, info = env.step(actions)
    assert np.all(np.isfinite(observation["numbers"]))
    assert np.all(reward <= 0)


def test_wrong_options_are_refused():
    env = gymnasium.make("stretto/Rack-v1", case="two-nics", num_streams=2).unwrapped
    with pytest.raises(InvalidInput, match="stream"):
        env.reset(options={"first": 1})
    with pytest.raises(InvalidInput, match="not in"):
        env.reset(options={"stream": 2})

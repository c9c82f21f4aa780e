"""Training of the strategist: it finds who is cheaper from what is seen, and does not change for nothing."""

from __future__ import annotations

import numpy as np
import pytest
from research.mars.strategist import prior

from research.mars import observation
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.mars.network import classic_net

pytest.importorskip("jax")
pytest.importorskip("optax")
from research.mars.epochs import record
from research.mars.strategist_trainer import THRESHOLDS, Epochs, StrategistRules, follow, train, validated

RULES = StrategistRules(num_updates=120, learning_rate=0.01)


def queue_of(seed: int, *, is_exact: bool, num_epochs: int = 30) -> Epochs:
    """Return a queue in which the variant is cheaper where estimates are exact, and dearer elsewhere."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((num_epochs, 3, observation.NUM_INPUTS))
    rows[:, 0, observation.IS_DEFAULT] = rows[:, 1, observation.IS_VARIANT] = 1.0
    rows[..., observation.EXACT] = float(is_exact)
    rows[..., observation.SEEN] = 0.5
    cost = np.exp(rng.normal(1.0, 0.3, (num_epochs, 1)) + np.array([0.0, -0.5 if is_exact else 0.5, 0.3]))
    return Epochs(f"{seed}", rows, cost)


def test_rewards_are_what_is_saved_against_the_default() -> None:
    reward = queue_of(1, is_exact=True).rewards()
    np.testing.assert_allclose(reward[:, 0], 0.0)
    assert reward[:, 1].mean() == pytest.approx(0.5)
    assert reward[:, 2].mean() == pytest.approx(-0.3)


@pytest.mark.long
def test_it_learns_when_the_variant_is_better() -> None:
    queues = [queue_of(k, is_exact=bool(k % 2)) for k in range(6)]
    found, told = train(queues, seed=1, rules=RULES)
    assert told[-10:].mean() > told[:10].mean() + 0.05
    fresh = [queue_of(100, is_exact=True), queue_of(101, is_exact=False, num_epochs=20)]
    checked, worth = validated(found, queues, change=RULES.change)
    assert set(worth) == set(THRESHOLDS)
    threshold = float(checked.threshold[0])
    followed, gained = follow(checked, fresh[0], threshold)
    assert np.mean(followed == 1) > 0.9
    assert gained > 0.4
    followed, gained = follow(checked, fresh[1], threshold)
    np.testing.assert_array_equal(followed, 0)
    assert gained == 0.0


def test_changes_cost() -> None:
    queue = queue_of(1, is_exact=True)
    followed, free = follow(prior(), queue, 0.0)
    _, dear = follow(prior(), queue, 0.0, change=1.0)
    num_changes = int(np.sum(np.diff(np.r_[0, followed]) != 0))
    assert free - dear == pytest.approx(num_changes / len(followed))


@pytest.mark.long
def test_the_same_seed_gives_the_same_weights() -> None:
    rules = StrategistRules(num_updates=3)
    one, other = (train([queue_of(1, is_exact=True)], seed=4, rules=rules)[0] for _ in range(2))
    for name, array in one.to_arrays().items():
        np.testing.assert_array_equal(getattr(other, name), array)


def test_recorded_epochs_show_each_candidate_and_what_it_cost_next() -> None:
    rng = np.random.default_rng(2)
    run = np.round(np.exp(rng.normal(5, 1.5, 1600))) + 1
    procs = rng.integers(1, 17, 1600)
    submit = np.cumsum(rng.exponential(float((run * procs).mean()) / 16, 1600))
    trace = Trace.of(submit - submit[0], run, procs, 2 * run, user=np.zeros(1600, np.int32))
    nets = [classic_net("fcfs"), classic_net("fcfs"), classic_net("saf")]
    found = record(trace, 16, nets, ["saf"], [])
    assert found.rows.shape == (len(found.cost), 3, observation.NUM_INPUTS)
    assert len(found.cost) >= 3
    np.testing.assert_array_equal(found.cost[:, 0], found.cost[:, 1])
    np.testing.assert_array_equal(found.rows[:, 1, observation.ALL], 0.0)
    assert np.all(found.cost[:, 2] < found.cost[:, 0])
    assert np.all(found.rows[:, 2, observation.ALL] < 0.0)
    np.testing.assert_array_equal(found.rows[:, :, observation.IS_PENALIZED], [[0, 0, 1]] * len(found.rows))


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 1"):
        StrategistRules(num_plays=0)
    with pytest.raises(InvalidInput, match="from 0 to 1"):
        StrategistRules(discount=1.5)
    with pytest.raises(InvalidInput, match="not negative"):
        StrategistRules(change=-1.0)
    with pytest.raises(InvalidInput, match="recorded"):
        train([], seed=1)
    with pytest.raises(InvalidInput, match="queues"):
        validated(prior(), [], change=0.1)

"""Training the forecaster: it learns what can be known, and says the three means of what cannot."""

from __future__ import annotations

import numpy as np
import pytest
from research.mars.forecaster_trainer import Examples, fit, gather, join

from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.mars.kernels.forecast import HARMONIC, LEAK, MEAN, NUM_INPUTS, TYPICAL, Forecaster


def said(forecaster: Forecaster, x: np.ndarray) -> np.ndarray:
    z = x @ forecaster.first + forecaster.bias
    return np.asarray(np.maximum(z, LEAK * z) @ forecaster.out + forecaster.out_bias)


def test_the_three_means_of_a_coin() -> None:
    """Jobs crash at once or run for half of their estimates; nothing tells which."""
    rng = np.random.default_rng(0)
    ratio = rng.choice([0.01, 0.5], 40_000)
    x = rng.normal(size=(len(ratio), NUM_INPUTS)).astype(np.float32) * 0.1
    examples = Examples(x, np.log(ratio).astype(np.float32), np.arange(len(ratio)))
    heads = said(fit(examples, seed=1, num_hidden=8, epochs=10, batch=256), np.zeros((1, NUM_INPUTS)))[0]
    assert heads[TYPICAL] == pytest.approx(np.log(ratio).mean(), abs=0.1)
    assert heads[MEAN] == pytest.approx(np.log(ratio.mean()), abs=0.1)
    assert heads[HARMONIC] == pytest.approx(-np.log(np.mean(1.0 / ratio)), abs=0.1)


def test_users_who_differ_are_told_apart() -> None:
    """One user runs for all of his estimates, the other for a hundredth; a job later that is known."""
    rng = np.random.default_rng(2)
    user = rng.integers(0, 2, 4000).astype(np.int32)
    submit = np.cumsum(rng.uniform(0, 2000, 4000))
    run = np.where(user == 0, 3600.0, 36.0)
    jobs = Trace.of(submit, run, np.ones(4000, np.int32), np.full(4000, 3600.0), user=user).arrays()
    examples = gather(jobs, jobs.submit + 1.0, count=4000, seed=1)
    early, late = examples.take(examples.job < 2000), examples.take(examples.job >= 2000)
    found = fit(early, seed=1, num_hidden=8, epochs=60, batch=256)
    error = said(found, late.x)[:, TYPICAL] - late.log_ratio
    assert np.sqrt(np.mean(error**2)) < 0.3 < np.std(late.log_ratio)


def test_the_same_seed_gives_the_same_weights() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(3000, NUM_INPUTS)).astype(np.float32)
    examples = Examples(x, x[:, 0] - 1.0, np.arange(3000))
    one, other, third = (fit(examples, seed=seed, num_hidden=4, epochs=1) for seed in (1, 1, 2))
    assert np.array_equal(one.first, other.first)
    assert not np.array_equal(one.first, third.first)


def test_nothing_to_learn_from_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="no examples"):
        join([])

"""The confidence of the ensemble: it finds known probabilities, says what is true, and leaves out the unsure."""

from __future__ import annotations

import numpy as np
import pytest
from research.mars.confidence import INPUTS, sigmoid
from research.mars.confidence_trainer import (
    AHEAD_JOBS,
    NEVER,
    Examples,
    calibrate,
    fit,
    gather,
    join,
    judge,
    logistic,
    threshold_of,
)

from stretto.core.csr import Floats
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.mars.network import classic_net

PROCS = 16


def drawn(count: int, seed: int, *, log: int = 0, shift: float = 0.0) -> tuple[Examples, Floats]:
    """Return examples whose probabilities are known: two of the inputs decide."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, len(INPUTS)))
    probability = sigmoid(1.5 * x[:, 0] - 0.8 * x[:, 4] + shift)
    ratio = np.where(rng.random(count) < probability, -0.5, 0.5)
    return Examples(x, ratio, np.zeros(count, np.int64), np.full(count, log)), probability


def test_logistic_regression_finds_the_weights_behind_the_examples() -> None:
    examples, _ = drawn(40_000, 1, shift=0.3)
    x = np.c_[examples.x, np.ones(len(examples.x))]
    found = logistic(x, examples.is_cheaper.astype(float), examples.weight, 0.0)
    wanted = np.zeros(len(INPUTS) + 1)
    wanted[[0, 4, -1]] = 1.5, -0.8, 0.3
    np.testing.assert_allclose(found, wanted, atol=0.06)


def test_a_calibrated_model_says_what_comes_true_on_fresh_examples() -> None:
    """The logs that it is calibrated on have another mean than those that it was fitted on."""
    model = calibrate(fit(drawn(4000, 1, shift=1.0)[0]), drawn(4000, 2)[0])
    fresh, probability = drawn(20_000, 3)
    assert np.abs(model.probability(fresh.x) - probability).mean() < 0.03
    report = judge(model, fresh)
    assert report.calibration_error < 0.03
    assert report.brier < 0.8 * report.brier_of_mean
    assert report.brier == pytest.approx(float(np.mean(probability * (1 - probability))), abs=0.01)
    assert sum(one.share for one in report.bins) == pytest.approx(1.0)
    assert report.hits >= 0.78
    assert report.gain > 0.0


def test_what_was_not_calibrated_is_worse() -> None:
    model, fresh = fit(drawn(4000, 1, shift=1.0)[0]), drawn(20_000, 3)[0]
    calibrated = calibrate(model, drawn(4000, 2)[0])
    assert judge(calibrated, fresh).calibration_error < 0.5 * judge(model, fresh).calibration_error


def test_the_threshold_leaves_out_the_unsure() -> None:
    examples, probability = drawn(20_000, 5)
    threshold = threshold_of(probability, examples)
    assert 0.5 < threshold < 0.8
    followed = probability >= threshold
    assert examples.is_cheaper[followed].mean() >= 0.8
    assert examples.is_cheaper[probability >= threshold - 0.05].mean() < 0.8, "a lower one would not do"


def test_where_nothing_is_sure_nobody_is_followed() -> None:
    examples, _ = drawn(2000, 6)
    assert threshold_of(np.full(2000, 0.6), examples) == NEVER
    dear = Examples(examples.x, np.where(np.arange(2000) % 6, -0.02, 1.9), examples.member, examples.log)
    assert dear.is_cheaper.mean() > 0.8
    assert threshold_of(np.full(2000, 0.99), dear) == NEVER, "mostly a little cheaper, sometimes much dearer"


def test_logs_count_alike() -> None:
    both = join([drawn(100, 1, log=0)[0], drawn(5000, 2, log=3)[0]])
    assert both.weight.sum() == pytest.approx(1.0)
    assert both.weight[both.log == 0].sum() == pytest.approx(0.5)
    with pytest.raises(InvalidInput, match="examples"):
        join([])


def test_examples_of_a_queue_say_what_comes_of_each_member() -> None:
    rng = np.random.default_rng(0)
    n = AHEAD_JOBS + 1500
    run = np.round(np.exp(rng.normal(5, 1.5, n))) + 1
    procs = rng.integers(1, PROCS + 1, n)
    gap = rng.exponential(float((run * procs).mean()) / PROCS, n)
    trace = Trace.of(np.floor(np.cumsum(gap)), run, procs, run * 2, user=rng.integers(0, 6, n).astype(np.int32))
    nets = [classic_net("fcfs"), classic_net("saf"), classic_net("fcfs"), classic_net("laf")]
    found = gather(trace, PROCS, nets, log=7)
    assert len(found.x) >= 6
    assert len(found.x) % 3 == 0
    assert np.all(np.isfinite(found.x))
    assert set(found.log.tolist()) == {7}
    good, same, bad = (found.is_cheaper[found.member == k] for k in range(3))
    assert good.all()
    assert not same.any(), "who does the same is not cheaper"
    assert not bad.any()
    np.testing.assert_array_equal(found.log_ratio[found.member == 1], 0.0)
    assert np.all(found.x[found.member == 0, 0] > 0.1), "its shadow says so"

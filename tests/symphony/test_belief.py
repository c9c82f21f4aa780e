"""The belief filter: exact where it can be, calibrated, robust to counters that lie; and its two gradients."""

from __future__ import annotations

import numpy as np
import pytest

from stretto.kernels.rack_belief import fill_belief, forget_all, update_belief
from stretto.kernels.rack_time import refresh
from stretto.sim.rack import BeliefParams, CounterSpec, RackBatch, counters_of, new_belief, new_readings, new_state
from symphony.rack_cases import random_action, small_rack, two_nics


def _one_window(params: BeliefParams, mean: float, sd: float, num: int, *, occupancy: bool = True):
    """An idle machine whose counters all read the same once; with or without its occupancy counters."""
    model, streams = two_nics()
    counters = counters_of(model, CounterSpec())
    if not occupancy:
        keep = counters.exponent == 1.0
        ptr = np.array([0, keep.sum()], np.int32)
        counters = counters._replace(ptr=ptr, resource=counters.resource[keep], exponent=counters.exponent[keep])
    state, readings, belief = new_state(model, streams, 1), new_readings(counters, 1), new_belief(model, 1, params)
    state.task[:] = -1
    forget_all(belief, 0)
    readings.mean[:], readings.sd[:], readings.num[:] = mean, sd, num
    scratch = np.zeros(len(model.resources)), np.zeros((len(model.resources), len(model.sources)))
    update_belief(model.arrays, counters, state, 0, readings, belief, params.array(), 1e-9, *scratch)
    fill_belief(model.arrays, state, 0, belief, params.array(), *scratch)
    return model, counters, belief


def test_readings_give_the_linear_gaussian_posterior():
    """With Gaussian noise known in advance and nothing full, the answer is the textbook one."""
    params = BeliefParams(noise=0.0, floor=0.1, prior_nu=1e9, jump=1e9, level={"pcie-switch": (0.3, 0.2)})
    model, counters, belief = _one_window(params, 0.2, 0.1, 4, occupancy=False)
    mean, sd = params.prior(model)
    design = model.arrays.source_demand.T[counters.resource]  # [C, F]
    error = 0.1**2 / 4
    precision = np.diag(1 / sd**2) + design.T @ design / error
    expected = np.linalg.solve(precision, mean / sd**2 + design.T @ np.full(len(design), 0.2) / error)
    np.testing.assert_allclose(belief.level[0], expected, atol=1e-4)
    np.testing.assert_allclose(belief.cov[0], np.linalg.inv(precision), atol=1e-6)


def test_no_readings_leave_the_prior():
    params = BeliefParams()
    model, _, belief = _one_window(params, 0.9, 0.1, 0)
    np.testing.assert_allclose(belief.level[0], params.prior(model)[0])


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1e12, 1e300])
def test_absurd_readings_change_nothing_and_never_crash(wrong):
    params = BeliefParams()
    model, _, belief = _one_window(params, wrong, 0.1, 4)
    np.testing.assert_allclose(belief.level[0], params.prior(model)[0])
    assert np.all(np.isfinite(belief.load))


def test_beliefs_are_nearer_to_the_truth_than_raw_counters_and_their_intervals_hold():
    model, streams = small_rack(num_instances=16, num_jobs=8)
    batch = RackBatch(model, streams, 8, seed=3)
    batch.start()
    rng = np.random.default_rng(0)
    errors, spreads, truths = [], [], []
    for _ in range(80):
        for b in range(8):
            refresh(model.arrays, batch.state, b)
        errors.append(batch.belief.load - batch.state.load)
        spreads.append(batch.belief.load_sd.copy())
        truths.append(batch.state.load.copy())
        batch.step(np.array([random_action(mask, rng) for mask in batch.mask]))
    error, spread, truth = np.array(errors), np.array(spreads), np.array(truths)
    counts = spread > 1e-6
    assert np.abs(error[counts]).mean() < 0.08
    assert np.abs(error[counts]).sum() / truth[counts].sum() < 0.22  # raw counters: 0.4
    assert 0.90 < np.mean(np.abs(error[counts]) <= 1.96 * spread[counts]) < 0.98


def test_sampling_and_propagation_agree_on_means_and_gradients():
    jax = pytest.importorskip("jax")
    from stretto.learned.symphony.utilisation import propagated_means, sampled_means, two_socket_tree

    tree = two_socket_tree()
    mean = np.linspace(0.3, 0.6, tree.num_leaves)
    scale = np.full(tree.num_leaves, 0.03)
    noise = np.random.default_rng(0).standard_t(5.0, (40_000, tree.num_leaves))

    def sampled(theta):
        return sampled_means(tree, mean, scale, theta, noise).sum()

    def propagated(theta):
        return propagated_means(tree, mean, scale, theta, 5.0, 200).sum()

    assert float(sampled(4.0)) == pytest.approx(float(propagated(4.0)), rel=0.02)
    slope = float(jax.grad(sampled)(4.0))
    # The grid's density is that of u given the reading, which bends with theta as the samples do.
    assert float(jax.grad(propagated)(4.0)) == pytest.approx(slope, rel=0.1)
    step = 0.01
    assert (float(sampled(4.0 + step)) - float(sampled(4.0 - step))) / (2 * step) == pytest.approx(slope, rel=0.02)


def test_evidence_below_moves_what_is_above_it():
    """Back-pressure: a full memory says that the switch behind it is fuller than its own readings told."""
    jax = pytest.importorskip("jax")
    from stretto.learned.symphony.utilisation import posterior_by_importance, two_socket_tree

    tree = two_socket_tree()
    mean, scale = np.full(tree.num_leaves, 0.4), np.full(tree.num_leaves, 0.1)
    before, _ = posterior_by_importance(tree, mean, scale, 4.0, {0: (0.4, 10.0)}, jax.random.PRNGKey(0), 50_000)
    after, _ = posterior_by_importance(
        tree, mean, scale, 4.0, {tree.num_leaves + 2: (0.5, 0.02)}, jax.random.PRNGKey(0), 50_000
    )
    assert after[tree.num_leaves] > before[tree.num_leaves] + 0.005
    assert after[tree.num_leaves + 3] == pytest.approx(float(before[tree.num_leaves + 3]), abs=0.01)  # other socket


def test_theta_is_learned_from_a_wrong_start():
    pytest.importorskip("optax")
    from stretto.learned.symphony.utilisation import two_socket_tree
    from stretto.training.symphony_belief import TRUE_THETA, GradientSettings, learn_theta

    for method in ("sampling", "propagation"):
        settings = GradientSettings(method, batch_size=32, num_samples=32, num_bins=24, rate=0.05)
        found = learn_theta(settings, seed=0, num_updates=60, start=2.5, tree=two_socket_tree())
        assert abs(found.theta - TRUE_THETA) < 0.75

"""Utilization as a network of sums: sampling against belief propagation, and learning the counters' threshold."""

from __future__ import annotations

import numpy as np
import pytest


def test_sampling_and_propagation_agree_on_means_and_gradients():
    jax = pytest.importorskip("jax")
    from research.symphony.utilization import propagated_means, sampled_means, two_socket_tree

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
    from research.symphony.utilization import posterior_by_importance, two_socket_tree

    tree = two_socket_tree()
    mean, scale = np.full(tree.num_leaves, 0.4), np.full(tree.num_leaves, 0.1)
    before, _ = posterior_by_importance(tree, mean, scale, 4.0, {0: (0.4, 10.0)}, jax.random.PRNGKey(0), 50_000)
    after, _ = posterior_by_importance(
        tree, mean, scale, 4.0, {tree.num_leaves + 2: (0.5, 0.02)}, jax.random.PRNGKey(0), 50_000
    )
    assert after[tree.num_leaves] > before[tree.num_leaves] + 0.005
    assert after[tree.num_leaves + 3] == pytest.approx(float(before[tree.num_leaves + 3]), abs=0.01)  # other socket


@pytest.mark.long
def test_theta_is_learned_from_a_wrong_start():
    pytest.importorskip("optax")
    from research.symphony.belief_learning import TRUE_THETA, GradientSettings, learn_theta
    from research.symphony.utilization import two_socket_tree

    for method in ("sampling", "propagation"):
        settings = GradientSettings(method, batch_size=32, num_samples=32, num_bins=24, rate=0.05)
        found = learn_theta(settings, seed=0, num_updates=60, start=2.5, tree=two_socket_tree())
        assert abs(found.theta - TRUE_THETA) < 0.75

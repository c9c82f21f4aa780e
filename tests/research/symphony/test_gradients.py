"""The sampling gradients against enumeration and finite differences, and the printed Eq. 3 shown to be biased."""

from __future__ import annotations

import numpy as np
import pytest
from research.symphony.bayes import DiscreteNetwork, Node
from research.symphony.gradients import factored_gradient, literal_eq3, own_gradient, pathwise, score_gradient

from stretto.errors import InvalidInput

NUM_SAMPLES = 200_000


def _logits(rng, *shape):
    return rng.normal(size=shape)


def chain() -> DiscreteNetwork:
    """A -> Y -> X."""
    rng = np.random.default_rng(0)
    return DiscreteNetwork(
        (
            Node("A", (), _logits(rng, 2)),
            Node("Y", (0,), _logits(rng, 2, 3)),
            Node("X", (1,), _logits(rng, 3, 2)),
        )
    )


def diamond() -> DiscreteNetwork:
    """R -> A; A -> B, A -> C; B, C -> X: two parents that depend on each other."""
    rng = np.random.default_rng(1)
    return DiscreteNetwork(
        (
            Node("R", (), _logits(rng, 2)),
            Node("A", (0,), _logits(rng, 2, 2)),
            Node("B", (1,), _logits(rng, 2, 3)),
            Node("C", (1,), _logits(rng, 2, 2)),
            Node("X", (2, 3), _logits(rng, 3, 2, 2)),
        )
    )


def ladder() -> DiscreteNetwork:
    """A -> B, and both are parents of X: one parent stands above the other."""
    rng = np.random.default_rng(2)
    return DiscreteNetwork(
        (Node("A", (), _logits(rng, 3)), Node("B", (0,), _logits(rng, 3, 2)), Node("X", (0, 1), _logits(rng, 3, 2, 2)))
    )


def true_gradient(network, place, value, other, evidence, step=1e-5):
    """Central differences of the enumerated probability by each logit of a node."""
    logits = network.nodes[other].logits
    slope = np.zeros_like(logits)
    for index in np.ndindex(logits.shape):
        ends = []
        for sign in (1, -1):
            moved = logits.copy()
            moved[index] += sign * step
            ends.append(network.with_logits(other, moved).probability({place: value}, evidence))
        slope[index] = (ends[0] - ends[1]) / (2 * step)
    return slope


def distance(found, true):
    return float(np.abs(found - true).max() / np.abs(true).max())


def test_own_parameter_is_the_conditional_mean_of_eq_2():
    network = chain()
    samples = network.sample(NUM_SAMPLES, np.random.default_rng(3))
    found = own_gradient(network, 2, 1, {0: 1}, samples)
    assert distance(found, true_gradient(network, 2, 1, 2, {0: 1})) < 0.03


def test_score_function_form_of_eq_3_is_consistent_and_the_literal_one_is_not():
    network = chain()
    evidence = {0: 1}
    true = true_gradient(network, 2, 1, 1, evidence)
    errors = []
    for num in (2_000, 50_000, 1_000_000):
        samples = network.sample(num, np.random.default_rng(4))
        errors.append(distance(score_gradient(network, 2, 1, 1, evidence, samples), true))
    assert errors[-1] < 0.03
    assert errors[-1] < errors[0]

    def parent_gradient(y):
        return true_gradient(network, 1, y, 1, evidence)

    literal = [
        distance(literal_eq3(network, 2, 1, parent_gradient, network.sample(num, np.random.default_rng(5))), true)
        for num in (50_000, 1_000_000)
    ]
    assert min(literal) > 0.2  # its inner gradients are exact, and more samples do not help
    assert abs(literal[0] - literal[1]) < 0.05


@pytest.mark.parametrize(
    ("network", "place", "other", "evidence"),
    [
        (diamond(), 4, 2, {0: 1}),
        (diamond(), 4, 3, {0: 0}),
        (diamond(), 4, 1, {0: 1}),
        (ladder(), 2, 0, {}),
        (ladder(), 2, 1, {}),
    ],
)
def test_several_parents_by_eqs_4_and_5_and_by_the_score_function(network, place, other, evidence):
    samples = network.sample(NUM_SAMPLES, np.random.default_rng(6))
    true = true_gradient(network, place, 1, other, evidence)
    assert distance(factored_gradient(network, place, 1, other, evidence, samples), true) < 0.08
    assert distance(score_gradient(network, place, 1, other, evidence, samples), true) < 0.08


def test_separating_sets_are_found_by_bayes_ball():
    network = diamond()
    assert not network.is_separated(2, 3, set())
    assert network.is_separated(2, 3, {1})
    assert not network.is_separated(2, 3, {1, 4})  # what is known below joins them again
    assert network.separator([2, 3], set()) == {1}
    assert network.separator([2, 3], {1}) == set()


def test_assuming_independent_parents_would_be_wrong():
    """The loop matters: with N left empty the factored probabilities are not those of the network."""
    copy, differ = np.array([[3.0, 0.0], [0.0, 3.0]]), np.array([[[3.0, 0.0], [0.0, 3.0]], [[0.0, 3.0], [3.0, 0.0]]])
    network = DiscreteNetwork(
        (Node("A", (), np.zeros(2)), Node("B", (0,), copy), Node("C", (0,), copy), Node("X", (1, 2), differ))
    )
    samples = network.sample(20_000, np.random.default_rng(7))
    naive = sum(
        np.mean(samples[:, 1] == b) * np.mean(samples[:, 2] == c) * network.nodes[3].table[b, c, 1]
        for b in range(2)
        for c in range(2)
    )
    assert abs(naive - network.probability({3: 1})) > 0.1
    true = true_gradient(network, 3, 1, 1, {})
    assert distance(factored_gradient(network, 3, 1, 1, {}, samples), true) < 0.1


def test_forward_samples_have_the_enumerated_frequencies():
    network = diamond()
    samples = network.sample(NUM_SAMPLES, np.random.default_rng(8))
    for value in range(2):
        assert np.mean(samples[:, 4] == value) == pytest.approx(network.probability({4: value}), abs=0.005)


def test_pathwise_gradient_of_readings_through_an_algebraic_link():
    """Utilization from an occupancy reading with Student-t noise: u = v ** (1 / (theta - 1))."""
    jax = pytest.importorskip("jax")
    noise = np.random.default_rng(9).standard_t(5, size=50_000)

    def draw(theta, noise):
        reading = 0.5 + 0.02 * jax.numpy.clip(noise, -10, 10)
        return reading ** (1.0 / (theta - 1.0))

    def mean(theta):
        reading = 0.5 + 0.02 * np.clip(noise, -10, 10)
        return np.mean(reading ** (1.0 / (theta - 1.0)))

    found = float(pathwise(draw, 4.0, noise.astype(np.float32)))
    assert found == pytest.approx((mean(4.001) - mean(3.999)) / 0.002, rel=1e-2)


def test_evidence_that_no_sample_has_is_an_error():
    network = chain()
    samples = network.sample(10, np.random.default_rng(0), {0: 0})
    with pytest.raises(InvalidInput, match="evidence"):
        own_gradient(network, 2, 1, {0: 1}, samples)


def test_parents_must_come_first():
    with pytest.raises(InvalidInput, match="before"):
        DiscreteNetwork((Node("A", (0,), np.zeros((2, 2))),))

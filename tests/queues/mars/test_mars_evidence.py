"""Whether a candidate is surely cheaper: right on the average, never by one epoch, wary of what hangs together."""

from __future__ import annotations

import numpy as np

from stretto.queues.mars.evidence import surely_cheaper


def against(gain: np.ndarray, certainty: float = 2.5, level: np.ndarray | float = 1.0) -> bool:
    """Say whether the second of two is surely cheaper by these logarithms, at these levels of cost."""
    return bool(surely_cheaper(level * np.exp(np.stack([0.5 * gain, -0.5 * gain])), 0, certainty)[1])


def test_a_clear_gain_is_seen_and_none_is_not() -> None:
    assert against(np.full(10, 0.3))
    assert not against(np.zeros(10))
    assert not against(np.full(10, -0.3))


def test_luck_is_seldom_taken_for_a_gain() -> None:
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(2000, 60))
    assert np.mean([against(one) for one in noise]) < 0.02
    assert np.mean([against(one + 0.7) for one in noise]) > 0.95


def test_one_epoch_never_decides() -> None:
    for num_epochs in (5, 12, 30, 100):
        gain = np.zeros(num_epochs)
        gain[num_epochs // 2] = 9.0
        assert not against(gain)


def test_epochs_that_hang_together_count_less() -> None:
    """The same figures, once in disorder and once in two blocks: a bad month is one event, not thirty."""
    rng = np.random.default_rng(2)
    blocks = np.repeat([0.5, -0.2], 30)
    shares = [against(blocks), np.mean([against(rng.permutation(blocks)) for _ in range(100)])]
    assert shares[0] < shares[1]
    assert not shares[0]


def test_crowded_epochs_weigh_more_but_a_few_of_them_are_no_proof() -> None:
    """What saves half of the cost in every fourth epoch is cheaper, though it loses a little in the others."""
    gain = np.tile([0.7, -0.3, -0.3, -0.3], 25)
    crowded = np.tile([100.0, 1.0, 1.0, 1.0], 25)
    assert against(gain, level=crowded)
    assert not against(gain)
    once = np.where(np.arange(100) < 8, 100.0, 1.0)
    assert not against(np.where(once > 1.0, 0.7, -0.05), level=once)


def test_few_epochs_and_the_unwatched_are_never_sure() -> None:
    assert not against(np.full(4, 1.0))
    epochs = np.array([[2.0] * 8, [np.inf] * 8])
    assert not surely_cheaper(epochs, 0, 2.5)[1]


def test_without_certainty_no_dearer_is_enough() -> None:
    assert against(np.array([0.1]), 0.0)
    assert against(np.array([0.0]), 0.0)
    assert not against(np.array([-0.1]), 0.0)

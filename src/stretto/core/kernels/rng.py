"""A small random generator whose state is an array: same seed, same numbers, in any thread.

xorshift64* (Vigna 2016). Kernels take the state as an argument, because numba's own generator
lives per thread and cannot be seeded from outside without affecting others.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit


def seeded(seed: int, stream: int = 0) -> np.ndarray:
    """Return a fresh state for a seed and a stream number."""
    words = np.random.SeedSequence([seed, stream]).generate_state(2, np.uint64)
    return np.array([words[0] | np.uint64(1)], dtype=np.uint64)


@njit(cache=True, nogil=True)
def next_word(state):
    """Advance the state and return 64 random bits."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return x * np.uint64(0x2545F4914F6CDD1D)


@njit(cache=True, nogil=True)
def uniform(state):
    """Return a number in [0, 1)."""
    return np.float64(next_word(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True, nogil=True)
def below(state, limit):
    """Return an integer in 0 .. limit-1."""
    return np.int64((next_word(state) >> np.uint64(32)) * np.uint64(limit) >> np.uint64(32))

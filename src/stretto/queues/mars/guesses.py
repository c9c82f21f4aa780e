"""Run times of jobs that have not ended, guessed from the ratios of run time to estimate of those that have."""

from __future__ import annotations

from collections import deque

import numpy as np

from stretto.core.csr import Floats, Ints

#: Before anything has ended, jobs are taken to run for this share of their estimates.
FIRST_SHARE = 0.5
#: Ended jobs that guesses are drawn from: of all users, and of one.
_MOST_DRAWN, _MOST_OF_USER = 2000, 16
#: Tries to draw a run time that a running job has not outlived.
_TRIES = 4
#: An estimate is exact if it is off by no more than this part.
_OFF = 0.05


class Guesses:
    """The latest ratios, of everybody and of each user."""

    def __init__(self, num_users: int) -> None:
        self._rng = np.random.default_rng(0)
        self._of_all: deque[float] = deque([FIRST_SHARE], maxlen=_MOST_DRAWN)
        self._of_user = np.zeros((num_users, _MOST_OF_USER))  # a ring per user
        self._num_of_user = np.zeros(num_users, np.int64)

    @property
    def exactness(self) -> float:
        """Return the share of jobs that have ended lately which ran as long as was estimated."""
        return float(np.mean(np.abs(np.array(self._of_all) - 1.0) <= _OFF))

    def remember(self, user: Ints, ratio: Floats) -> None:
        """Take ratios of jobs into account, the latest last."""
        self._of_all.extend(ratio.tolist())
        for one, value in zip(user.tolist(), ratio.tolist(), strict=True):
            count = self._num_of_user[one]
            self._of_user[one, count % _MOST_OF_USER] = value
            self._num_of_user[one] = count + 1

    def draw(self, user: Ints, estimate: Floats, elapsed: Floats) -> Floats:
        """Draw run times of jobs that have run so long, each as one of those before, of the same user where any is."""
        estimate = np.maximum(estimate, 1.0)
        everybody = np.array(self._of_all)
        count = self._num_of_user[user]
        size = np.minimum(count, _MOST_OF_USER)
        has_own = size > 0
        drawn = self._rng.integers(0, np.where(has_own, size, len(everybody))[:, None], size=(len(user), _TRIES))
        oldest = np.where(count > _MOST_OF_USER, count % _MOST_OF_USER, 0)
        own = self._of_user[user[:, None], (oldest[:, None] + drawn) % _MOST_OF_USER]
        run = np.where(has_own[:, None], own, everybody[np.where(has_own[:, None], 0, drawn)]) * estimate[:, None]
        outlives = run > elapsed[:, None]
        first = run[np.arange(len(user)), np.argmax(outlives, axis=1)]
        beyond = np.maximum(elapsed, 0.5 * (elapsed + estimate))
        guess: Floats = np.maximum(np.where(outlives.any(axis=1), first, beyond), 1.0)
        return guess

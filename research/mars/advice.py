"""A strategist at work on one queue: what it sees becomes advice, and what came of it a lesson."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from research.mars.observation import MOST, Observation
from research.mars.strategist import Strategist, strategist_of

from stretto.core.csr import Floats

#: What the value of the next epoch counts; as in training.
DISCOUNT = 0.9


class Advisor:
    """Asked at every epoch; between two of them it learns.

    Parameters
    ----------
    names, penalized, variants
        The candidates, the first of which is the default; those that are believed less; those that differ from the
        default in little.
    learns
        Whether it takes a step at every epoch, or stays as it is.
    """

    def __init__(
        self,
        strategist: Strategist,
        names: Sequence[str],
        penalized: Sequence[str] = (),
        variants: Sequence[str] = (),
        *,
        learns: bool = True,
    ) -> None:
        self.strategist = strategist
        self._names = list(names)
        self._penalized = np.isin(self._names, list(penalized))
        self._variants = np.isin(self._names, list(variants))
        self._learns = learns
        self._before: Floats | None = None
        self.num_lessons = 0

    @property
    def threshold(self) -> float:
        """Return the least probability at which its favourite is followed."""
        return float(self.strategist.threshold[0])

    def advise(self, seen: Observation) -> Floats:
        """Learn from the epoch that has been played since, and say how likely each candidate is the one to follow."""
        rows = seen.rows(self._names, self._penalized, self._variants)
        if self._learns and self._before is not None:
            latest = seen.epochs[:, -1]
            with np.errstate(invalid="ignore"):
                reward = np.clip(np.log(latest[0]) - np.log(latest), -MOST, MOST)
            following = self.strategist.value(rows)
            self.strategist = self.strategist.learn(self._before, reward, following, discount=DISCOUNT)
            self.num_lessons += 1
        self._before = rows
        return self.strategist.probabilities(rows)

    def state(self) -> bytes:
        """Return all that the next advice depends on."""
        buffer = io.BytesIO()
        arrays: dict[str, Any] = {**self.strategist.to_arrays(), "num_lessons": np.array(self.num_lessons)}
        if self._before is not None:
            arrays["before"] = self._before
        np.savez(buffer, **arrays)
        return buffer.getvalue()

    def restore(self, state: bytes) -> None:
        """Continue from what :meth:`state` returned."""
        with np.load(io.BytesIO(state), allow_pickle=False) as found:
            arrays = dict(found)
        self.strategist = strategist_of(arrays)
        self._before = arrays.get("before")
        self.num_lessons = int(arrays["num_lessons"])

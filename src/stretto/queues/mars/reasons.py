"""Why a candidate is followed although another one has cost less: what that would save, how surely, what is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Rival:
    """The candidate that has cost least of those that are not followed.

    Attributes
    ----------
    against
        The candidate that it is compared with: the followed one; for a variant of the default, whoever stands for it.
    saves
        The share of that one's cost, after all that counts against a candidate (``network_gain``, and how much
        shadows have flattered).
    needed
        The least share at which it would be followed.
    gain, error
        By what share it was cheaper from epoch to epoch, and the standard error of that; infinite where epochs are
        too few to tell.
    needed_errors
        How many standard errors the gain must be.
    obstacle
        Why it may not be followed whatever it saves; empty where it may.
    """

    name: str
    against: str
    saves: float
    needed: float
    gain: float
    error: float
    needed_errors: float
    obstacle: str = ""

    @property
    def saves_enough(self) -> bool:
        return self.saves > self.needed

    @property
    def is_sure(self) -> bool:
        return self.gain > self.needed_errors * self.error if math.isfinite(self.error) else False

    def words(self) -> str:
        """Say what it would save, how surely, and which of the thresholds it missed."""
        if self.obstacle:
            return f"{self.name} has cost less, but {self.obstacle}"
        saving = f"{self.name} would save {self.saves:.0%} of what {self.against} costs"
        saving += f" ({self.needed:.0%} is asked)" if self.saves_enough else f", less than the {self.needed:.0%} asked"
        if not math.isfinite(self.error):
            return f"{saving}; too few epochs have been seen to be sure of that"
        asked = f"{self.needed_errors:.1f} standard errors"
        sure = f"from epoch to epoch it was {self.gain:.0%} ± {self.error:.0%} cheaper"
        return f"{saving}; {sure}" + (f" ({asked} are asked)" if self.is_sure else f", less than the {asked} asked")

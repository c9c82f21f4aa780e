"""How far a replay is from the record: differences of waits over the same jobs, and reasons that the log shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats
from stretto.core.trace import Trace
from stretto.queues.metrics import Spread
from stretto.queues.recorded.occupancy import known_waits
from stretto.queues.recorded.reasons import Reason, find_reasons


@dataclass(frozen=True)
class WaitPair:
    """Waits of the same jobs, as recorded and as replayed.

    Attributes
    ----------
    rank_correlation
        Spearman's, of the waits: 1 where the replay lets the same jobs wait longest.
    """

    num_jobs: int
    recorded: Spread
    replayed: Spread
    rank_correlation: float

    @property
    def mean_difference_s(self) -> float:
        """How much longer (or shorter, if negative) jobs wait in the replay."""
        return self.replayed.mean - self.recorded.mean

    @property
    def p95_difference_s(self) -> float:
        return self.replayed.p95 - self.recorded.p95

    @staticmethod
    def of(recorded: Floats, replayed: Floats) -> WaitPair:
        correlation = rank_correlation(recorded, replayed)
        return WaitPair(len(recorded), Spread.of(recorded), Spread.of(replayed), correlation)

    def to_json(self) -> dict[str, object]:
        return {
            "num_jobs": self.num_jobs,
            "recorded_mean_wait_s": self.recorded.mean,
            "replayed_mean_wait_s": self.replayed.mean,
            "recorded_p95_wait_s": self.recorded.p95,
            "replayed_p95_wait_s": self.replayed.p95,
            "mean_difference_s": self.mean_difference_s,
            "p95_difference_s": self.p95_difference_s,
            "rank_correlation": self.rank_correlation,
        }


@dataclass(frozen=True)
class Departure:
    """A replay beside the record, over the jobs that both have, and why they may differ."""

    waits: WaitPair
    reasons: tuple[Reason, ...]

    def to_json(self) -> dict[str, object]:
        return self.waits.to_json() | {"reasons": [reason.to_json() for reason in self.reasons]}


def departure_of(jobs: Trace, replayed_wait_s: Floats, num_procs: int) -> Departure | None:
    """Compare a replay with the record; None where no replayed job has a recorded wait.

    Parameters
    ----------
    jobs
        The jobs that were replayed, with all that the log says of them.
    replayed_wait_s
        By job; [n].
    """
    known = known_waits(jobs)
    if jobs.wait_s is None or not np.any(known):
        return None
    waits = WaitPair.of(jobs.wait_s[known], replayed_wait_s[known])
    return Departure(waits, find_reasons(jobs, num_procs, replayed_wait_s))


def rank_correlation(first: Floats, second: Floats) -> float:
    """Return Spearman's rank correlation, ties by their mean rank; zero where either has one value only."""
    one, other = _ranks(first), _ranks(second)
    if one.std() == 0 or other.std() == 0:
        return 0.0
    return float(np.clip(np.corrcoef(one, other)[0, 1], -1.0, 1.0))


def _ranks(values: Floats) -> Floats:
    _, index, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count).astype(np.float64)
    ranks: Floats = (last - (count - 1) / 2)[index]
    return ranks

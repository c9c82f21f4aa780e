"""The constants of calibration, in one place, with where they come from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CalibrationParameters:
    """How corrections are chosen.

    All were set by hand while the twelve public logs that hold waits were in view, before any unseen log; none was
    searched for. ``python benchmarks/recorded.py`` shows what they give, on the fitted and on the held-out half.

    Attributes
    ----------
    windows_s
        Lengths of windows of capacity that are tried: a week, a day, a shift.
    least_gain
        A correction must bring the replay nearer to the record by this share; below it, the noise of one replay.
    much_nearer, nearly_always
        A smaller machine alone takes the place of several corrections where its distance is at most this share of
        theirs, in at least this share of the blocks.
    num_blocks
        Stretches of equally many jobs over which waits are compared.
    fewest_jobs
        Recorded waits in the first half below which nothing is fitted: two per block.
    smaller_shares, larger_shares
        Shares of the usable processors that are tried one after the other until the replay waits longer (or shorter)
        than the record; between the last two the share is then halved ``num_halvings`` times, to less than 1 %.
    least_part
        A partition or queue counts from this share of the jobs on.
    """

    windows_s: tuple[float, ...] = (7 * 86400.0, 86400.0, 6 * 3600.0)
    least_gain: float = 0.03
    much_nearer: float = 0.5
    nearly_always: float = 0.8
    num_blocks: int = 10
    fewest_jobs: int = 20
    smaller_shares: tuple[float, ...] = (0.95, 0.9, 0.8, 0.65, 0.5, 0.35, 0.2)
    larger_shares: tuple[float, ...] = (1.05, 1.1, 1.25, 1.5, 2.0)
    num_halvings: int = 6
    least_part: float = 0.01

"""One steerer for the jobs of a cluster, or one for each partition: whoever steers has a mark, and renews it.

A claim is safe without a common clock. Each process makes its mark and then looks for others: of two, at least one sees
the other and withdraws. A mark is taken from its holder only by somebody who has watched it for its whole lease, by a
clock of his own, without a sign of life; and a holder that was stopped for so long looks again before it goes on.
"""

from __future__ import annotations

import random
import time

from stretto.engines.slurm.steer.marks import ClusterMarks, Mark, SeenMark
from stretto.errors import StrettoError

#: How long a process that restores labels, or one that came at the same moment, is waited for.
_PASSING_S = 10.0


def lease_s(interval_s: float) -> float:
    """Return how long a steerer may give no sign of life: several looks, and calls of Slurm that take their time."""
    return 60.0 + 4.0 * interval_s


class SteeringTaken(StrettoError):
    """Another process steers these jobs."""

    def __init__(self, holders: list[Mark]) -> None:
        who = "; ".join(holder.text() for holder in holders)
        super().__init__(
            f"these jobs are already steered ({who}); "
            "stop that process with Ctrl-C, or all steering of this cluster with: stretto steer slurm --off"
        )


class Claim:
    """The right to steer the jobs of a partition, or of all; :func:`claim` gets it."""

    def __init__(self, marks: ClusterMarks, mark: Mark) -> None:
        self.marks, self.mark = marks, mark
        self._renewed_s = _now_s()

    def keep(self) -> None:
        """Give a sign of life where one is due; raise SteeringTaken where somebody else has the claim by now.

        Call it before Slurm is told anything: after a pause in which others took over, nothing is told.
        """
        if _now_s() - self._renewed_s < self.mark.lease_s / 4:
            return
        if not self.marks.renew(self.mark):
            self.marks.add(self.mark)  # a controller that started from nothing, or somebody who thought us dead
        if _rivals(self.marks, self.mark):
            time.sleep(min(1.0, self.mark.lease_s / 8))  # one that came at this moment withdraws
            if rivals := _rivals(self.marks, self.mark):
                self.release()
                raise SteeringTaken([seen.mark for seen in rivals])
        self._renewed_s = _now_s()

    def release(self) -> None:
        """Let others steer."""
        self.marks.remove(self.mark)


def claim(marks: ClusterMarks, mark: Mark, *, patience_s: float = 0.0) -> Claim:
    """Make this mark the only one for its jobs; raise SteeringTaken where somebody lives who has one.

    A process that only restores labels is always waited for, for a while.
    """
    started_s = _now_s()
    dead: dict[Mark, str] = {}
    while True:
        live = [seen for seen in _rivals(marks, mark, dead) if not _is_found_dead(marks, seen, dead)]
        is_passing = all(seen.mark.role != "steerer" for seen in live)
        if not live:
            marks.add(mark)
            live = _rivals(marks, mark, dead)
            if not live:
                for other in dead:
                    marks.remove(other)
                return Claim(marks, mark)
            marks.remove(mark)  # both came at this moment, or one gave a sign of life
        if _now_s() - started_s >= max(patience_s, _PASSING_S if is_passing else 0.0):
            raise SteeringTaken([seen.mark for seen in live])
        time.sleep(random.uniform(0.05, 0.5))


def _rivals(marks: ClusterMarks, mark: Mark, dead: dict[Mark, str] | None = None) -> list[SeenMark]:
    """Return other marks for the same jobs, but for those of the dead that gave no sign of life since."""
    found = [seen for seen in marks.seen("steering", mark.partition) if seen.mark.token != mark.token]
    return [seen for seen in found if dead is None or dead.get(seen.mark) != seen.beat]


def _is_found_dead(marks: ClusterMarks, seen: SeenMark, dead: dict[Mark, str]) -> bool:
    """Say whether a holder is dead: its clock says so, and it gives no sign of life for a lease by ours."""
    if abs(time.time() - seen.at_s) <= seen.mark.lease_s:
        return False
    marks.on_notice(f"no sign of life of the {seen.mark.text()}: watching it for {seen.mark.lease_s:g} s")
    until_s = _now_s() + seen.mark.lease_s
    while _now_s() < until_s:
        time.sleep(min(1.0, seen.mark.lease_s / 8))
        if seen.mark not in [now.mark for now in marks.seen("steering") if now.beat == seen.beat]:
            return False
    dead[seen.mark] = seen.beat
    return True


def _now_s() -> float:
    """Return seconds that also pass while the machine sleeps, and that nobody sets."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))

"""Choose the corrections that bring a replay nearer to the record: on the first half of the log, judged on the second.

A correction is taken if the replay of the first half comes clearly nearer with it; the best is taken first. At the end
one number is fitted, the share of the usable processors that jobs could really take. What is fitted so is applied to
the whole log, and to its second half with nothing but what the first half showed: that is how well it generalizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from stretto.core.csr import Floats
from stretto.core.trace import Trace
from stretto.queues.recorded.corrections import Corrections, ReplayedJobs, parts_of, replay_under
from stretto.queues.recorded.kernels.conditions import PolicyCode
from stretto.queues.recorded.occupancy import known_waits
from stretto.queues.recorded.parameters import CalibrationParameters

#: What is changed, by a name of its own, and how; of one name only one is taken.
Change = tuple[str, Callable[[Corrections], Corrections]]
PARAMS = CalibrationParameters()


@dataclass(frozen=True)
class Fit:
    """What was chosen: as fitted on the first half of the log, and with the share fitted on all of it."""

    on_half: Corrections
    on_all: Corrections
    num_first: int
    num_replays: int


def fit_corrections(jobs: ReplayedJobs, policy: PolicyCode, on_step: Callable[[str], None] | None = None) -> Fit:
    """Fit corrections; ``on_step`` is told what is tried."""
    num_first = (jobs.trace.num_jobs + 1) // 2
    if np.count_nonzero(known_waits(jobs.trace)[:num_first]) < PARAMS.fewest_jobs:
        return Fit(Corrections(), Corrections(), num_first, 0)
    half = _Search(jobs.first(num_first), policy, on_step)
    chosen = half.simpler(half.with_share(half.choose()))
    whole = _Search(jobs, policy, on_step)
    on_all = whole.with_share(replace(chosen, share=1.0))
    if whole.distance(on_all) > whole.distance(Corrections()):  # the first half was not like the rest
        on_all = whole.with_share(Corrections())
    return Fit(chosen, on_all, num_first, half.num_replays + whole.num_replays)


class _Search:
    """Replays of some jobs under corrections, and their distances from the record."""

    def __init__(self, jobs: ReplayedJobs, policy: PolicyCode, on_step: Callable[[str], None] | None) -> None:
        self.jobs, self.policy, self.on_step = jobs, policy, on_step
        self.known = known_waits(jobs.trace)
        assert jobs.trace.wait_s is not None
        self.recorded = jobs.trace.wait_s[self.known]
        self.found: dict[Corrections, Floats] = {}

    @property
    def num_replays(self) -> int:
        return len(self.found)

    def waits(self, corrections: Corrections) -> Floats:
        """Return the waits of the jobs whose waits are recorded."""
        if corrections not in self.found:
            if self.on_step is not None:
                self.on_step(str(corrections))
            start = replay_under(self.jobs, self.policy, corrections)
            self.found[corrections] = (start - self.jobs.arrays.submit)[self.known]
        return self.found[corrections]

    def distance(self, corrections: Corrections) -> float:
        return distance(self.recorded, self.waits(corrections))

    def helps(self, one: Corrections, other: Corrections) -> bool:
        """Say whether one is clearly nearer than the other, and not only in a few stretches of the log."""
        if self.distance(one) > (1 - PARAMS.least_gain) * self.distance(other):
            return False
        near, far = (differences(self.recorded, self.waits(each)) for each in (one, other))
        return bool(np.count_nonzero(near < far) >= np.count_nonzero(near > far))

    def choose(self) -> Corrections:
        """Take the correction that helps most, as long as one helps."""
        chosen = Corrections()
        changes = self.changes()
        while changes:
            tried = [(change(chosen), k) for k, (_, change) in enumerate(changes)]
            helpful = [(self.distance(one), k) for one, k in tried if self.helps(one, chosen)]
            if not helpful:
                break
            _, k = min(helpful)
            taken, change = changes[k]
            chosen = change(chosen)
            changes = [other for other in changes if other[0] != taken]
        return chosen

    def changes(self) -> list[Change]:
        """Return the corrections that this log can show."""
        trace = self.jobs.trace
        found: list[Change] = [("window", partial(replace, window_s=window)) for window in PARAMS.windows_s]
        found += [("split", partial(replace, split_by=column)) for column in splits(trace)]
        found.append(("outages", partial(replace, has_outages=True)))
        return found

    def simpler(self, chosen: Corrections) -> Corrections:
        """Return a smaller machine and nothing else, where that is much nearer, and so nearly all the time."""
        alone = self.with_share(Corrections())
        if self.distance(alone) > PARAMS.much_nearer * self.distance(chosen):
            return chosen
        near, far = (differences(self.recorded, self.waits(each)) for each in (alone, chosen))
        return alone if np.count_nonzero(near < far) >= PARAMS.nearly_always * len(near) else chosen

    def with_share(self, chosen: Corrections) -> Corrections:
        """Return the corrections with the share at which the mean wait is that of the record, where that is nearer."""
        target = float(np.mean(self.recorded))
        is_short = float(np.mean(self.waits(chosen))) < target
        if is_short and chosen.window_s > 0:  # less than what really ran would leave more and more jobs behind
            return chosen
        near, far = 1.0, None
        for share in PARAMS.smaller_shares if is_short else PARAMS.larger_shares:
            if (float(np.mean(self.waits(replace(chosen, share=share)))) < target) != is_short:
                far = share
                break
            near = share
        if far is not None:
            for _ in range(PARAMS.num_halvings):
                middle = round((near + far) / 2, 5)
                if (float(np.mean(self.waits(replace(chosen, share=middle)))) < target) == is_short:
                    near = middle
                else:
                    far = middle
        tried = [one for one in self.found if replace(one, share=1.0) == replace(chosen, share=1.0)]
        helpful = [one for one in tried if self.helps(one, chosen)]
        return min(helpful, key=lambda one: (self.distance(one), abs(one.share - 1.0)), default=chosen)


def distance(recorded: Floats, replayed: Floats) -> float:
    """Return how far waits are from the record: the difference of means, over all and in stretches of the log."""
    of_all = abs(float(np.mean(recorded)) - float(np.mean(replayed)))
    return of_all + float(np.mean(differences(recorded, replayed)))


def differences(recorded: Floats, replayed: Floats) -> Floats:
    """Return by how much the mean waits differ in stretches of equally many jobs."""
    parts = zip(np.array_split(recorded, PARAMS.num_blocks), np.array_split(replayed, PARAMS.num_blocks), strict=True)
    return np.array([abs(float(np.mean(there)) - float(np.mean(here))) for there, here in parts if len(there)])


def splits(trace: Trace) -> list[str]:
    """Return by which columns the jobs fall into several parts that matter."""
    found = []
    for name in ("partition", "queue"):
        column = getattr(trace, name)
        if column is None:
            continue
        sizes = [len(rows) for rows in parts_of(trace, name)]
        if sum(size >= PARAMS.least_part * trace.num_jobs for size in sizes) > 1:
            found.append(name)
    return found

"""Which candidate to follow: what each would have made of the past, against the operator's default.

Every candidate plays all jobs on a machine of its own (``shadow.py``). At an epoch, its cost is the mean of what all
jobs cost there (``cost.py``), the latest counting most. The default is meant to be good nearly everywhere, and is left
only for what is much better: a large gain, the larger the less has been seen, for every change costs (the queue that
one order leaves behind is a bad start for another). Slowdowns have heavy tails, so a sum may be one bad week: what is
to be followed must also have been surely cheaper from epoch to epoch (``evidence.py``). When it no longer saves half of
what was asked, the default is back. That is the first half of the guard. The second looks at what
really happened: a shadow can flatter (each has its own backlog, and changes cost), so when the real queue has become
dearer than the default's shadow of the same jobs, the default decides until that is made good. And what a candidate
cost more in the real queue than in its shadow, while it was followed, is added to its account from then on.

The default may have sisters, which differ from it in little (``Family``). To change between them costs next to nothing,
so that a small gain that is likely is enough: the one that is then followed stands for the default in all of the above.
While hardly anybody has had to wait, there is nothing to choose: an order that holds nobody back decides.

When the followed candidate becomes much more costly than its own past lets expect (Page-Hinkley on the logarithm), the
workload is taken to have changed and what was seen before no longer counts. So it is where the jobs themselves say that
the workload is another one (``novelty.py``). Either way the default takes over at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.mars.evidence import MOST, standing, surely_cheaper
from stretto.queues.mars.reasons import Rival

#: Who may decide.
EVIDENCE, STRATEGIST = DECIDERS = ("evidence", "strategist")


@dataclass(frozen=True)
class Selection:
    """How to select.

    Attributes
    ----------
    epoch_jobs
        Arrivals between two choices.
    lag_jobs
        The latest arrivals, which shadows do not play yet: few of them have ended.
    memory_jobs
        Arrivals after which a job counts a third of what the latest counts.
    least_jobs
        Before so many have been played, the present candidate is kept.
    least_gain
        The share of cost that turning to another candidate must save, once much has been seen.
    certainty
        By how many standard errors another candidate must have been cheaper from epoch to epoch; by more where few
        have been seen.
    early_gain
        What it must save in addition while no more than ``least_jobs`` have been seen; less and less later.
    by
        Who decides: ``evidence`` (the rules here), or ``strategist``, an actor-critic (``strategist.py``) that is heard
        where it is sure enough; calm, guard, drift and the family of the default are the same for both.
    sister_gain, sister_certainty
        ``least_gain`` and ``certainty`` for a sister of the default.
    network_gain
        A trained network counts as this share more costly than it is: it was made for other jobs. So does an order that
        holds jobs back, for a shadow does not show what becomes of them when the machine fills up.
    guard
        The share by which the real queue may cost more than the default's shadow before the default takes over. It
        is large because shadows flatter everybody: they guess the run times of jobs that have not ended.
    drift
        Sum of surprises, in logarithms of cost, at which the workload is taken to have changed. It is large because
        a crowded month is no other workload, and what is chosen after it from little is mostly chosen badly.
    """

    by: str = EVIDENCE
    epoch_jobs: int = 250
    lag_jobs: int = 100
    memory_jobs: int = 200_000
    least_jobs: int = 500
    least_gain: float = 0.3
    certainty: float = 3.0
    early_gain: float = 0.2
    sister_gain: float = 0.05
    sister_certainty: float = 1.5
    network_gain: float = 0.15
    guard: float = 1.0
    drift: float = 30.0

    def __post_init__(self) -> None:
        if self.by not in DECIDERS:
            raise UnknownName("decider of mars", self.by, DECIDERS)
        for name, least in (
            ("epoch_jobs", 1),
            ("lag_jobs", 0),
            ("memory_jobs", 1),
            ("least_jobs", 0),
        ):
            if getattr(self, name) < least:
                raise InvalidInput(f"{getattr(self, name)} must be at least {least}", field=name)
        gains = ("least_gain", "early_gain", "sister_gain", "network_gain")
        for name in (*gains, "certainty", "sister_certainty", "guard", "drift"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidInput(f"{getattr(self, name)} must be finite and not negative", field=name)


#: Epochs after a change that blame nobody: what is waiting then is another one's doing.
_GRACE = 2
#: Epochs that the common experience with shadows counts, beside those of a candidate itself.
_PRIOR = 4.0
#: An epoch is won by a share of cost, not by rounding.
_WON = 0.99
#: So many epochs are enough, if all were won and the cost is no more than this share: under a very bad order so few
#: jobs end that no more epochs may ever be seen.
_UNANIMOUS, _TINY = 5, 0.2
#: Who has cost so many times what the default has, over so many jobs, need not be watched any longer.
_HOPELESS, _LONG = 4.0, 10_000
#: A sister who has cost so many times what the default has, over so many epochs lately, is left at once: who holds jobs
#: back can be much better for years and very bad in a crowded week.
_SOUR, _LATELY = 1.5, 4
#: No gain that is asked for is larger.
_MOST_GAIN = 0.9
#: Hardly anybody has had to wait where jobs really cost no more than this, over what they cost if nobody waits.
_CALM = 1.01


@dataclass(frozen=True)
class Family:
    """Those that differ little from the default and may stand for it, by name.

    Attributes
    ----------
    sisters
        Followed in its place for a small gain that is likely.
    calm
        Who is followed while hardly anybody has had to wait.
    """

    sisters: Sequence[str] = ()
    calm: str | None = None


@dataclass(frozen=True)
class Choice:
    """What was chosen at an epoch, and the estimates behind it.

    Attributes
    ----------
    job, time_s
        The number of jobs that had arrived, and when.
    cost
        Per candidate that is watched, what jobs cost in its shadow on the mean.
    rival
        The cheapest of those that are not followed, None where no other has cost less or nothing was compared.
    """

    job: int
    time_s: float
    chosen: str
    is_fallback: bool
    has_drifted: bool
    cost: dict[str, float]
    reason: str = ""
    rival: Rival | None = None


@dataclass(eq=False)
class Selector:
    """Chooses among candidates, the first of which is the default.

    Parameters
    ----------
    doubted
        The names whose shadows are believed less (``network_gain``).
    family
        Those that differ little from the default.
    """

    names: Sequence[str]
    doubted: Sequence[str] = ()
    rules: Selection = field(default_factory=Selection)
    family: Family = field(default_factory=Family)

    def __post_init__(self) -> None:
        if not self.names:
            raise InvalidInput("a selector needs candidates", field="names")
        self._burden = np.array([1.0 + self.rules.network_gain * (name in self.doubted) for name in self.names])
        self._family = [0, *(k for k, name in enumerate(self.names) if name in self.family.sisters)]
        calm = [k for k, name in enumerate(self.names) if name == self.family.calm]
        self._calm = calm[0] if calm else None
        self._default = 0  # the one of the family that stands for the default
        self.chosen = 0
        self.since = 0  # the first job that counts
        self._mean = math.nan  # of the logarithm of the followed candidate's latest cost
        self._surprise = 0.0
        self._blame = np.zeros(len(self.names))  # sum of the logarithms of real over shadow, while followed
        self._num_followed = np.zeros(len(self.names))
        self._tenure = 0  # epochs since the last change

    def weights(self, num_played: int) -> Floats:
        """Return what the jobs from ``since`` to the last one played count."""
        age = np.arange(num_played - 1 - self.since, -1, -1)
        weights: Floats = np.exp(-age / self.rules.memory_jobs)
        return weights

    def choose(
        self,
        cost: Floats,
        epochs: Floats,
        num_played: int,
        job: int,
        time_s: float,
        *,
        real: float | None = None,
        real_latest: float | None = None,
        least: float = 1.0,
        is_new: bool = False,
        allowed: NDArray[np.bool_] | None = None,
        likely: Floats | None = None,
        threshold: float = 0.5,
    ) -> Choice:
        """Decide whom to follow next.

        Parameters
        ----------
        cost, epochs
            Per candidate, over all that counts and in each epoch of it, the last one last; [K] and [K, E].
        real, real_latest
            What the jobs of ``cost`` and of the last epoch really cost, where that is known.
        least
            What the jobs of ``cost`` cost if nobody waits.
        is_new
            Whether the jobs are of another workload than before.
        allowed
            Who may be followed, if he is not of the default's family; by default all. Whoever is followed and may be no
            longer is left.
        likely, threshold
            What a strategist says of each candidate, and the least probability at which it is heard: then its favourite
            is followed in place of whoever is surely cheaper; [K].
        """
        latest = epochs[:, -1]
        self._learn(latest, real_latest)
        drifted = self._notice(float(latest[self.chosen])) or is_new
        if drifted:
            self.since = max(self.since, num_played - self.rules.epoch_jobs)
        num_seen = num_played - self.since
        before = self.chosen
        weighed: Floats | None = None
        lead = f"{num_seen:,} jobs have been compared, and {self.rules.least_jobs:,} are asked"
        if drifted:
            lead = "the default"
            self.chosen = self._default = 0
        elif self._calm is not None and num_seen >= self.rules.least_jobs and _is_calm(real, least):
            self.chosen = self._calm
            lead = "hardly anybody has to wait, so nobody is held back"
        elif self.chosen == self._calm:
            lead = "the default, since somebody has had to wait"
            self.chosen = self._default = 0
        elif num_seen >= self.rules.least_jobs:
            self._default = self._best_sister(cost, epochs, num_seen)
            is_spoilt = real is not None and real > (1.0 + self.rules.guard) * cost[self._default]
            weighed = cost * self._burden * self._bias()
            if allowed is not None:
                weighed = np.where(allowed | np.isin(np.arange(len(cost)), self._family), weighed, np.inf)
            if is_spoilt:
                self.chosen = self._default
                lead = self._spoilt(real, float(cost[self._default]))
            elif likely is not None:
                self.chosen = self._favourite(likely, threshold, np.isfinite(weighed))
                lead = self._favoured(likely, threshold)
            else:
                self.chosen = self._best(weighed, epochs, num_seen)
                lead = self._lead(weighed)
        self._tenure += 1
        if before != self.chosen:
            self._mean, self._surprise, self._tenure = math.nan, 0.0, 0
        named = {name: one for name, one in zip(self.names, cost.tolist(), strict=True) if math.isfinite(one)}
        is_fallback = self.chosen in (self._default, self._calm)
        rival = None if weighed is None or likely is not None else self._rival(weighed, cost, epochs, num_seen)
        reason = f"{lead}; {rival.words()}" if rival is not None else lead
        return Choice(job, time_s, self.names[self.chosen], is_fallback, drifted, named, reason, rival)

    def _lead(self, weighed: Floats) -> str:
        """Say what the followed candidate is."""
        if self.chosen == self._default:
            return "a variant of the default that has likely been cheaper" if self._default else "the default"
        saved = 1.0 - float(weighed[self.chosen] / weighed[self._default])
        return f"it saves {saved:.0%} of what {self.names[self._default]} costs"

    def _favoured(self, likely: Floats, threshold: float) -> str:
        """Say what a strategist made of it."""
        if self.chosen == self._default:
            return f"the strategist finds no other candidate {threshold:.0%} likely to be the best"
        return (
            f"the strategist finds it {float(likely[self.chosen]):.0%} likely to be the best ({threshold:.0%} is asked)"
        )

    def _spoilt(self, real: float | None, cost: float) -> str:
        name, most = self.names[self._default], 1.0 + self.rules.guard
        return f"the queue really costs {real:,.3g}, more than {most:g} times what {name} alone would ({cost:,.3g})"

    def _rival(self, weighed: Floats, cost: Floats, epochs: Floats, num_seen: int) -> Rival | None:
        """Return who has cost least of those that are not followed, where that is less than the followed one."""
        others = [k for k in range(len(cost)) if k != self.chosen and cost[k] < cost[self.chosen]]
        if not others:
            return None
        who = min(others, key=lambda k: float(cost[k]))
        rules, is_sister = self.rules, who in self._family
        now = self._default if is_sister else self.chosen
        judged = cost if is_sister else weighed
        least, certainty = (
            (rules.sister_gain, rules.sister_certainty) if is_sister else (rules.least_gain, rules.certainty)
        )
        needed = min(least + rules.early_gain * rules.least_jobs / num_seen, _MOST_GAIN)
        saves = 1.0 - float(judged[who] / judged[now])
        obstacle = ""
        if who == self._calm:
            obstacle = "it is followed only while hardly anybody has to wait"
        elif not math.isfinite(saves):
            obstacle = "it is a trained network whose gain here is not sure enough"
        gain, error, asked = standing(epochs, now, who, certainty)
        return Rival(self.names[who], self.names[now], saves, needed, gain, error, asked, obstacle)

    def hopeless(self, cost: Floats, num_played: int) -> list[int]:
        """Return who is so far behind that his shadow tells nothing new; long queues are slow to play."""
        if num_played - self.since < _LONG:
            return []
        hopeless = np.flatnonzero((cost > _HOPELESS * cost[0]) & (cost < math.inf))
        return [int(k) for k in hopeless if k not in (self.chosen, self._default)]

    def _best(self, cost: Floats, epochs: Floats, num_seen: int) -> int:
        """Return the cheapest of those that are surely better, or stay, or go back to the default."""
        rules = self.rules
        is_left = self.chosen in self._family or math.isinf(cost[self.chosen])
        now = self._default if is_left else self.chosen
        cost = cost.copy()
        known = [*self._family, *([] if self._calm is None else [self._calm])]
        cost[[k for k in known if k not in (now, self._default)]] = np.inf  # they are not strangers
        needed = min(rules.least_gain + rules.early_gain * rules.least_jobs / num_seen, _MOST_GAIN)
        cheap = np.flatnonzero(cost < (1.0 - needed) * cost[now])
        sure = cheap[self._is_sure(cost, epochs, now, cheap)] if len(cheap) else cheap
        if len(sure):
            return int(sure[np.argmin(cost[sure])])
        return now if cost[now] < (1.0 - 0.5 * needed) * cost[self._default] else self._default

    def _is_sure(self, cost: Floats, epochs: Floats, now: int, who: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Say of some candidates whether they are surely cheaper than the present one; of many epochs that is slow."""
        theirs = epochs[[now, *who]]
        is_sure = surely_cheaper(theirs, 0, self.rules.certainty)[1:]
        if epochs.shape[1] >= _UNANIMOUS:
            is_sure |= np.all(theirs[1:] < _WON * theirs[0], axis=1) & (cost[who] < _TINY * cost[now])
        return is_sure

    def _favourite(self, likely: Floats, threshold: float, is_open: NDArray[np.bool_]) -> int:
        """Return the likeliest of those that may be followed, or the default where none is likely enough."""
        is_calm = np.arange(len(likely)) == self._calm  # it has a time of its own
        best = int(np.argmax(np.where(is_open & ~is_calm, likely, -1.0)))
        return best if likely[best] >= threshold else self._default

    def _best_sister(self, cost: Floats, epochs: Floats, num_seen: int) -> int:
        """Return who stands for the default: the cheapest of its family where that is likely, until it is dearer."""
        rules, now = self.rules, self._default
        needed = min(rules.sister_gain + rules.early_gain * rules.least_jobs / num_seen, _MOST_GAIN)
        lately = epochs[:, -_LATELY:].mean(axis=1)
        family = [k for k in self._family if lately[k] <= _SOUR * lately[0]]
        best = min(family, key=lambda k: float(cost[k]))
        if now not in family:
            return 0
        if cost[best] < (1.0 - needed) * cost[now]:
            is_likely = surely_cheaper(epochs[[now, best]], 0, rules.sister_certainty)[1]
            if is_likely:
                return best
        return now if cost[now] <= cost[0] else 0

    def _learn(self, latest: Floats, real_latest: float | None) -> None:
        """Note by how much the real queue was dearer than the shadow of what was followed."""
        if real_latest is None or self._tenure < _GRACE:
            return
        blame = math.log(real_latest / float(latest[self.chosen]))
        self._blame[self.chosen] += min(max(blame, -MOST), MOST)
        self._num_followed[self.chosen] += 1

    def _bias(self) -> Floats:
        """Return what to multiply the shadow of each candidate with; one never followed is like the others."""
        common = float(self._blame.sum() / (self._num_followed.sum() + _PRIOR))
        bias: Floats = np.exp((self._blame + _PRIOR * common) / (self._num_followed + _PRIOR))
        return bias

    def _notice(self, latest: float) -> bool:
        """Add up how much more costly than before the followed candidate is; say whether that is a change."""
        value = math.log(latest)
        if math.isnan(self._mean):
            self._mean = value
            return False
        self._surprise = max(0.0, self._surprise + value - self._mean - 0.5)
        self._mean += 0.1 * (value - self._mean)
        if self._surprise <= self.rules.drift:
            return False
        self._mean, self._surprise = value, 0.0
        return True

    def state(self) -> dict[str, Any]:
        """Return what the next choice depends on, as JSON."""
        mean = None if math.isnan(self._mean) else self._mean
        return {
            "chosen": self.chosen,
            "default": self._default,
            "since": self.since,
            "mean": mean,
            "surprise": self._surprise,
            "blame": self._blame.tolist(),
            "num_followed": self._num_followed.tolist(),
            "tenure": self._tenure,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what :meth:`state` returned."""
        self.chosen, self.since = int(state["chosen"]), int(state["since"])
        self._mean = math.nan if state["mean"] is None else float(state["mean"])
        self._surprise = float(state["surprise"])
        self._default = int(state.get("default", 0))
        if "blame" in state:  # states from before there was any blame nobody
            self._blame, self._num_followed = np.array(state["blame"]), np.array(state["num_followed"])
            self._tenure = int(state["tenure"])


def _is_calm(real: float | None, least: float) -> bool:
    """Say whether hardly anybody has had to wait."""
    return real is not None and real <= _CALM * least

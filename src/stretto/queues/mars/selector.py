"""Which candidate to follow: what each would have made of the past, compared with the operator's default.

Every candidate replays all jobs on a machine of its own (``counterfactual.py``). At an epoch, its cost is the mean of
what all jobs cost there (``cost.py``), the latest counting most. The default is meant to be good nearly everywhere, and
is left only for a large gain, the larger the less has been seen: every change costs, because the queue that one order
leaves behind is a bad start for another. Slowdowns have heavy tails, so a sum may be one bad week: what is to be
followed must also have been surely cheaper from epoch to epoch (``evidence.py``). When it no longer saves half of what
was required, the default is followed again.

Counterfactual replays are optimistic: each has a backlog of its own, and changes cost nothing in them. So when the real
queue has cost more than the default's replay of the same jobs, the default decides until that is made good; and what a
candidate cost more in the real queue than in its replay, while it was followed, counts against it from then on.

The default may have variants that differ little from it (``Variants``). To change between them costs next to nothing,
so that a small gain that is likely is enough: the variant that is followed then stands in for the default in all of the
above. Under light load, while hardly any job waits, an order that holds no job back decides.

When the followed candidate becomes much more costly than before (Page-Hinkley on the logarithm), or the jobs themselves
are of another workload (``evidence.is_new_workload``), what was seen before no longer counts and the default decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.errors import InvalidInput
from stretto.queues.mars.candidates import Variants
from stretto.queues.mars.evidence import Rival, standing, surely_cheaper, sureness
from stretto.queues.mars.parameters import MARS_PARAMETERS as P
from stretto.queues.mars.parameters import Selection


class EpochComparison(NamedTuple):
    """What is known of K candidates at an epoch.

    Attributes
    ----------
    cost, epochs
        Per candidate, over all that counts and in each epoch of it, the last one last.
    num_played
        Jobs that were replayed.
    job, time_s
        The number of jobs that have arrived, and when.
    real, real_latest
        What the jobs of ``cost`` and of the last epoch really cost, where that is known.
    least
        What the jobs of ``cost`` cost if none of them waits.
    is_new
        Whether the jobs are of another workload than before.
    """

    cost: Floats  # [K]
    epochs: Floats  # [K, E]
    num_played: int
    job: int
    time_s: float
    real: float | None = None
    real_latest: float | None = None
    least: float = 1.0
    is_new: bool = False


@dataclass(frozen=True)
class Choice:
    """What was chosen at an epoch, and the estimates behind it.

    Attributes
    ----------
    job, time_s
        The number of jobs that had arrived, and when.
    cost
        Per candidate that is still replayed, the mean cost of jobs in its counterfactual replay.
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
    penalized
        The names whose replays are trusted less (``network_gain``).
    variants
        Those that differ little from the default.
    """

    names: Sequence[str]
    penalized: Sequence[str] = ()
    rules: Selection = field(default_factory=Selection)
    variants: Variants = field(default_factory=Variants)

    def __post_init__(self) -> None:
        if not self.names:
            raise InvalidInput("a selector needs candidates", field="names")
        self._penalty = np.array([1.0 + self.rules.network_gain * (name in self.penalized) for name in self.names])
        self._variants = [0, *(k for k, name in enumerate(self.names) if name in self.variants.names)]
        light = [k for k, name in enumerate(self.names) if name == self.variants.light_load]
        self._light_load = light[0] if light else None
        self._default = 0  # the variant that stands in for the default
        self.chosen = 0
        self.since = 0  # the first job that counts
        self._mean = math.nan  # of the logarithm of the followed candidate's latest cost
        self._increase = 0.0  # sum of unexpected increases of that logarithm
        self._excess = np.zeros(len(self.names))  # sum of the logarithms of real over replayed cost, while followed
        self._num_followed = np.zeros(len(self.names))
        self._tenure = 0  # epochs since the last change

    def choose(self, seen: EpochComparison) -> Choice:
        """Decide which candidate to follow next."""
        cost, epochs, before = seen.cost, seen.epochs, self.chosen
        self._learn(epochs[:, -1], seen.real_latest)
        drifted = self._notice(float(epochs[before, -1])) or seen.is_new
        if drifted:
            self.since = max(self.since, seen.num_played - self.rules.epoch_jobs)
        num_seen = seen.num_played - self.since
        weighed: Floats | None = None
        lead = f"{num_seen:,} jobs have been compared and {self.rules.least_jobs:,} are required"
        is_light = seen.real is not None and seen.real <= P.light_load * seen.least
        if drifted:
            lead = "the default"
            self.chosen = self._default = 0
        elif self._light_load is not None and num_seen >= self.rules.least_jobs and is_light:
            lead = "the load is light and hardly any job waits, so no job is held back"
            self.chosen = self._light_load
        elif before == self._light_load:
            lead = "the default, because jobs wait again"
            self.chosen = self._default = 0
        elif num_seen >= self.rules.least_jobs:
            self._default = self._best_variant(cost, epochs, num_seen)
            weighed = self._weighed(cost)
            self.chosen, lead = self._pick(seen, weighed, num_seen)
        self._tenure += 1
        if before != self.chosen:
            self._mean, self._increase, self._tenure = math.nan, 0.0, 0
        named = {name: one for name, one in zip(self.names, cost.tolist(), strict=True) if math.isfinite(one)}
        is_fallback = self.chosen in (self._default, self._light_load)
        rival = None if weighed is None else self._rival(weighed, cost, epochs, num_seen)
        reason = f"{lead}; {rival.words()}" if rival is not None else lead
        return Choice(seen.job, seen.time_s, self.names[self.chosen], is_fallback, drifted, named, reason, rival)

    def _weighed(self, cost: Floats) -> Floats:
        """Return costs with every penalty."""
        weighed: Floats = cost * self._penalty * self._bias()
        return weighed

    def _pick(self, seen: EpochComparison, weighed: Floats, num_seen: int) -> tuple[int, str]:
        """Return which candidate to follow by what was compared, and why."""
        default, most = float(seen.cost[self._default]), 1.0 + self.rules.guard
        if seen.real is not None and seen.real > most * default:
            name = self.names[self._default]
            said = f"the queue really costs {seen.real:,.3g}, more than {most:g} times what {name} alone would"
            return self._default, f"{said} ({default:,.3g})"
        best = self._best(weighed, seen.epochs, num_seen)
        if best != self._default:
            saved = 1.0 - float(weighed[best] / weighed[self._default])
            return best, f"it saves {saved:.0%} of what {self.names[self._default]} costs"
        return best, self._variant_reason(seen, num_seen) if best else "the default"

    def _variant_reason(self, seen: EpochComparison, num_seen: int) -> str:
        """Say by how much the variant that stands in for the default was cheaper, over how many jobs."""
        saved = 1.0 - float(seen.cost[self._default] / seen.cost[0])
        sure = sureness(seen.epochs, 0, self._default)
        said = "" if math.isnan(sure) else f" ({sure:.0%} sure)"
        return f"a variant of the default that cost {saved:.0%} less over the last {num_seen:,} jobs{said}"

    def _needed(self, least: float, num_seen: int) -> float:
        """Return the share of cost that a change must save."""
        return min(least + self.rules.early_gain * self.rules.least_jobs / num_seen, P.most_gain)

    def _rival(self, weighed: Floats, cost: Floats, epochs: Floats, num_seen: int) -> Rival | None:
        """Return the cheapest of those that are not followed, where it cost less than the followed one."""
        others = [k for k in range(len(cost)) if k != self.chosen and cost[k] < cost[self.chosen]]
        if not others:
            return None
        best = min(others, key=lambda k: float(cost[k]))
        rules, is_variant = self.rules, best in self._variants
        now, judged = (self._default, cost) if is_variant else (self.chosen, weighed)
        least = rules.variant_gain if is_variant else rules.least_gain
        certainty = rules.variant_certainty if is_variant else rules.certainty
        saves = 1.0 - float(judged[best] / judged[now])
        obstacle = "it is followed under light load only" if best == self._light_load else ""
        gain, error, required = standing(epochs, now, best, certainty)
        needed = self._needed(least, num_seen)
        return Rival(self.names[best], self.names[now], saves, needed, gain, error, required, obstacle)

    def hopeless(self, cost: Floats, num_played: int) -> list[int]:
        """Return who is so far behind that another replay tells nothing new; long queues are slow to replay."""
        if num_played - self.since < P.hopeless_jobs:
            return []
        hopeless = np.flatnonzero((cost > P.hopeless_ratio * cost[0]) & (cost < math.inf))
        return [int(k) for k in hopeless if k not in (self.chosen, self._default)]

    def _best(self, cost: Floats, epochs: Floats, num_seen: int) -> int:
        """Return the cheapest of those that are surely better, or stay, or go back to the default."""
        is_left = self.chosen in self._variants or math.isinf(cost[self.chosen])
        now = self._default if is_left else self.chosen
        cost = cost.copy()
        known = [*self._variants, *([] if self._light_load is None else [self._light_load])]
        cost[[k for k in known if k not in (now, self._default)]] = np.inf  # variants have thresholds of their own
        needed = self._needed(self.rules.least_gain, num_seen)
        cheap = np.flatnonzero(cost < (1.0 - needed) * cost[now])
        sure = cheap[self._is_sure(cost, epochs, now, cheap)] if len(cheap) else cheap
        if len(sure):
            return int(sure[np.argmin(cost[sure])])
        return now if cost[now] < (1.0 - 0.5 * needed) * cost[self._default] else self._default

    def _is_sure(self, cost: Floats, epochs: Floats, now: int, which: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Say of some candidates whether they are surely cheaper than the present one; of many epochs that is slow."""
        theirs = epochs[[now, *which]]
        is_sure = surely_cheaper(theirs, 0, self.rules.certainty)[1:]
        if (
            epochs.shape[1] >= P.unanimous_epochs
        ):  # under a very bad order so few jobs end that no more may ever be seen
            won = np.all(theirs[1:] < P.won_share * theirs[0], axis=1)
            is_sure |= won & (cost[which] < P.unanimous_share * cost[now])
        return is_sure

    def _best_variant(self, cost: Floats, epochs: Floats, num_seen: int) -> int:
        """Return what stands in for the default: the cheapest variant where that is likely, until it costs more."""
        rules, now = self.rules, self._default
        # An order that holds jobs back can be much better for years and very bad in a crowded week.
        lately = epochs[:, -P.variant_epochs :].mean(axis=1)
        usable = [k for k in self._variants if lately[k] <= P.variant_ratio * lately[0]]
        best = min(usable, key=lambda k: float(cost[k]))
        if now not in usable:
            return 0
        if cost[best] < (1.0 - self._needed(rules.variant_gain, num_seen)) * cost[now]:
            is_likely = surely_cheaper(epochs[[now, best]], 0, rules.variant_certainty)[1]
            if is_likely:
                return best
        return now if cost[now] <= cost[0] else 0

    def _learn(self, latest: Floats, real_latest: float | None) -> None:
        """Note by how much the real queue cost more than the replay of what was followed."""
        if real_latest is None or self._tenure < P.grace_epochs:
            return
        excess = math.log(real_latest / float(latest[self.chosen]))
        self._excess[self.chosen] += min(max(excess, -P.most_log_ratio), P.most_log_ratio)
        self._num_followed[self.chosen] += 1

    def _bias(self) -> Floats:
        """Return what to multiply each replayed cost by; a candidate that was never followed is like the others."""
        common = float(self._excess.sum() / (self._num_followed.sum() + P.prior_epochs))
        bias: Floats = np.exp((self._excess + P.prior_epochs * common) / (self._num_followed + P.prior_epochs))
        return bias

    def _notice(self, latest: float) -> bool:
        """Add up how much more costly than before the followed candidate is; say whether that is a change."""
        value = math.log(latest)
        if math.isnan(self._mean):
            self._mean = value
            return False
        self._increase = max(0.0, self._increase + value - self._mean - P.drift_slack)
        self._mean += P.drift_rate * (value - self._mean)
        if self._increase <= self.rules.drift:
            return False
        self._mean, self._increase = value, 0.0
        return True

    def state(self) -> dict[str, object]:
        """Return what the next choice depends on, as JSON."""
        return {
            "chosen": self.chosen,
            "default": self._default,
            "since": self.since,
            "mean": None if math.isnan(self._mean) else self._mean,
            "increase": self._increase,
            "excess": self._excess.tolist(),
            "num_followed": self._num_followed.tolist(),
            "tenure": self._tenure,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what :meth:`state` returned, also from states of earlier versions."""
        self.chosen, self.since = int(state["chosen"]), int(state["since"])
        self._mean = math.nan if state["mean"] is None else float(state["mean"])
        self._increase = float(state.get("increase", state.get("surprise", 0.0)))
        self._default = int(state.get("default", 0))
        excess = state.get("excess", state.get("blame"))
        if excess is not None:
            self._excess, self._num_followed = np.array(excess), np.array(state["num_followed"])
            self._tenure = int(state["tenure"])

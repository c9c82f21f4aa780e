"""How tasks on one host slow each other down, learned from how long they took.

A task of category k, alone on an idle host, takes ``scale[k]`` times its stated seconds of CPU time. Beside others it
takes longer by the factor ::

    1 + coupling * busy + demand[k] * (sum of the neighbors' demands + foreign)

``busy`` counts the cores nearby that are busy (shared issue slots and caches), ``demand`` is the demand for memory
bandwidth by category, and ``foreign`` that of programs which are not ours. No counter of a virtual machine shows it:
a task that is slower than its neighbors explain tells of it. All of these are estimated together by an extended Kalman
filter on the logarithm of measured CPU time; what is not seen for long returns to the prior.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stretto.core.csr import Floats
from stretto.errors import InvalidInput
from stretto.racks.host.parameters import HostParams

_COUPLING, _FOREIGN, _FIRST = 0, 1, 2
#: Degrees of freedom of the noise: an interrupted task is an outlier.
_NU = 4.0
#: No part of the law is larger than this; a slowdown by 16 of one neighbor is not contention.
_MOST = 4.0
#: Categories that are told apart; further ones are those of the last.
MAX_CATEGORIES = 32


@dataclass(frozen=True, eq=False)
class LawValues:
    """The present estimates, for a decision."""

    coupling: float
    foreign: float
    scale: Floats  # [K]
    demand: Floats  # [K]

    def slowdown(self, category: int, busy: float, neighbors: float) -> float:
        """Return the factor on the CPU time of a task, for the neighbors' total demand."""
        return 1.0 + self.coupling * busy + float(self.demand[category]) * (neighbors + self.foreign)


@dataclass(frozen=True, eq=False)
class TaskEvidence:
    """One task that ended, or that should have ended.

    Attributes
    ----------
    cpu_s, stated_s
        CPU time that it took, and the stated seconds of the task.
    busy
        Mean number of busy cores nearby while it ran.
    beside
        By category: mean number of own tasks on other cores while it ran, each by its share of its core.
    is_over
        False when it still runs: then its final time is at least this.
    """

    category: str
    cpu_s: float
    stated_s: float
    busy: float
    beside: Mapping[str, float] = field(default_factory=dict)
    is_over: bool = True


class ContentionLaw:
    """Estimates of the law, updated task by task.

    Parameters
    ----------
    is_measured
        Whether the stated durations were measured on this host.
    """

    def __init__(self, params: HostParams | None = None, *, is_measured: bool = False) -> None:
        self.params = params or HostParams()
        self.scale_sd = self.params.measured_scale_sd if is_measured else self.params.scale_sd
        self.categories: dict[str, int] = {}
        self.num_seen: list[int] = []
        self._at_s = 0.0
        p = self.params
        self._prior = np.array([p.core_coupling, 0.0])
        self._prior_var = np.array([p.core_coupling_sd**2, p.foreign_memory_sd**2])
        self._mean, self._cov = self._prior.copy(), np.diag(self._prior_var)

    def index(self, category: str) -> int:
        """Return the number of a category, which is new if it was not seen before."""
        known = self.categories.get(category)
        if known is not None:
            return known
        if len(self.categories) >= MAX_CATEGORIES:
            return MAX_CATEGORIES - 1
        p, number = self.params, len(self.categories)
        self.categories[category] = number
        self.num_seen.append(0)
        self._prior = np.append(self._prior, [0.0, p.memory_demand])
        self._prior_var = np.append(self._prior_var, [self.scale_sd**2, p.memory_demand_sd**2])
        self._mean = np.append(self._mean, self._prior[-2:])
        wider = np.diag(self._prior_var)
        wider[: len(self._cov), : len(self._cov)] = self._cov
        self._cov = wider
        return number

    def values(self) -> LawValues:
        """Return the present estimates."""
        own = self._mean[_FIRST:].reshape(-1, 2)
        return LawValues(float(self._mean[_COUPLING]), float(self._mean[_FOREIGN]), np.exp(own[:, 0]), own[:, 1].copy())

    @property
    def foreign_sd(self) -> float:
        """Standard deviation of the foreign demand for memory bandwidth."""
        return math.sqrt(max(float(self._cov[_FOREIGN, _FOREIGN]), 0.0))

    def advance(self, now_s: float) -> None:
        """Let time pass: foreign demand fades within seconds, everything else returns to its prior slowly."""
        passed_s, self._at_s = max(now_s - self._at_s, 0.0), max(now_s, self._at_s)
        if passed_s <= 0.0:
            return
        keep = np.full(len(self._mean), math.exp(-passed_s / self.params.forget_s))
        keep[_FOREIGN] = math.exp(-passed_s / self.params.foreign_memory_s)
        self._mean = self._prior + keep * (self._mean - self._prior)
        self._cov = self._cov * np.outer(keep, keep) + np.diag((1.0 - keep**2) * self._prior_var)

    def observe(self, seen: TaskEvidence) -> None:
        """Take in how long a task took; one that still runs counts only when it is slower than expected."""
        if not (seen.cpu_s > 0 and seen.stated_s > 0 and math.isfinite(seen.cpu_s) and math.isfinite(seen.stated_s)):
            return
        k = self.index(seen.category)
        beside = {self.index(name): amount for name, amount in seen.beside.items() if amount > 0}
        expected, slope = self._expected(k, seen.busy, beside)
        surprise = math.log(seen.cpu_s / seen.stated_s) - expected
        if not seen.is_over and surprise <= 0:
            return
        reach = self._cov @ slope
        spread = float(slope @ reach)
        noise = self.params.noise_sd**2
        noise *= (_NU + surprise**2 / (spread + noise)) / (_NU + 1.0)  # a t as a mixture of scales
        gain = reach / (spread + noise)
        self._mean = self._mean + gain * surprise
        self._cov = self._cov - np.outer(gain, reach)
        self._cov = 0.5 * (self._cov + self._cov.T)
        self._mean[:_FIRST] = np.clip(self._mean[:_FIRST], 0.0, _MOST)
        self._mean[_FIRST + 1 :: 2] = np.clip(self._mean[_FIRST + 1 :: 2], 0.0, _MOST)
        self.num_seen[k] += seen.is_over

    def _expected(self, k: int, busy: float, beside: Mapping[int, float]) -> tuple[float, Floats]:
        """Return the expected logarithm of CPU time over stated time, and its derivatives."""
        x = self._mean
        at = _FIRST + 2 * k
        own = x[at + 1]
        total = x[_FOREIGN] + sum(amount * x[_FIRST + 2 * j + 1] for j, amount in beside.items())
        factor = 1.0 + x[_COUPLING] * busy + own * total
        slope = np.zeros(len(x))
        slope[_COUPLING] = busy / factor
        slope[_FOREIGN] = own / factor
        slope[at] = 1.0
        slope[at + 1] = total / factor
        for j, amount in beside.items():
            slope[_FIRST + 2 * j + 1] += own * amount / factor
        return float(x[at] + math.log(factor)), slope

    def to_json(self) -> dict[str, Any]:
        """Return what was learned, without foreign demand, which is of the moment."""
        own = self._mean[_FIRST:].reshape(-1, 2)
        sd = np.sqrt(np.maximum(np.diag(self._cov), 0.0))
        return {
            "coupling": round(float(self._mean[_COUPLING]), 6),
            "coupling_sd": round(float(sd[_COUPLING]), 6),
            "categories": {
                name: {
                    "log_scale": round(float(own[k, 0]), 6),
                    "log_scale_sd": round(float(sd[_FIRST + 2 * k]), 6),
                    "demand": round(float(own[k, 1]), 6),
                    "demand_sd": round(float(sd[_FIRST + 2 * k + 1]), 6),
                    "num_tasks": self.num_seen[k],
                }
                for name, k in self.categories.items()
            },
        }

    def start_from(self, learned: Mapping[str, Any]) -> None:
        """Begin with what an earlier run learned; raise InvalidInput where that is not what :meth:`to_json` writes."""
        try:
            self._mean[_COUPLING] = _bounded(learned["coupling"], 0.0, _MOST)
            self._cov[_COUPLING, _COUPLING] = _bounded(learned["coupling_sd"], 1e-3, _MOST) ** 2
            for name, row in learned["categories"].items():
                at = _FIRST + 2 * self.index(str(name))
                self._mean[at] = _bounded(row["log_scale"], -20.0, 20.0)
                self._mean[at + 1] = _bounded(row["demand"], 0.0, _MOST)
                self._cov[at, at] = _bounded(row["log_scale_sd"], 1e-3, 20.0) ** 2
                self._cov[at + 1, at + 1] = _bounded(row["demand_sd"], 1e-3, _MOST) ** 2
                self.num_seen[self.index(str(name))] = int(_bounded(row["num_tasks"], 0.0, 1e12))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InvalidInput(f"is not what a run has learned: {error!r}", field="demands") from None


def _bounded(value: object, least: float, most: float) -> float:
    number = float(value)  # type: ignore[arg-type]
    if not least <= number <= most:
        raise ValueError(f"{number} is not between {least} and {most}")
    return number

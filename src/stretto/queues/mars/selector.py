"""Which candidate to follow: what each would have made of the past, and how certain that is.

Every candidate replays all jobs on a machine of its own (``counterfactual.py``), so that all are known at every epoch
and none has to be tried on users. Costs have heavy tails, and epochs of one busy week resemble each other; so the
certainty of a difference comes from the Bayesian bootstrap over blocks of epochs: the share of random weightings of the
past in which one candidate is cheaper than another. The cheapest is followed in place of the present one when it is
cheaper with enough certainty. Trained networks begin with a prior: that they cost less than the operator's policy, as
on other logs.

The first candidate is the operator's policy, and the guard: when the real queue has cost more than the policy would
have, by more than an allowance, the policy decides until that is made good.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.units import format_percent
from stretto.errors import InvalidInput
from stretto.queues.mars.parameters import MARS_PARAMETERS, MarsParameters

#: Stands for the cost of a candidate that is no longer replayed.
_DROPPED = 1e30
#: A share in whole percent.
_whole = partial(format_percent, decimals=0)


@dataclass(frozen=True)
class Rival:
    """The candidate nearest to the one that is followed.

    Attributes
    ----------
    cost
        Mean cost of a job in its counterfactual replay.
    sure
        Probability that it is cheaper than the one that is followed.
    """

    name: str
    cost: float
    sure: float


@dataclass(frozen=True)
class Choice:
    """What was chosen at an epoch, and the estimates behind it.

    Attributes
    ----------
    job, time_s
        The number of jobs that had arrived, and when.
    is_fallback
        Whether the guard made the operator's policy decide.
    cost
        Per candidate that is still replayed, the mean cost of jobs in its counterfactual replay.
    saved, sure
        The share of the policy's cost that the chosen one saves, and the probability that it saves anything.
    regret
        By which share the real queue has cost more than the policy would have; negative = it has cost less.
    rival
        The cheapest of the others, None where nothing was compared.
    """

    job: int
    time_s: float
    chosen: str
    is_fallback: bool
    cost: dict[str, float]
    reason: str = ""
    rival: Rival | None = None
    saved: float = 0.0
    sure: float = 0.0
    regret: float = 0.0


class EpochCosts(NamedTuple):
    """What is known of K candidates after E epochs."""

    epochs: Floats  # [K, E] mean costs, the latest last; inf = no longer replayed
    real: Floats  # [E] of the real queue
    job: int  # jobs that have arrived
    time_s: float


@dataclass(eq=False)
class Selector:
    """Chooses among candidates, the first of which is the operator's policy.

    Parameters
    ----------
    trained
        Which of them are trained networks.
    """

    names: Sequence[str]
    trained: Sequence[bool]
    rules: MarsParameters = MARS_PARAMETERS
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.names or len(self.names) != len(self.trained):
            raise InvalidInput("a selector needs candidates", field="names")
        self._rng = np.random.default_rng([self.seed, 1])
        ratio = self.rules.prior_ratio
        # Where the policy itself is a network, nothing is known of the others beside it.
        self._prior = np.array([ratio if one and not self.trained[0] else 1.0 for one in self.trained])
        self.chosen = int(np.argmin(self._prior))
        self.is_guarded = False

    def choose(self, seen: EpochCosts) -> Choice:
        """Decide which candidate to follow next."""
        replayed, mean, draws = self._weigh(seen.epochs)
        best, before = int(np.argmin(mean)), self.chosen
        regret = self._guard(seen)
        if self.is_guarded:
            self.chosen = 0
        else:
            sure = float(np.mean(draws[:, best] < draws[:, before]))
            if best != before and sure >= self.rules.certainty:
                self.chosen = best
        return self._told(seen, replayed, draws, regret)

    def _weigh(self, epochs: Floats) -> tuple[Floats, Floats, Floats]:
        """Return mean costs as replayed, [K], with the prior, [K], and with it in random weightings, [draws, K]."""
        rules, count = self.rules, epochs.shape[1]
        cost = np.where(np.isfinite(epochs), epochs, _DROPPED)
        fade = np.exp(-np.arange(count)[::-1] / max(rules.memory_epochs, 1e-9))
        block = np.arange(count)[::-1] // rules.block_epochs
        weight = self._rng.exponential(size=(rules.num_draws, int(block.max()) + 1))[:, block] * fade
        prior = self._prior * (cost[0] @ fade / fade.sum()) * rules.prior_epochs
        shape = max(rules.prior_epochs / rules.block_epochs, 1e-3)
        prior_weight = self._rng.gamma(shape, 1.0 / shape, size=(rules.num_draws, 1))
        mean: Floats = (cost @ fade + prior) / (fade.sum() + rules.prior_epochs)
        draws: Floats = weight @ cost.T + prior_weight * prior
        return cost @ fade / fade.sum(), mean, draws

    def _guard(self, seen: EpochCosts) -> float:
        """Note whether the policy must decide; return the regret."""
        policy, real = float(seen.epochs[0].sum()), float(seen.real.sum())
        allowed = self.rules.guard * policy + self.rules.guard_epochs * float(seen.epochs[0].mean())
        excess = real - policy
        self.is_guarded = excess > (0.5 * allowed if self.is_guarded else allowed)
        return excess / policy

    def _told(self, seen: EpochCosts, mean: Floats, draws: Floats, regret: float) -> Choice:
        """Say what was chosen and why."""
        chosen, name = self.chosen, self.names[self.chosen]
        replayed = [k for k in range(len(self.names)) if np.isfinite(seen.epochs[k, -1])]
        others = [k for k in replayed if k != chosen]
        rival = min(others, key=lambda k: float(mean[k]), default=None)
        saved = 1.0 - float(mean[chosen] / mean[0])
        sure = float(np.mean(draws[:, chosen] < draws[:, 0])) if chosen else 0.0
        jobs = seen.epochs.shape[1] * self.rules.epoch_jobs
        if self.is_guarded:
            reason = f"the guard: the queue has cost {_whole(regret)} more than {self.names[0]} would have"
        elif chosen == 0:
            reason = f"{name}, the operator's policy: nothing is cheaper with {_whole(self.rules.certainty)} certainty"
        else:
            reason = (
                f"{name} cost {_whole(saved)} less than {self.names[0]} over the last {jobs:,} jobs "
                f"({'over 99 %' if sure > 0.99 else _whole(sure)} sure)"
            )
        return Choice(
            job=seen.job,
            time_s=seen.time_s,
            chosen=name,
            is_fallback=self.is_guarded,
            cost={self.names[k]: float(mean[k]) for k in replayed},
            reason=reason,
            rival=None if rival is None else self._rival(rival, mean, draws),
            saved=saved,
            sure=sure,
            regret=regret,
        )

    def _rival(self, k: int, mean: Floats, draws: Floats) -> Rival:
        return Rival(self.names[k], float(mean[k]), float(np.mean(draws[:, k] < draws[:, self.chosen])))

    def hopeless(self, epochs: Floats) -> list[int]:
        """Return the candidates that need not be replayed any longer."""
        if epochs.shape[1] < self.rules.hopeless_epochs:
            return []
        total: NDArray[np.float64] = epochs.sum(axis=1)
        limit = self.rules.hopeless_ratio * float(np.min(total))
        return [k for k in range(1, len(self.names)) if k != self.chosen and limit < total[k] < np.inf]

    def state(self) -> dict[str, Any]:
        """Return what a restart needs, as JSON."""
        return {"chosen": self.chosen, "is_guarded": self.is_guarded}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what :meth:`state` returned."""
        chosen = state.get("chosen")
        if not isinstance(chosen, int) or not 0 <= chosen < len(self.names):
            raise InvalidInput(f"{chosen!r} is no candidate", field="chosen")
        self.chosen, self.is_guarded = chosen, bool(state.get("is_guarded"))

"""Orders of a live queue: a strategy of the catalog or of a plugin, or the one that does best in simulated futures."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.kernels.rng import seeded
from stretto.errors import InvalidInput
from stretto.queues.kernels.lookahead import LookaheadTrial
from stretto.queues.kernels.online import begin_orders, put_in_line, set_scene, try_orders
from stretto.queues.kernels.portfolio import LookaheadRules, Scene, new_scene
from stretto.queues.kernels.running import new_running
from stretto.queues.portfolio import Forecast, kinds_of
from stretto.queues.strategies import ORDERS, WITH_RESERVE, Submitted, member_code, present_name
from stretto.queues.view import QueueDecision, QueueOrder, QueueView
from stretto.registry import lookup


@dataclass(frozen=True)
class StrategyOrder:
    """One strategy of the catalog; with ``-believed`` behind its name, by believed run times."""

    name: str = "saf"

    def __post_init__(self) -> None:
        _code(self.name)

    def decide(self, view: QueueView) -> QueueDecision:
        """Order the waiting jobs by the strategy's key."""
        if not len(view.waiting):
            return QueueDecision((), self.name)
        return QueueDecision(_Stage.of(view, 0).order(view, _code(self.name)), self.name)


@dataclass(frozen=True)
class PortfolioOrder:
    """Of several orders, the one under which the present queue is worked off at the least cost.

    Attributes
    ----------
    strategies
        The first is the base, which is left only for a gain that is not chance.
    budget_s
        After so long no further scenario is drawn.
    """

    strategies: tuple[str, ...] = ORDERS
    forecast: Forecast = field(default_factory=Forecast)
    budget_s: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.strategies:
            raise InvalidInput("a portfolio needs a strategy", field="strategies")
        for name in self.strategies:
            _code(name)
        if not self.budget_s > 0:
            raise InvalidInput(f"{self.budget_s} must be positive", field="budget_s")

    def decide(self, view: QueueView) -> QueueDecision:
        """Try every order on futures drawn from what like jobs did, and follow the best."""
        if not len(view.waiting):
            return QueueDecision((), self.strategies[0])
        deadline = time.perf_counter() + self.budget_s
        how = self.forecast
        look = LookaheadRules(0.0, how.num_scenarios, how.num_arrivals, how.memory, how.confidence, how.depth)
        codes = np.array([_code(name) for name in self.strategies], np.int64)
        stage = _Stage.of(view, how.num_arrivals)
        costs = stage.costs(view, codes, look, seeded(self.seed), deadline)
        best = _best(costs, how.confidence)
        named = dict(zip(self.strategies, np.mean(costs, axis=0).tolist(), strict=True)) if len(costs) else {}
        return QueueDecision(stage.order(view, int(codes[best])), self.strategies[best], named)


class _PluginKey(Protocol):
    def key(self, jobs: Submitted) -> Floats: ...


@dataclass(frozen=True)
class PluginOrder:
    """The order of a plugin's key; of memory and GPUs a live queue tells nothing, so both are zero."""

    name: str

    def __post_init__(self) -> None:
        if not callable(getattr(self._component(), "key", None)):
            raise InvalidInput("this plugin has no key(jobs): see docs/howto/add-a-strategy.md", field=self.name)

    def decide(self, view: QueueView) -> QueueDecision:
        """Order the waiting jobs by their keys, those that do not fit the machine behind the others."""
        jobs = view.waiting
        n = len(jobs)
        known = Submitted(
            view.submit_s[jobs],
            view.estimate_s[jobs],
            view.procs[jobs],
            view.user[jobs],
            np.zeros(n),
            np.zeros(n, np.int32),
        )
        try:
            key = np.asarray(self._component().key(known), dtype=np.float64)
        except Exception as error:  # somebody else's code may fail in any way
            raise InvalidInput(f"the plugin's key failed: {type(error).__name__}: {error}", field=self.name) from error
        if key.shape != (n,) or bool(np.isnan(key).any()):
            raise InvalidInput(f"the plugin's key must be {n} numbers, one per job", field=self.name)
        is_wide = view.procs[jobs] > view.num_procs
        return QueueDecision(tuple(jobs[np.lexsort((np.arange(n), key, is_wide))].tolist()), self.name)

    def _component(self) -> _PluginKey:
        found: _PluginKey = lookup("strategy", self.name, {})
        return found


def warm_up(order: QueueOrder) -> None:
    """Decide a small case, so that everything that must be compiled is."""
    start, end = np.array([0.0, 1.0, np.nan, np.nan]), np.array([5.0, np.nan, np.nan, np.nan])
    ones, submit = np.ones(4, np.int32), np.arange(4.0)
    order.decide(
        QueueView(9.0, 2, np.arange(4), submit, submit + 60.0, ones, 0 * ones, start, end, np.ones(4, np.bool_))
    )


def _code(name: str) -> int:
    """Return the number of an order; raise where a live queue cannot be put in it."""
    if WITH_RESERVE in present_name(name):
        raise InvalidInput(
            f"{name!r} is more than an order: a live queue's manager starts jobs itself", field="strategy"
        )
    return member_code(name)


def _best(costs: Floats, confidence: float) -> int:
    """Return the order with the surest gain over the first, or the first where no gain is sure."""
    if len(costs) < 2:
        return 0
    gain = costs[:, :1] - costs
    error = np.std(gain, axis=0, ddof=1) / np.sqrt(len(costs))
    sure = np.mean(gain, axis=0) - confidence * error
    return int(np.argmax(sure)) if float(np.max(sure)) > 0 else 0


class _Stage(NamedTuple):
    """A view as the kernels of the portfolio know it."""

    scene: Scene
    waiting: NDArray[np.int64]  # those that fit the machine
    too_wide: NDArray[np.int64]
    free: int
    is_overfull: bool  # more runs than the machine has: nodes went down under their jobs

    @staticmethod
    def of(view: QueueView, num_guesses: int) -> _Stage:
        jobs = view.arrays()
        # What does not fit does not wait here, but the past may be told once more.
        jobs = jobs._replace(procs=np.minimum(jobs.procs, view.num_procs))
        kinds = kinds_of(jobs)
        start = np.where(np.isnan(view.start_s), -1.0, view.start_s)
        scene = new_scene(jobs, kinds, view.num_procs, start, view.num_jobs + num_guesses)
        fits = view.procs[view.waiting] <= view.num_procs
        waiting = view.waiting[fits]
        held = int(set_scene(scene, kinds, view.ended, view.running, waiting, view.now_s))
        return _Stage(scene, waiting, view.waiting[~fits], max(0, view.num_procs - held), held > view.num_procs)

    def order(self, view: QueueView, code: int) -> tuple[int, ...]:
        """Return the waiting jobs by one order, those that do not fit behind the others."""
        size = len(self.waiting)
        queue, key = np.empty(size, np.int64), np.empty(size)
        put_in_line(self.scene, code, size, view.now_s, queue, key)
        return (*queue.tolist(), *self.too_wide.tolist())

    def costs(
        self,
        view: QueueView,
        codes: NDArray[np.int64],
        look: LookaheadRules,
        state: NDArray[np.uint64],
        deadline: float,
    ) -> Floats:
        """Return what each order costs in each scenario, [S, C]; none where there is nothing to weigh."""
        size = len(self.waiting)
        if size < 2 or self.is_overfull:
            return np.zeros((0, len(codes)))
        room = view.num_jobs + look.num_guesses
        trial = LookaheadTrial(
            new_running(room),
            np.empty(room, np.int64),
            np.empty(room),
            np.empty((len(codes), size), np.int64),
            np.zeros(len(codes), np.int64),
            np.zeros(room, np.int64),
            np.zeros(1, np.int64),
        )
        begin_orders(self.scene, trial, codes, size, view.now_s, self.free)
        costs = np.empty((look.num_scenarios, len(codes)))
        for number in range(look.num_scenarios):
            if number >= 2 and time.perf_counter() > deadline:
                return costs[:number]
            try_orders(self.scene, trial, codes, size, view.num_jobs, view.now_s, self.free, look, state, costs[number])
        return costs

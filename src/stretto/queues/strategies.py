"""What the rules of a queue may be named: strategies, backfilling, estimates of run times, and choices of a pool.

Each is a row with a summary and the code by which compiled kernels know it; ``catalog.py`` has the names. A strategy is

- an order of the waiting jobs (``Strategy``), whose formula is in ``kernels/keys.py`` or ``kernels/fairshare.py``;
- a selector, which changes between orders (``StrategySelector``): ``portfolio`` and ``mars``;
- a function ``key(jobs)``, or an object with one, such as a plugin's: the compiled kernels replay it, too;
- a function ``key(jobs, wait_s)``, computed anew at every pass: only ``reference/`` can replay that, at a millisecond
  or more per job.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from stretto.catalog import SELECTORS, STRATEGIES
from stretto.core.csr import Floats, Ints
from stretto.core.trace import UNKNOWN, Trace
from stretto.core.units import is_count
from stretto.errors import InvalidInput
from stretto.queues.kernels import codes, keys
from stretto.queues.kernels.lookahead import BELIEVED, NARROW, RESERVE
from stretto.registry import lookup


@dataclass(frozen=True)
class PriorityWeights:
    """What makes up a multifactor priority.

    Attributes
    ----------
    age, size, fair_share
        PriorityWeights of the three factors, each of which lies between zero and one.
    max_age_s
        The wait at which the age factor is full.
    half_life_s
        Past usage counts half after this time.
    """

    age: float = 1000.0
    size: float = 1000.0
    fair_share: float = 1000.0
    max_age_s: float = 7 * 86400.0
    half_life_s: float = 7 * 86400.0

    def __post_init__(self) -> None:
        for name in ("max_age_s", "half_life_s"):
            if not getattr(self, name) > 0:
                raise InvalidInput(f"{getattr(self, name)} must be positive", field=f"weights.{name}")


@dataclass(frozen=True)
class Strategy:
    """An order of the waiting jobs."""

    code: int
    summary: str
    uses_weights: bool = False


@dataclass(frozen=True)
class StrategySelector:
    """Changes between strategies while a queue runs."""

    summary: str


@dataclass(frozen=True)
class Backfill:
    """Which jobs may start before the head of the queue."""

    code: int
    summary: str


@dataclass(frozen=True)
class EstimateModel:
    """How the scheduler estimates the run time of a job."""

    code: int
    summary: str


@dataclass(frozen=True)
class PoolRule:
    """Which of several pools a job prefers."""

    code: int
    summary: str


FCFS = Strategy(keys.FCFS, "first come, first served")
SJF = Strategy(keys.SHORTEST, "shortest estimate first")
LJF = Strategy(keys.LONGEST, "longest estimate first")
SAF = Strategy(keys.SMALLEST_AREA, "smallest area (estimate x processors) first")
LAF = Strategy(keys.LARGEST_AREA, "largest area (estimate x processors) first")
SMALLEST = Strategy(keys.FEWEST_PROCS, "fewest processors first")
LARGEST = Strategy(keys.MOST_PROCS, "most processors first")
EXPANSION = Strategy(keys.EXPANSION, "largest expansion factor (wait + estimate) / estimate first")
WFP3 = Strategy(keys.WFP3, "largest (wait / estimate)^3 x processors first (Tang et al. 2009)")
UNICEP = Strategy(keys.UNICEP, "largest wait / (log2(processors) x estimate) first (Tang et al. 2009)")
F1 = Strategy(keys.F1, "F1 of Carastan-Santos and de Camargo 2017")
F2 = Strategy(keys.F2, "F2 of Carastan-Santos and de Camargo 2017")
F3 = Strategy(keys.F3, "F3 of Carastan-Santos and de Camargo 2017")
F4 = Strategy(keys.F4, "F4 of Carastan-Santos and de Camargo 2017")
DEADLINE = Strategy(keys.DEADLINE, "earliest deadline first; jobs without one last")
MULTIFACTOR = Strategy(codes.MULTIFACTOR, "age, size and fair share, weighted, as in Slurm", uses_weights=True)

PORTFOLIO = StrategySelector("at each event, the order that does best in simulated futures")
MARS = StrategySelector("at each epoch, the order or network that has done best in counterfactual replays")

NO_BACKFILL = Backfill(codes.NONE, "no job starts before the head of the queue")
EASY = Backfill(codes.EASY, "later jobs start if they do not delay the head (Lifka 1995)")
EASY_SJBF = Backfill(codes.EASY_SHORTEST, "EASY that looks at short jobs first (Tsafrir et al. 2007)")
CONSERVATIVE = Backfill(codes.CONSERVATIVE, "later jobs start if they delay no job before them")
SLACK = Backfill(codes.SLACK, "EASY that may delay the head by a share of its estimate")
PROMISE = Backfill(codes.PROMISE, "EASY in which every job is promised a latest start that no order can break")

USER = EstimateModel(codes.USER, "what the user asked for")
PERFECT = EstimateModel(codes.PERFECT, "the true run time; no scheduler knows it")
LAST_TWO = EstimateModel(codes.LAST_TWO, "mean of the user's last two ended jobs (Tsafrir et al. 2007)")
QUANTILE = EstimateModel(
    codes.QUANTILE, "the user's estimate times a quantile of run/estimate over the user's last jobs"
)

FIRST = PoolRule(codes.FIRST_FIT, "the first pool in which the job fits")
CHEAPEST = PoolRule(codes.CHEAPEST, "of the pools in which the job fits, the one where it costs least")
FASTEST = PoolRule(codes.FASTEST, "of the pools in which the job fits, the fastest")
BURST = PoolRule(codes.BURST, "pool 0; another where that saves the deadline, or more than it costs")
PACK = PoolRule(
    codes.PACK, "as burst, but a job pays only its part of a node that is up, and also the idle time of a new node"
)

OWNED = PoolRule(codes.OWNED, "pool 0; another only for jobs that do not fit it")


class Submitted(NamedTuple):
    """What is known of jobs when they are submitted; true run times are not among it."""

    submit_s: Floats  # [n]
    estimate_s: Floats  # [n] inf = the user gave none
    num_procs: Ints  # [n]
    user: Ints  # [n] -1 = not known
    memory_bytes: Floats  # [n] of the job, 0 = not known
    num_gpus: Ints  # [n]


#: Returns a number per job, the lowest first; with a second parameter, it is told how long each has waited.
PlainKey = Callable[[Submitted], ArrayLike]
WaitKey = Callable[[Submitted, Floats], ArrayLike]
KeyFunction = PlainKey | WaitKey


class HasKey(Protocol):
    """An object whose ``key`` is such a function; a plugin's entry point names one.

    That of a plugin should also have a ``summary``, one line for ``stretto list strategies``.
    """

    @property
    def key(self) -> KeyFunction: ...


#: Whatever orders a queue: a name, a row of this module, a function, or an object with a key.
StrategyLike = str | Strategy | KeyFunction | HasKey


def strategy_of(strategy: StrategyLike) -> Strategy | StrategySelector | KeyFunction:
    """Return a row of this module, or the key function of a plugin or of the caller."""
    found = lookup("strategy", strategy, STRATEGIES | SELECTORS) if isinstance(strategy, str) else strategy
    if isinstance(found, Strategy | StrategySelector):
        return found
    key: object = getattr(found, "key") if hasattr(found, "key") else found  # noqa: B009 (of any object)
    if not callable(key):
        message = f"{strategy!r} is no strategy: give a name, a function or an object with a key(jobs)"
        raise InvalidInput(message, field="strategy")
    return cast("KeyFunction", key)


def name_of_strategy(strategy: StrategyLike) -> str:
    """Return the name by which results and tables call a strategy."""
    if isinstance(strategy, str):
        return strategy
    if isinstance(strategy, Strategy):
        return next(name for name in STRATEGIES if lookup("strategy", name, STRATEGIES).code == strategy.code)
    named = getattr(strategy, "name", None) or getattr(strategy, "__name__", None)
    return str(named or type(strategy).__name__)


def takes_wait(key: KeyFunction) -> bool:
    """Say whether a key function asks how long jobs have waited."""
    needed = [
        one
        for one in inspect.signature(key).parameters.values()
        if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    if len(needed) not in (1, 2):
        raise InvalidInput(f"its key takes {len(needed)} parameters, not (jobs) or (jobs, wait_s)", field="strategy")
    return len(needed) == 2


def checked_key(found: ArrayLike, count: int, name: str) -> Floats:
    """Return what a key function returned as numbers; raise where they are not one per job."""
    key = np.asarray(found, dtype=np.float64)
    if key.shape != (count,) or bool(np.isnan(key).any()):
        raise InvalidInput(f"its key must be {count} numbers, one per job", field=f"strategy {name}")
    return key


def submitted(trace: Trace) -> Submitted:
    """Return what a strategy may know of the jobs of a trace."""
    n = trace.num_jobs
    return Submitted(
        trace.submit_s.copy(),
        np.where(np.isnan(trace.estimate_s), np.inf, trace.estimate_s),
        trace.num_procs.copy(),
        trace.user.copy() if trace.user is not None else np.full(n, UNKNOWN, np.int32),
        trace.memory_bytes.copy() if trace.memory_bytes is not None else np.zeros(n),
        trace.num_gpus.copy() if trace.num_gpus is not None else np.zeros(n, np.int32),
    )


# What a portfolio chooses from.

#: Ends the name of a strategy that orders by forecast run times in place of the user's estimates.
BY_FORECAST = "-believed"
#: Before the percentage of the machine that jobs with a forecast of more than an hour leave free for shorter ones.
WITH_RESERVE = "-reserve-"
#: Behind that, where only jobs with a shorter forecast may pass the head of the queue.
NARROWLY = "-narrow"
#: With a third of the machine free no job is held back, so a larger reserve share has no meaning.
MAX_RESERVE_PERCENT = 33
#: The orders that need nothing but submission, estimate and processors.
CLASSICS = (
    "saf",
    "fcfs",
    "sjf",
    "ljf",
    "laf",
    "smallest",
    "largest",
    "f1",
    "f2",
    "f3",
    "f4",
    "expansion",
    "wfp3",
    "unicep",
)
#: Orders for a live queue, whose manager starts jobs by itself: the first is the base.
ORDERS = (
    "saf-believed",
    "sjf-believed",
    "f4-believed",
    "expansion-believed",
    "wfp3-believed",
    "unicep-believed",
    *CLASSICS,
)
#: What a portfolio that starts jobs itself chooses from: those, and the base with a reserve share.
MEMBERS = ("saf-believed-reserve-5", "saf-believed-reserve-15", "saf-believed-reserve-5-narrow", *ORDERS)


def member_code(name: str) -> int:
    """Return the code of a candidate of a portfolio.

    That is a strategy of the catalog; with ``-believed`` behind its name it uses forecast run times, and with
    ``-reserve-5`` behind that, jobs with a long forecast leave 5 % of the machine to shorter ones; with ``-narrow`` at
    the end they do not pass the head of the queue either.
    """
    name = present_name(name)
    order, mark, percent = name.partition(WITH_RESERVE)
    found = lookup("strategy", order.removesuffix(BY_FORECAST), STRATEGIES)
    if not isinstance(found, Strategy):
        message = f"{name!r} comes from a plugin with a key of its own; use it by itself, not in a portfolio"
        raise InvalidInput(message, field="strategies")
    if found.uses_weights:
        raise InvalidInput(f"{name!r} has weights, and is what Slurm does by itself", field="strategies")
    code = found.code + (BELIEVED if order.endswith(BY_FORECAST) else 0)
    if not mark:
        return code
    share = percent.removesuffix(NARROWLY)
    if not is_count(share) or not 1 <= int(share) <= MAX_RESERVE_PERCENT:
        message = f"{name!r} must keep free a percentage from 1 to {MAX_RESERVE_PERCENT}"
        raise InvalidInput(message, field="strategies")
    return code + RESERVE * int(share) + NARROW * percent.endswith(NARROWLY)


@functools.cache
def present_name(name: str) -> str:
    """Return what a candidate is called today; an old name is accepted for one version, with a note."""
    found = "default-order" if name == "steady" else name
    if name.startswith("steady-"):
        found = "default-" + name.removeprefix("steady-")
    found = found.replace("-bold", "-forecast").replace("-spare-", "-reserve-")
    if found != name:
        print(f"note: {name!r} is now called {found!r}; the old name will go in the next version", file=sys.stderr)
    return found

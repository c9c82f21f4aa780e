"""Compare strategies on a trace: each replays the same windows; medians with intervals over the windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from stretto import catalog
from stretto.core.answers.queue import strategies_answer
from stretto.core.csr import Floats
from stretto.core.results.table import Record, ResultTable
from stretto.core.site import Site
from stretto.core.trace import Trace
from stretto.core.units import format_count, format_wait
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.energy import Energy, EnergyMeter
from stretto.queues.evaluate import evaluate_replay, figures
from stretto.queues.metrics import QueueMetrics, bounded_slowdown
from stretto.queues.recorded.occupancy import known_waits
from stretto.queues.recorded.record import RECORDED, has_waits
from stretto.queues.replay import Machine, can_select, knows_promises
from stretto.queues.setup import notes_on, procs_of, replayed
from stretto.queues.strategies import StrategyLike, name_of_strategy, strategy_of
from stretto.registry import lookup

T = TypeVar("T")
#: What a summary holds of each figure of a replay.
SUMMARY_FIGURES = (
    "mean_bounded_slowdown",
    "p99_bounded_slowdown",
    "mean_wait_s",
    "p99_wait_s",
    "max_wait_s",
    "utilization",
    "cost_usd",
    "makespan_s",
)
#: Figures of energy, where they are known.
ENERGY_FIGURES = ("energy_kwh", "carbon_kg")
#: What strategies are ranked by, where nobody says, and the figures of which more is better.
BEST_BY = "mean_bounded_slowdown"
MORE_IS_BETTER = ("utilization",)
#: Points of a distribution that a row keeps; more than a picture can show.
_KEPT_POINTS = 2000


@dataclass(frozen=True)
class MedianInterval:
    """A median over windows, and the interval that holds the true one with at least 95 % confidence.

    The interval lies between two of the values themselves (order statistics), whatever their
    distribution. Fewer than six values cannot give that confidence: it is then their whole range.
    """

    median: float
    low: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> MedianInterval:
        ranked = np.sort(np.asarray(values, dtype=np.float64))
        cut = _cut(len(ranked))
        return MedianInterval(float(np.median(ranked)), float(ranked[cut]), float(ranked[-1 - cut]))


def _cut(count: int) -> int:
    """Return how many values to leave out at each end: as many as keep 95 % (a sign test turned around)."""
    tail, cut = 0.0, 0
    for outside in range(count // 2):
        tail += math.comb(count, outside) / 2.0**count
        if 2 * tail > 0.05:
            break
        cut = outside
    return cut


@dataclass(frozen=True)
class QueueRow:
    """One strategy on one window."""

    strategy: str
    backfill: str
    first_job: int
    metrics: QueueMetrics
    slowdowns: Floats  # ascending, thinned out
    energy: Energy | None = None

    def to_json(self) -> dict[str, Any]:
        row: dict[str, Any] = {"strategy": self.strategy, "backfill": self.backfill, "first_job": self.first_job}
        return row | self.figures()

    def figures(self) -> dict[str, float]:
        """Return all figures by name."""
        return figures(self.metrics) | ({} if self.energy is None else self.energy.figures())


@dataclass(frozen=True)
class QueueSummary:
    """One strategy over all windows."""

    strategy: str
    backfill: str
    num_windows: int
    ranges: dict[str, MedianInterval]

    @property
    def is_recorded(self) -> bool:
        """Whether this is no candidate, but what really happened."""
        return self.strategy == RECORDED

    def to_json(self) -> dict[str, Any]:
        line: dict[str, Any] = {"strategy": self.strategy, "backfill": self.backfill, "num_windows": self.num_windows}
        return line | {name: vars(value) for name, value in self.ranges.items()}


@dataclass(frozen=True, eq=False)
class QueueComparison(ResultTable):
    """All rows, in the order they were made, and what was passed over in the whole trace.

    Attributes
    ----------
    num_without_limit
        Jobs whose run time stood in for a time limit that the trace does not have.
    """

    METHOD = ("strategy", "backfill")
    CASE = ("first_job",)
    FIGURE = BEST_BY

    trace: str
    num_procs: int
    window_jobs: int
    rows: tuple[QueueRow, ...]
    notes: tuple[str, ...] = ()
    rank_by: str = BEST_BY
    num_without_limit: int = 0

    @property
    def num_windows(self) -> int:
        return len({row.first_job for row in self.rows})

    def of(self, strategy: str, backfill: str) -> list[QueueRow]:
        """Return the rows of a strategy."""
        return [row for row in self.rows if (row.strategy, row.backfill) == (strategy, backfill)]

    def summary(self) -> list[QueueSummary]:
        """Return one line per strategy, the best median of the ranking figure first; ``recorded`` comes last."""
        lines = []
        for strategy, backfill in dict.fromkeys((row.strategy, row.backfill) for row in self.rows):
            flat = [row.figures() for row in self.of(strategy, backfill)]
            names = [*SUMMARY_FIGURES, *(name for name in ENERGY_FIGURES if all(name in part for part in flat))]
            ranges = {name: MedianInterval.of([part[name] for part in flat]) for name in names}
            lines.append(QueueSummary(strategy, backfill, len(flat), ranges))
        sign = -1.0 if self.rank_by in MORE_IS_BETTER else 1.0
        return sorted(
            lines,
            key=lambda line: (line.is_recorded, -line.num_windows, sign * line.ranges[self.rank_by].median),
        )

    @property
    def answer(self) -> str:
        """The result in one sentence."""
        return strategies_answer(self)

    def records(self) -> list[Record]:
        """Return one mapping per strategy and window."""
        return [row.to_json() for row in self.rows]

    def summary_records(self) -> list[Record]:
        """Return one mapping per strategy, best first: medians over the windows with their intervals."""
        found: list[Record] = []
        for line in self.summary():
            record: Record = {"strategy": line.strategy, "backfill": line.backfill, "num_windows": line.num_windows}
            for name, value in line.ranges.items():
                record[name] = value.median
                if line.num_windows > 1:
                    record |= {f"{name}_low": value.low, f"{name}_high": value.high}
            found.append(record)
        return found

    def to_json(self) -> dict[str, Any]:
        """Return rows and summary for ``--output json``."""
        return {
            "answer": self.answer,
            "trace": self.trace,
            "num_procs": self.num_procs,
            "window_jobs": self.window_jobs,
            "rank_by": self.rank_by,
            "notes": list(self.notes),
            "rows": [row.to_json() for row in self.rows],
            "summary": [line.to_json() for line in self.summary()],
        }


def usable_strategies(
    trace: Trace, machine: Machine, *, backfills: Sequence[str] = ("easy",), **rules: Any
) -> list[str]:
    """Return the strategies that have something to say about a trace: deadlines only where jobs have them.

    Selectors come last, where they can play at all, and ``recorded``, where the trace holds waits.
    """
    has_deadlines = trace.deadline_s is not None and bool(np.any(np.isfinite(trace.deadline_s)))
    names = [name for name in catalog.STRATEGIES if name != "edf" or has_deadlines]
    selects = "easy" in backfills and can_select(trace, machine, **rules)
    records = [RECORDED] if has_waits(trace) else []
    return [*names, *(catalog.SELECTORS if selects else ()), *records]


def window_starts(num_jobs: int, num_windows: int, window_jobs: int, seed: int) -> list[int]:
    """Return where random windows begin, in ascending order; they may overlap."""
    if num_windows < 1 or window_jobs < 1:
        raise InvalidInput(f"{num_windows} windows of {window_jobs} jobs are none", field="windows")
    if window_jobs >= num_jobs:
        raise InvalidInput(f"{num_jobs} jobs are too few for windows of {window_jobs}", field="window_size")
    rng = np.random.default_rng(seed)
    return sorted(int(first) for first in rng.integers(0, num_jobs - window_jobs + 1, size=num_windows))


def compare_strategies(
    trace: Trace,
    machine: Machine,
    strategies: Sequence[StrategyLike],
    *,
    backfills: Sequence[str] = ("easy",),
    num_windows: int = 0,
    window_jobs: int = 5000,
    seed: int = 0,
    num_threads: int = 2,
    on_row: Callable[[QueueRow], None] | None = None,
    meter: EnergyMeter | None = None,
    rank_by: str = BEST_BY,
    **rules: Any,
) -> QueueComparison:
    """Replay every window with every strategy and backfilling; Ctrl-C keeps the rows made so far.

    Parameters
    ----------
    num_windows
        Zero replays the whole trace once; otherwise so many random stretches of it, the same for all.
    meter
        How energy is counted; by default by what the site says. All replays of a window are counted up to the same end.
    rank_by
        The figure that decides which strategy is best.
    rules
        Further arguments of :func:`stretto.queues.replay.replay`.
    """
    count_energy = meter or EnergyMeter()
    check_ranking(rank_by, count_energy, machine)
    for strategy in strategies:  # a misspelt name is found before the work, not in the midst of it
        lookup("strategy", strategy, catalog.RECORDS) if strategy == RECORDED else strategy_of(strategy)
    for backfill in backfills:
        lookup("backfill", backfill, catalog.BACKFILLS)
    pairs = pairs_of(strategies, backfills)
    count = window_jobs if num_windows else trace.num_jobs
    starts = window_starts(trace.num_jobs, num_windows, window_jobs, seed) if num_windows else [0]
    tasks = [(first, name, fill) for first in starts for name, fill in pairs]

    def work(task: tuple[int, StrategyLike, str]) -> QueueRow:
        first, strategy, backfill = task
        part = trace.window(first, count)
        place = machine
        if isinstance(machine, Site):  # its reservations count from the first job of the whole trace
            place = machine.later(float(trace.submit_s[first] - trace.submit_s[0]))
        how: dict[str, Any] = {"strategy": strategy, "backfill": backfill, "seed": seed, **rules}
        found = evaluate_replay(part, place, timed=False, meter=count_energy, **how)
        slowdowns = _thinned(np.sort(bounded_slowdown(found.result)))
        return QueueRow(name_of_strategy(strategy), backfill, first, found.metrics, slowdowns, found.energy)

    rows: list[QueueRow] = []
    try:
        for row in _in_order(work, tasks, num_threads):
            rows.append(row)
            if on_row is not None:
                on_row(row)
    except KeyboardInterrupt:
        if not rows:
            raise
    rows = _to_one_end(rows)
    notes = notes_on(trace, machine) + energy_notes(rows, count_energy)
    if RECORDED in strategies:
        notes += record_notes(trace, machine)
        if num_windows:
            notes += (f"replays of windows begin on an empty machine, which {RECORDED} did not",)
    without = trace.num_without_limit if rules.get("estimates", "user") == "user" else 0
    return QueueComparison(trace.name, procs_of(machine), count, tuple(rows), notes, rank_by, without)


def check_ranking(rank_by: str, meter: EnergyMeter, machine: Machine) -> None:
    """Raise where a comparison would not have the figure that it is to be ranked by."""
    if rank_by not in (*SUMMARY_FIGURES, *ENERGY_FIGURES):
        raise UnknownName("figure", rank_by, (*SUMMARY_FIGURES, *ENERGY_FIGURES))
    has_energy = meter.applies(machine)
    if rank_by in ENERGY_FIGURES and not has_energy:
        message = f"{rank_by} needs the power of nodes: say --power, or give a site with power_w"
        raise InvalidInput(message, field="rank_by")
    if rank_by == "carbon_kg" and meter.carbon is None:
        raise InvalidInput("carbon_kg needs --carbon FILE.csv, grams of CO2 per kWh by the hour", field="rank_by")


def _to_one_end(rows: list[QueueRow]) -> list[QueueRow]:
    """Count the energy of all replays of a window up to the end of the last of them."""
    until: dict[int, float] = {}
    for row in rows:
        if row.energy is not None:
            until[row.first_job] = max(row.energy.until_s, until.get(row.first_job, 0.0))
    return [row if row.energy is None else replace(row, energy=row.energy.until(until[row.first_job])) for row in rows]


def energy_notes(rows: Sequence[QueueRow], meter: EnergyMeter) -> tuple[str, ...]:
    """Say what was assumed of power, up to when energy counts, and where intensities come from."""
    if not any(row.energy is not None for row in rows):
        return ()
    notes = dict.fromkeys(note for row in rows if row.energy is not None for note in row.energy.notes)
    notes["energy counts idle and busy nodes up to the end of the last job of the slowest strategy"] = None
    if meter.carbon is not None:
        notes[f"carbon by column {meter.carbon.column!r} of {meter.carbon.source}"] = None
    return tuple(notes)


def pairs_of(strategies: Sequence[T], backfills: Sequence[str]) -> list[tuple[T, str]]:
    """Return what is compared; selectors know EASY, some also promises, and where others are asked for too, only these.

    What really happened has none, and comes last.
    """
    pairs = [
        (name, fill)
        for fill in backfills
        for name in strategies
        if not (isinstance(name, str) and name in catalog.SELECTORS)
        or fill == "easy"
        or "easy" not in backfills
        or (fill == "promise" and knows_promises(name))
    ]
    orders = [pair for pair in pairs if pair[0] != RECORDED]
    return [*orders, *((name, RECORDED) for name in strategies if name == RECORDED)]


def record_notes(trace: Trace, machine: Machine) -> tuple[str, ...]:
    """Say where the record has other jobs than the replays, and its mean wait over the jobs that both have."""
    known, kept = known_waits(trace), replayed(trace, machine)
    only, both = int(np.count_nonzero(known & ~kept)), known & kept
    notes = []
    if only and trace.wait_s is not None and np.any(both):
        mean = float(np.mean(trace.wait_s[both]))
        notes.append(
            f"{RECORDED} counts {format_count(only, 'job')} that no strategy replays; over the jobs of both "
            f"its mean wait is {format_wait(mean)}"
        )
    missing = int(np.count_nonzero(~known & kept))
    if missing:
        notes.append(f"{format_count(missing, 'job')} without a recorded wait: replayed, but not in {RECORDED}")
    return tuple(notes)


def _in_order(
    work: Callable[[tuple[int, StrategyLike, str]], QueueRow],
    tasks: list[tuple[int, StrategyLike, str]],
    num_threads: int,
) -> Iterator[QueueRow]:
    """Yield the rows in the order of the tasks; compiled code lets other threads run."""
    executor = ThreadPoolExecutor(num_threads)
    try:
        yield from executor.map(work, tasks)
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


def _thinned(values: Floats) -> Floats:
    if len(values) <= _KEPT_POINTS:
        return values
    return values[np.linspace(0, len(values) - 1, _KEPT_POINTS).astype(np.int64)]

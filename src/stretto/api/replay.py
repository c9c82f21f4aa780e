"""``stretto.replay``: what a strategy would have done with recorded jobs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TypedDict, Unpack, cast

from stretto.api.inputs import MachineLike, TraceLike, cut_window, machine_of, trace_of
from stretto.api.options import MarsOptions, ReplayRules, mars_settings
from stretto.api.options.energy import EnergyOptions
from stretto.errors import InvalidInput
from stretto.queues.energy import Energy
from stretto.queues.evaluate import Evaluation, Machine, evaluate_replay
from stretto.queues.recorded.job_table import JobOutcomes, check_ending
from stretto.queues.recorded.job_table import job_table as table_of_jobs
from stretto.queues.recorded.record import RECORDED
from stretto.queues.replay import Tie, can_be_watched, check_rules
from stretto.queues.result import QueueResult, Watch
from stretto.queues.strategies import PriorityWeights, StrategyLike
from stretto.runlog import Run

__all__ = [
    "RECORDED",
    "ReplayDetails",
    "can_be_watched",
    "check_ending",
    "check_rules",
    "energy",
    "job_table",
    "measured_replay",
    "metered",
    "replay",
    "save_jobs",
]


class RuleDetails(TypedDict, total=False):
    """The fields of :class:`ReplayRules` that few need."""

    slack: float | str | None
    quantile: float
    wait_usd_per_hour: float
    weights: PriorityWeights
    as_steered: str | None


class ReplayDetails(RuleDetails, total=False):
    """Further keywords of :func:`replay`."""

    calibrate: bool


def replay(
    trace: TraceLike,
    machine: MachineLike | None = None,
    *,
    strategy: StrategyLike = "fcfs",
    backfill: str = ReplayRules.backfill,
    estimates: str = ReplayRules.estimates,
    pool_rule: str = ReplayRules.pool_rule,
    kill: bool = ReplayRules.kill,
    tie: Tie = ReplayRules.tie,
    window: tuple[int, int] | None = None,
    strict: bool = False,
    seed: int = 0,
    mars: MarsOptions | None = None,
    **details: Unpack[ReplayDetails],
) -> QueueResult:
    """Replay recorded jobs on a machine, by default the one that they were recorded on.

    Parameters
    ----------
    trace
        A trace, its file, or ``trace:lublin?num_jobs=1000``.
    machine
        A number of processors, pools, or their file or shorthand such as ``own:128*16,cloud:0-64*8@0.40``.
    strategy
        A name of ``stretto list strategies`` (``portfolio`` and ``mars`` among them; ``recorded`` is no order, but
        what really happened, where the trace holds waits), or an order of your own: a function ``key(jobs)``, the
        lowest first, or ``key(jobs, wait_s)`` where the order changes with the wait. The second form is exact but
        slow: it runs in the reference replay, about a millisecond per job.
    backfill, estimates, pool_rule
        Names of ``stretto list backfills``, ``estimates`` and ``pool-rules``.
    kill
        Whether jobs end at their wall limit, the user's estimate.
    tie
        ``batch``: one pass per moment; ``one-event``: one per event.
    window, strict
        The first job, counted from 0, and how many; and whether to stop at the first invalid row of a file.
    mars
        Options of the strategy ``mars``.
    details
        ``calibrate=True`` replays under what the log shows (usable processors over time, outages, partitions, limits);
        ``slack``, ``quantile``, ``wait_usd_per_hour`` and ``weights``: see :class:`stretto.ReplayRules`.

    Returns
    -------
    QueueResult
        Its ``notes`` say which jobs and properties were left out, and why.

    Examples
    --------
    >>> import stretto
    >>> trace = stretto.load_trace("trace:lublin?num_jobs=500&num_procs=64&load=0.9")
    >>> result = stretto.replay(trace, 64, strategy="saf", backfill="easy")
    >>> result.metrics.num_jobs, result.metrics.bounded_slowdown.mean >= 1
    (500, True)

    An order of your own, by what is known at submission, and one that depends on the wait:

    >>> def narrow_and_short(jobs):
    ...     return jobs.num_procs * jobs.estimate_s**0.5
    >>> stretto.replay(trace, strategy=narrow_and_short).spec["strategy"]
    'narrow_and_short'
    >>> def aged(jobs, wait_s):
    ...     return jobs.estimate_s - 2 * wait_s
    >>> len(stretto.replay(trace, strategy=aged, window=(0, 100)).start_s)
    100
    """
    calibrate = details.pop("calibrate", False)
    return measured_replay(
        trace,
        machine,
        strategy=strategy,
        window=window,
        strict=strict,
        seed=seed,
        mars=mars,
        calibrate=calibrate,
        timed=False,
        rules=ReplayRules(backfill, estimates, pool_rule, kill, tie, **cast("RuleDetails", details)),
    ).result


def measured_replay(
    trace: TraceLike,
    machine: MachineLike | None = None,
    *,
    strategy: StrategyLike = "fcfs",
    rules: ReplayRules | None = None,
    window: tuple[int, int] | None = None,
    strict: bool = False,
    seed: int = 0,
    mars: MarsOptions | None = None,
    calibrate: bool = False,
    timed: bool = True,
    run: Run | None = None,
    watch: Watch | None = None,
) -> Evaluation:
    """Replay as :func:`replay` does, and return the result with its figures, the record and the time that it took.

    Parameters
    ----------
    calibrate
        Fit what the log shows, choose on its first half what brings the replay nearer to the record, and replay under
        it; the result's ``calibration`` says what was applied, and how well it does on the second half.
    timed
        Whether the time matters: loading compiled code is kept out of it, and a short replay is repeated.
    run
        A run of the log in which a selector records its choices while it plays.
    watch
        Told by a selector how many jobs of how many have arrived; False stops it there.
    """
    how = vars(rules or ReplayRules())
    check_rules(strategy, **how)  # a misspelt name is found before a large file is read
    settings = mars_settings(strategy, mars)
    jobs = cut_window(trace_of(trace, strict=strict), window)
    place: Machine = machine_of(jobs, machine)
    return evaluate_replay(
        jobs,
        place,
        timed=timed,
        calibrate=calibrate,
        run=run,
        watch=watch,
        strategy=strategy,
        settings=settings,
        seed=seed,
        **how,
    )


def metered(found: Evaluation, options: EnergyOptions) -> Evaluation:
    """Return a measured replay that counts energy with these options, too; its ``energy`` has the figures."""
    return dataclasses.replace(found, meter=options.meter())


def energy(
    trace: TraceLike,
    result: QueueResult,
    machine: MachineLike | None = None,
    *,
    options: EnergyOptions | None = None,
    window: tuple[int, int] | None = None,
) -> Energy:
    """Return the energy and carbon of a replay.

    Parameters
    ----------
    trace, machine, window
        What was replayed, as it was given to :func:`replay`.
    options
        The power of nodes that state none, and the carbon intensity of electricity.

    Examples
    --------
    >>> import stretto
    >>> trace = stretto.load_trace("trace:lublin?num_jobs=500&num_procs=64&load=0.9")
    >>> result = stretto.replay(trace, 64)
    >>> used = stretto.energy(trace, result, 64, options=stretto.EnergyOptions(power=100, idle_power=20))
    >>> used.kwh == used.idle_kwh + used.busy_kwh
    True
    """
    jobs = cut_window(trace_of(trace), window)
    found = Evaluation(result, result.metrics, float("nan"), jobs, machine_of(jobs, machine))
    used = metered(found, options or EnergyOptions()).energy
    if used is None:
        raise InvalidInput("the power of the machine is unknown: give the watts of a node", field="power")
    return used


def job_table(
    trace: TraceLike, result: QueueResult, machine: MachineLike | None = None, window: tuple[int, int] | None = None
) -> JobOutcomes:
    """Return one row per job of a replay: submission, start, wait, end, and start and wait in the log.

    Parameters
    ----------
    trace, machine, window
        What was replayed, as it was given to :func:`replay`.

    Examples
    --------
    >>> import stretto
    >>> trace = stretto.load_trace("trace:lublin?num_jobs=500&num_procs=64&load=0.9")
    >>> table = stretto.job_table(trace, stretto.replay(trace, 64), 64)
    >>> len(table), list(table.columns)[:4]
    (500, ['job_id', 'submit_s', 'start_s', 'wait_s'])
    """
    jobs = cut_window(trace_of(trace), window)
    return table_of_jobs(jobs, machine_of(jobs, machine), result)


def save_jobs(table: JobOutcomes, path: str | Path) -> Path:
    """Write one row per job to a CSV or Parquet file: completely, or not at all."""
    from stretto.files.load import write_atomically

    file = Path(path)
    write_atomically(file, table.to_bytes(file.name))
    return file

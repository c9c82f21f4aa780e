"""Rigid jobs after Lublin and Feitelson, "The workload on parallel supercomputers" (JPDC 63, 2003).

Sizes: serial, or two-stage uniform in the logarithm, most of them rounded to powers of two. Run times: the
logarithm is hyper-gamma, the share of the short gamma falling with size. Arrivals: gaps whose logarithm is
gamma, passed through a daily cycle: a half hour lets through its weight of them. All numbers are
the paper's; the class with one kind of jobs is the default.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc

from stretto.core.argument_checks import at_least, makes_jobs, positive
from stretto.core.csr import Floats, Ints
from stretto.core.trace import Trace
from stretto.errors import InvalidInput

_NUM_BUCKETS = 48
_BUCKET_S = 1800.0
#: The gamma of the daily cycle counts half hours from here on.
_FIRST_BUCKET = 11
#: Logarithms of the longest run time and of the longest gap.
_MAX_LOG_RUN = 12.0
_MAX_LOG_GAP = 13.0


@dataclass(frozen=True)
class LublinClass:
    """Parameters of one kind of jobs, by their names in the paper.

    Attributes
    ----------
    serial_share, power_of_two_share
        Shares of all jobs.
    low, medium_below_high, low_share
        Two-stage uniform of log2 size: from ``low`` to ``high - medium_below_high`` with ``low_share``, else on to
        ``high``, the logarithm of the machine unless ``high`` is given.
    short, long
        Shape and scale of the two gammas of the log run time.
    share_slope, share_at_zero
        The short gamma's share is a line in the size.
    gap, cycle
        Shape and scale of the gammas of the log gap and of the daily cycle.
    rush_ratio
        Turns the gap of rush hours into that of the whole day.
    """

    serial_share: float = 0.244
    power_of_two_share: float = 0.576
    low: float = 0.8
    medium_below_high: float = 2.5
    high: float | None = None
    low_share: float = 0.86
    short: tuple[float, float] = (4.2, 0.94)
    long: tuple[float, float] = (312.0, 0.03)
    share_slope: float = -0.0054
    share_at_zero: float = 0.78
    gap: tuple[float, float] = (10.2303, 0.4871)
    cycle: tuple[float, float] = (8.1737, 3.9631)
    rush_ratio: float = 1.0225


ALL_JOBS = LublinClass()
BATCH = LublinClass(
    serial_share=0.2927,
    power_of_two_share=0.6686,
    low=1.2,
    medium_below_high=2.0,
    low_share=0.875,
    short=(6.57, 0.823),
    long=(639.1, 0.0156),
    share_slope=-0.003,
    share_at_zero=0.6986,
    gap=(6.0415, 0.8531),
    cycle=(6.1271, 5.2740),
    rush_ratio=1.0519,
)
INTERACTIVE = LublinClass(
    serial_share=0.1541,
    power_of_two_share=0.625,
    low=1.0,
    high=5.5,
    medium_below_high=2.5,
    low_share=0.705,
    short=(3.8351, 0.6605),
    long=(7.073, 0.6856),
    share_slope=-0.0118,
    share_at_zero=0.9156,
    gap=(6.5510, 0.6621),
    cycle=(8.9186, 3.6680),
    rush_ratio=0.9797,
)


def lublin(
    num_jobs: int,
    *,
    seed: int,
    num_procs: int = 256,
    load: float | None = None,
    classes: tuple[LublinClass, ...] = (ALL_JOBS,),
) -> Trace:
    """Return a trace of the Lublin–Feitelson model; there are no users and no estimates in it.

    Parameters
    ----------
    load
        Offered load to reach: processor seconds over processors times the span of submissions. The gaps are
        scaled before the daily cycle, so that days stay days. By default as the model has it.
    classes
        Kinds of jobs with arrivals of their own; ``(INTERACTIVE, BATCH)`` for the paper's two kinds. The
        kind is the ``queue`` of a job.
    """
    at_least(1, num_jobs=num_jobs)
    at_least(2, num_procs=num_procs)
    makes_jobs(num_jobs=num_jobs)
    if not classes:
        raise InvalidInput("there must be one class at least", field="classes")
    rng = np.random.default_rng(seed)
    points = [_points(num_jobs, kind, rng) for kind in classes]
    runs, sizes, queue, order = _jobs(num_jobs, num_procs, classes, points, rng)
    scale = 1.0
    if load is not None:
        positive(load=load)
        scale = _scale_for(load, runs, sizes, num_procs, classes, points, order)
    submit = np.floor(_times(classes, points, scale)[order])
    by_time = np.argsort(submit, kind="stable")  # classes with different days may change places when scaled
    return Trace.of(
        submit[by_time],
        runs[by_time],
        sizes[by_time],
        np.full(num_jobs, np.nan),
        name=f"lublin-{num_jobs}-{seed}",
        job_id=np.arange(1, num_jobs + 1, dtype=np.int32),
        queue=queue[by_time],
        max_procs=num_procs,
        meta={"generator": "lublin", "seed": seed, "load": load, "gap_scale": scale},
    )


def _jobs(
    num_jobs: int,
    num_procs: int,
    classes: tuple[LublinClass, ...],
    points: list[Floats],
    rng: np.random.Generator,
) -> tuple[Floats, Ints, Ints, Ints]:
    """Return run times, sizes and kinds of the first jobs to arrive, and which they are."""
    order = np.argsort(_times(classes, points, 1.0), kind="stable")[:num_jobs]
    sizes = [_sizes(num_jobs, num_procs, kind, rng) for kind in classes]
    runs = [_run_times(size, kind, rng) for size, kind in zip(sizes, classes, strict=True)]
    queue = np.repeat(np.arange(len(classes), dtype=np.int32), num_jobs)
    return np.concatenate(runs)[order], np.concatenate(sizes)[order], queue[order], order.astype(np.int32)


def _sizes(num_jobs: int, num_procs: int, kind: LublinClass, rng: np.random.Generator) -> Ints:
    most = float(np.log2(num_procs))
    high = most if kind.high is None else min(most, kind.high)
    low = min(kind.low, high)
    medium = float(np.clip(high - kind.medium_below_high, low, high))
    first = rng.random(num_jobs) <= kind.low_share
    place = rng.random(num_jobs)
    log_size = np.where(first, low + place * (medium - low), medium + place * (high - medium))
    kinds = rng.random(num_jobs)
    power = kinds <= kind.serial_share + kind.power_of_two_share
    log_size = np.where(power, np.floor(log_size + 0.5), log_size)
    size = np.where(kinds <= kind.serial_share, 1.0, np.floor(2.0**log_size + 0.5))
    return np.clip(size, 1, num_procs).astype(np.int32)


def _run_times(sizes: Ints, kind: LublinClass, rng: np.random.Generator) -> Floats:
    share = np.clip(kind.share_slope * sizes + kind.share_at_zero, 0.0, 1.0)
    log_run = np.full(len(sizes), np.inf)
    wanting = np.arange(len(sizes))
    while len(wanting):
        is_short = rng.random(len(wanting)) <= share[wanting]
        shape = np.where(is_short, kind.short[0], kind.long[0])
        scale = np.where(is_short, kind.short[1], kind.long[1])
        log_run[wanting] = rng.gamma(shape, scale)
        wanting = wanting[log_run[wanting] > _MAX_LOG_RUN]
    run: Floats = np.maximum(1.0, np.floor(np.exp(log_run)))
    return run


def _points(num_jobs: int, kind: LublinClass, rng: np.random.Generator) -> Floats:
    """Return when jobs arrive on a clock without days, in half hours."""
    shape, scale = kind.gap[0] * kind.rush_ratio, kind.gap[1]
    log_gap = rng.gamma(shape, scale, num_jobs)
    while bool(np.any(log_gap > _MAX_LOG_GAP)):
        long = log_gap > _MAX_LOG_GAP
        log_gap[long] = rng.gamma(shape, scale, int(np.count_nonzero(long)))
    points: Floats = np.cumsum(np.exp(log_gap) / _BUCKET_S)
    return points


def cycle_weights(kind: LublinClass) -> Floats:
    """Return the weight of each half hour of the day, from midnight, with a mean of one."""
    shape, scale = kind.cycle
    bucket = np.arange(_FIRST_BUCKET, _FIRST_BUCKET + _NUM_BUCKETS)
    share = gammainc(shape, (bucket + 0.5) / scale) - gammainc(shape, (bucket - 0.5) / scale)
    weights = np.empty(_NUM_BUCKETS)
    weights[(bucket - 1) % _NUM_BUCKETS] = share
    normal: Floats = weights / weights.mean()
    return normal


def _times(classes: tuple[LublinClass, ...], points: list[Floats], scale: float) -> Floats:
    """Return arrivals in seconds, class after class: a half hour passes when its weight is paid."""
    parts = []
    for kind, paid in zip(classes, points, strict=True):
        cumulative = np.concatenate([[0.0], np.cumsum(cycle_weights(kind))])
        days = np.floor(paid * scale / _NUM_BUCKETS)
        rest = paid * scale - days * _NUM_BUCKETS
        bucket = np.interp(rest, cumulative, np.arange(_NUM_BUCKETS + 1, dtype=np.float64))
        parts.append((days * _NUM_BUCKETS + bucket) * _BUCKET_S)
    return np.concatenate(parts)


def _scale_for(
    load: float,
    runs: Floats,
    sizes: Ints,
    num_procs: int,
    classes: tuple[LublinClass, ...],
    points: list[Floats],
    order: Ints,
) -> float:
    """Return the factor on all gaps with which these jobs offer the load; found by bisection."""
    span = float(runs @ sizes) / (num_procs * load)
    if len(runs) < 2:
        return 1.0

    def span_at(scale: float) -> float:
        times = _times(classes, points, scale)[order]
        return float(times.max() - times.min())

    low, high = 1e-9, 1.0
    while span_at(high) < span:
        high *= 2.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if span_at(middle) < span else (low, middle)
    return high

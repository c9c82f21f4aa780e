"""A replay under what the log shows: fitted, applied, and told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.trace import Trace
from stretto.core.units import format_percent, format_wait
from stretto.errors import InvalidInput
from stretto.queues.kernels import codes
from stretto.queues.kernels.outcome import new_outcome
from stretto.queues.metrics import Spread
from stretto.queues.recorded.capacity import outages_of, windowed_capacity
from stretto.queues.recorded.corrections import Corrections, ReplayedJobs, parts_of, replay_under
from stretto.queues.recorded.departure import WaitPair
from stretto.queues.recorded.fit import fit_corrections
from stretto.queues.recorded.kernels.conditions import PolicyCode
from stretto.queues.recorded.occupancy import known_waits, recorded_occupancy
from stretto.queues.result import QueueResult
from stretto.queues.setup import ReplaySetup


@dataclass(frozen=True)
class HalfOfLog:
    """Mean waits of one half of the log, over the jobs whose waits are recorded."""

    num_jobs: int
    recorded_mean_wait_s: float
    plain_mean_wait_s: float
    calibrated_mean_wait_s: float


@dataclass(frozen=True)
class LogCalibration:
    """What was fitted and applied, and how near the replay comes.

    Attributes
    ----------
    applied
        One sentence per correction.
    plain, calibrated
        Waits over the whole log beside the record, without and with the corrections.
    first_half, held_out
        The half on which corrections were chosen, and the other one, replayed with what the first half showed.
    """

    corrections: Corrections
    applied: tuple[str, ...]
    plain: WaitPair
    calibrated: WaitPair
    first_half: HalfOfLog | None
    held_out: HalfOfLog | None
    num_replays: int

    def to_json(self) -> dict[str, object]:
        return {
            "corrections": asdict(self.corrections),
            "applied": list(self.applied),
            "plain": self.plain.to_json(),
            "calibrated": self.calibrated.to_json(),
            "first_half": None if self.first_half is None else asdict(self.first_half),
            "held_out": None if self.held_out is None else asdict(self.held_out),
            "num_replays": self.num_replays,
        }


def check_calibration(trace: Trace, setup: ReplaySetup) -> PolicyCode:
    """Return the policy as the compiled loop knows it; raise where a calibrated replay cannot follow it."""
    rules = setup.rules
    if not np.any(known_waits(trace)):
        raise InvalidInput(f"{trace.name!r} holds no recorded waits: nothing to calibrate against", field="calibrate")
    reason = None
    if not setup.is_plain:
        reason = "one machine of equal processors, and jobs that do not wait for each other"
    elif rules.backfill not in (codes.NONE, codes.EASY):
        reason = "backfill none and easy"
    elif rules.estimates not in (codes.USER, codes.PERFECT):
        reason = "estimates user and perfect"
    elif rules.kill or rules.one_event:
        reason = "jobs that run as long as recorded (no kill), and tie batch"
    if reason is not None:
        raise InvalidInput(f"a calibrated replay supports {reason}", field="calibrate")
    weights = (rules.age, rules.size, rules.fair_share, rules.max_age, rules.half_life)
    return PolicyCode(rules.strategy, rules.backfill == codes.EASY, *map(float, weights))


def calibrated_replay(
    trace: Trace,
    kept: NDArray[np.bool_],
    setup: ReplaySetup,
    spec: dict[str, object],
    on_step: Callable[[str], None] | None = None,
) -> tuple[QueueResult, LogCalibration]:
    """Fit corrections to the log, replay under them, and tell both.

    Parameters
    ----------
    trace, kept
        What was given, and which of its jobs are replayed.
    setup
        The replay without corrections, ready to run.
    """
    policy = check_calibration(trace, setup)
    part = trace if np.all(kept) else trace.keep(kept)
    part = replace(part, submit_s=part.submit_s - float(part.submit_s[0]))
    jobs = ReplayedJobs(part, setup.jobs, setup.pools[0].num_procs)
    if not np.any(known_waits(part)):
        message = f"no job of {trace.name!r} that can be replayed has a recorded wait: nothing to calibrate against"
        raise InvalidInput(message, field="calibrate")
    fit = fit_corrections(jobs, policy, on_step)
    start = replay_under(jobs, policy, fit.on_all)
    plain = replay_under(jobs, policy, Corrections()) - setup.jobs.submit
    is_first = np.arange(part.num_jobs) < fit.num_first
    on_half = replay_under(jobs, policy, fit.on_half, is_first) - setup.jobs.submit
    known = known_waits(part)
    assert part.wait_s is not None
    found = LogCalibration(
        corrections=fit.on_all,
        applied=describe(part, jobs.num_procs, fit.on_all),
        plain=WaitPair.of(part.wait_s[known], plain[known]),
        calibrated=WaitPair.of(part.wait_s[known], (start - setup.jobs.submit)[known]),
        first_half=_half(part, plain, on_half, known & is_first),
        held_out=_half(part, plain, on_half, known & ~is_first),
        num_replays=fit.num_replays + 3,
    )
    return _result(setup, start, {**spec, "calibrated": True}), found


def _half(part: Trace, plain: Floats, calibrated: Floats, rows: NDArray[np.bool_]) -> HalfOfLog | None:
    if part.wait_s is None or not np.any(rows):
        return None
    means = (float(np.mean(waits[rows])) for waits in (part.wait_s, plain, calibrated))
    return HalfOfLog(int(np.count_nonzero(rows)), *means)


def _result(setup: ReplaySetup, start: Floats, spec: dict[str, object]) -> QueueResult:
    out = new_outcome(setup.trace.num_jobs, 1)
    end = start + setup.jobs.run
    return QueueResult(
        trace=setup.trace,
        pools=setup.pools,
        start_s=start,
        end_s=end,
        ready_s=setup.jobs.submit,
        pool=out.pool,
        is_killed=out.killed,
        num_interruptions=out.interruptions,
        cost_usd=out.usd,
        billed_node_s=np.array([float(np.ceil(end.max())) * setup.pools[0].num_nodes]),
        num_dropped=setup.num_dropped,
        spec=spec,
        notes=setup.notes,
    )


def describe(part: Trace, num_procs: int, corrections: Corrections) -> tuple[str, ...]:
    """Return one sentence per correction."""
    found = []
    past = recorded_occupancy(part)
    if corrections.split_by:
        count = len(parts_of(part, corrections.split_by))
        what = f"{count:,} {corrections.split_by}s" if count > 1 else f"1 {corrections.split_by}"
        found.append(f"{what}, each a machine as large as the most that its jobs ever took at once")
    if corrections.window_s > 0:
        usable = Spread.of(windowed_capacity(past, num_procs, corrections.window_s).usable)
        found.append(
            f"usable processors follow the number in use while jobs waited, in windows of "
            f"{format_wait(corrections.window_s)}: {usable.mean:,.0f} of {num_procs:,} on average"
        )
    if corrections.has_outages:
        outages = outages_of(part, past, num_procs)
        total = sum(one.end_s - one.begin_s for one in outages)
        where = f", in each {corrections.split_by}" if corrections.split_by else ""
        found.append(
            f"no start in the stretches in which nothing started although a waiting job would have fitted"
            f"{where or f' ({len(outages):,}, {format_wait(total)} in all)'}"
        )
    if corrections.share != 1.0:
        found.append(f"jobs can take {format_percent(corrections.share)} of the usable processors")
    return tuple(found)

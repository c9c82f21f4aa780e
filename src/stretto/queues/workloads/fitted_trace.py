"""New traces like a recorded one: its users, sessions, hours of the week, sizes, run times and estimates.

A *session* is what one user submits in one go: gaps of at most twenty minutes, eight hours in all. A sample
draws recorded sessions in random order, each once before any comes twice, so that users and classes of jobs
keep their shares. Sessions start at random times that follow the recorded hours of the week. Within a session each
job is replaced by a neighbour: a job of the same user and size with a similar estimate and run time; and run
times are jittered. The span is chosen such that the sample offers the recorded load.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.argument_checks import at_least, makes_jobs, positive
from stretto.core.csr import Floats, Ints
from stretto.core.trace import Trace
from stretto.errors import InvalidInput

HOUR_S = 3600.0
_WEEK_HOURS = 168
_DAY_HOURS = 24
_MAX_GAP_S = 1200.0
_MAX_SESSION_S = 8 * HOUR_S
#: A job is replaced by one at most this many places away among its like.
_REACH = 3
_JITTER = 0.05
_MIN_PIECE = 20


@dataclass(frozen=True, eq=False)
class FittedTrace:
    """What a sample is drawn from; jobs stand session after session.

    Attributes
    ----------
    hour_weight
        Sessions that start in each hour of the week (counted from second zero), with a mean of one.
    neighbours, place
        Jobs sorted so that like stands beside like, and where each job stands there.
    first, last
        The range of ``neighbours`` that has the same user and size as each job.
    """

    name: str
    num_procs: int
    load: float
    origin_unix_s: float | None
    hour_weight: Floats  # [168]
    session_ptr: Ints  # [S+1]
    offset_s: Floats  # [n] since the session's start
    run_s: Floats  # [n]
    procs: Ints  # [n]
    estimate_s: Floats  # [n]
    user: Ints  # [n]
    neighbours: Ints  # [n]
    place: Ints  # [n]
    first: Ints  # [n]
    last: Ints  # [n]

    @property
    def num_jobs(self) -> int:
        return len(self.run_s)

    def sample(self, num_jobs: int, seed: int, load_factor: float = 1.0) -> Trace:
        """Return a new trace of so many jobs that offers ``load_factor`` times the recorded load."""
        at_least(1, num_jobs=num_jobs)
        makes_jobs(num_jobs=num_jobs)
        positive(load_factor=load_factor)
        rng = np.random.default_rng(seed)
        job, session, offset = self._draw(num_jobs, rng)
        twin = self._neighbour(job, rng)
        run = self._jittered(twin, rng)
        procs = self.procs[twin]
        clock = rng.random(int(session[-1]) + 1)[session]
        span = float(run @ procs) / (self.num_procs * self.load * load_factor)
        submit = self._submissions(clock, offset, span)
        order = np.argsort(submit, kind="stable")
        return Trace.of(
            submit[order],
            run[order],
            procs[order],
            self.estimate_s[twin][order],
            name=f"{self.name}-like-{seed}",
            job_id=np.arange(1, num_jobs + 1, dtype=np.int32),
            user=self.user[twin][order],
            max_procs=self.num_procs,
            origin_unix_s=self.origin_unix_s,
            meta={"generator": "fitted", "source": self.name, "seed": seed, "load_factor": load_factor},
        )

    def _draw(self, num_jobs: int, rng: np.random.Generator) -> tuple[Ints, Ints, Floats]:
        """Return jobs, their sessions and offsets; sessions in random order, each once before any twice."""
        begin = self._pieces(max(_MIN_PIECE, num_jobs // 50))
        length = np.diff(np.concatenate([begin, [self.num_jobs]]))
        rounds = -(-num_jobs // self.num_jobs)
        drawn = np.concatenate([rng.permutation(len(begin)) for _ in range(rounds)])
        drawn = drawn[: int(np.searchsorted(np.cumsum(length[drawn]), num_jobs)) + 1]
        count = length[drawn]
        session = np.repeat(np.arange(len(drawn)), count)
        job = begin[drawn][session] + np.arange(len(session)) - np.repeat(np.cumsum(count) - count, count)
        offset = self.offset_s[job] - self.offset_s[begin[drawn]][session]
        return job[:num_jobs].astype(np.int32), session[:num_jobs].astype(np.int32), offset[:num_jobs]

    def _pieces(self, most: int) -> Ints:
        """Return where sessions begin when long ones are cut: one of thousands must not be the whole of a sample."""
        length = np.diff(self.session_ptr)
        num_pieces = -(-length // most)
        inner = np.arange(int(num_pieces.sum())) - np.repeat(np.cumsum(num_pieces) - num_pieces, num_pieces)
        begin: Ints = (np.repeat(self.session_ptr[:-1], num_pieces) + most * inner).astype(np.int32)
        return begin

    def _neighbour(self, job: Ints, rng: np.random.Generator) -> Ints:
        step = rng.integers(-_REACH, _REACH + 1, len(job))
        at = np.clip(self.place[job] + step, self.first[job], self.last[job])
        twin: Ints = self.neighbours[at]
        return twin

    def _jittered(self, job: Ints, rng: np.random.Generator) -> Floats:
        """Return run times with noise; a job that kept its estimate still does, one that did not still does not."""
        run, estimate = self.run_s[job], self.estimate_s[job]
        noisy = np.maximum(1.0, np.round(run * np.exp(rng.normal(0.0, _JITTER, len(job)))))
        known = np.where(np.isfinite(estimate), estimate, np.inf)
        kept = run <= known
        most = np.where(kept, np.maximum(known, 1.0), np.inf)
        least = np.where(kept, 0.0, np.minimum(run, known + 1.0))
        return np.clip(noisy, least, most)

    def _submissions(self, clock: Floats, offset_s: Floats, span_s: float) -> Floats:
        """Return submissions over about ``span_s``; ``clock`` in 0..1 is a session's start by weight."""
        length = span_s
        submit = offset_s
        for _ in range(8):
            submit = np.round(_time_at(clock, length, self.hour_weight) + offset_s)
            found = float(submit.max() - submit.min())
            if found <= 0 or abs(found - span_s) < 1e-3 * span_s:
                break
            length = max(HOUR_S / 60, length + span_s - found)
        first = float(submit.min())
        # Whole weeks may be cut off the front, but the hour of the week must stay.
        whole_weeks: Floats = submit - np.floor(first / (_WEEK_HOURS * HOUR_S)) * _WEEK_HOURS * HOUR_S
        return whole_weeks


def _time_at(clock: Floats, length_s: float, hour_weight: Floats) -> Floats:
    """Return the times by which these shares of all sessions have started."""
    num_hours = max(1, int(np.ceil(length_s / HOUR_S)))
    weight = np.resize(hour_weight, num_hours)
    weight[-1] *= length_s / HOUR_S - (num_hours - 1)
    edge = np.minimum(np.arange(num_hours + 1) * HOUR_S, length_s)
    time: Floats = np.interp(clock * weight.sum(), np.concatenate([[0.0], np.cumsum(weight)]), edge)
    return time


def fit_trace(trace: Trace, *, num_procs: int | None = None) -> FittedTrace:
    """Learn what samples like this trace need; jobs without a run time are left out.

    Parameters
    ----------
    num_procs
        Processors of the machine, by default what the trace says.
    """
    used = trace.take(np.flatnonzero(trace.run_s > 0).astype(np.int32))
    if used.num_jobs < 2 or used.submit_s[-1] <= used.submit_s[0]:
        raise InvalidInput("a trace needs two jobs at different times to learn from", field="trace")
    user = np.zeros(used.num_jobs, dtype=np.int32) if used.user is None else used.user
    order, session_ptr = _sessions(used.submit_s, user)
    submit, run, procs = used.submit_s[order], used.run_s[order], used.num_procs[order]
    estimate, user = used.estimate_s[order], user[order]
    starts = submit[session_ptr[:-1]]
    size = used.recorded_procs("num_procs=N") if num_procs is None else num_procs
    at_least(1, num_procs=size)
    span = float(used.submit_s[-1] - used.submit_s[0])
    neighbours, place, first, last = _likes(user, procs, estimate, run)
    return FittedTrace(
        name=trace.name,
        num_procs=size,
        load=float(run @ procs) / (size * span),
        origin_unix_s=trace.origin_unix_s,
        hour_weight=_hour_weight(starts, span),
        session_ptr=session_ptr,
        offset_s=submit - np.repeat(starts, np.diff(session_ptr)),
        run_s=run,
        procs=procs,
        estimate_s=estimate,
        user=user,
        neighbours=neighbours,
        place=place,
        first=first,
        last=last,
    )


def fitted(trace: Trace, num_jobs: int, *, seed: int, load_factor: float = 1.0, num_procs: int | None = None) -> Trace:
    """Return a new trace like a recorded one, of a machine of ``num_procs`` processors where the trace names none."""
    return fit_trace(trace, num_procs=num_procs).sample(num_jobs, seed, load_factor)


def _sessions(submit: Floats, user: Ints) -> tuple[Ints, Ints]:
    """Return the jobs session after session, and where each session begins."""
    order = np.lexsort((submit, user)).astype(np.int32)
    time, who = submit[order], user[order]
    begins = np.concatenate([[True], (np.diff(who) != 0) | (np.diff(time) > _MAX_GAP_S)])
    # A script that submits all day would be one endless session: it is cut by the clock.
    start = time[np.flatnonzero(begins)][np.cumsum(begins) - 1]
    part = np.floor((time - start) / _MAX_SESSION_S)
    begins[1:] |= np.diff(part) > 0
    ptr = np.concatenate([np.flatnonzero(begins), [len(order)]]).astype(np.int32)
    return order, ptr


def _hour_weight(starts: Floats, span_s: float) -> Floats:
    """Return the weight of each hour of the week; a short trace tells of days only, a shorter one of nothing."""
    hour = (starts // HOUR_S).astype(np.int64)
    counts = np.bincount(hour % _WEEK_HOURS, minlength=_WEEK_HOURS).astype(np.float64)
    if span_s < 2 * _WEEK_HOURS * HOUR_S:
        counts = np.tile(np.bincount(hour % _DAY_HOURS, minlength=_DAY_HOURS).astype(np.float64), 7)
    if span_s < 2 * _DAY_HOURS * HOUR_S:
        counts = np.ones(_WEEK_HOURS)
    counts += 0.01 * counts.mean()  # no hour is impossible
    weight: Floats = counts / counts.mean()
    return weight


def _likes(user: Ints, procs: Ints, estimate: Floats, run: Floats) -> tuple[Ints, Ints, Ints, Ints]:
    """Sort jobs so that like stands beside like; return the order, each job's place and its range."""
    order = np.lexsort((run, np.nan_to_num(estimate, nan=-1.0), procs, user)).astype(np.int32)
    n = len(order)
    new = np.concatenate([[True], (np.diff(user[order]) != 0) | (np.diff(procs[order]) != 0)])
    begin = np.flatnonzero(new)
    of = np.cumsum(new) - 1
    end = np.concatenate([begin[1:], [n]]) - 1
    place = np.empty(n, dtype=np.int32)
    place[order] = np.arange(n, dtype=np.int32)
    return order, place, begin[of[place]].astype(np.int32), end[of[place]].astype(np.int32)

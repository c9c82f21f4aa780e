"""Replay rigid jobs in the order of a scoring network, with EASY backfilling where the network lets a job pass.

A pass is that of ``queue_dynamic``: all jobs are scored anew, the best start while they fit, then EASY in the same
order with reservations by user estimates. Beliefs about run times come from jobs that have ended and from
how long others have been running (``mars_forecast``), never from the future.

The replay can stop at any arrival and continue with another network: ``advance`` is given all that is the case.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.expected import SIZE, Expected, expect, forget, new_expected, put_in_order, shadow_at
from stretto.queues.kernels.forecast import BOUND, Past, believe, new_means, remember_means
from stretto.queues.kernels.running import Running, begin_job, end_first, new_running
from stretto.queues.mars.kernels.forecast import (
    HARMONIC,
    TYPICAL,
    Forecaster,
    Records,
    chains_of,
    foresee,
    note_end,
    records_along,
)
from stretto.queues.mars.kernels.lazy import follower, goes_by_beliefs, is_lazy, leader, rate
from stretto.queues.mars.kernels.policy import (
    Seen,
    describe,
    fill_scores,
    join,
    may_pass,
    move_last,
    new_seen,
    sharp_run,
)
from stretto.queues.mars.parameters import MARS_PARAMETERS as P

#: A job is forecast anew when it has waited for this part of its time once more: news is used so much later.
PAUSE = P.forecast_pause
# Places of ``MachineState.num``.
FREE, ARRIVED, NUM_PASSES, NUM_SCORED, NUM_LATE = range(5)


class MachineState(NamedTuple):
    """All that is the case at a moment; n jobs."""

    running: Running
    expected: Expected
    seen: Seen
    past: Past
    records: Records
    forecaster: Forecaster
    changed: np.ndarray  # [U] the pass in which there last was news of each user
    left: np.ndarray  # [n] scratch: places of jobs that start
    is_known: np.ndarray  # [n] whether a run time is a fact; others are guesses, of which nothing is learned
    late: np.ndarray  # [n] jobs that have ended here before their run times were known
    num: np.ndarray  # [5]


@njit(cache=True, nogil=True)
def new_state(q, kinds, num_procs, num_hidden, forecaster, is_known):
    """Return an empty machine before the first job.

    Parameters
    ----------
    num_hidden
        The most that any network will have.
    is_known
        Whether a run time is a fact; may change from one ``advance`` to the next.
    """
    return state_along(q, chains_of(q), kinds.max() + 1, num_procs, num_hidden, forecaster, is_known)


@njit(cache=True, nogil=True)
def state_along(q, chains, num_kinds, num_procs, num_hidden, forecaster, is_known):
    """Return the same with chains that several machines share."""
    n = q.submit.shape[0]
    num = np.zeros(5, np.int64)
    num[FREE] = num_procs
    return MachineState(
        new_running(n),
        new_expected(2 * n),  # a job that outlives a belief is expected twice
        new_seen(n, num_hidden),
        new_means(num_kinds),
        records_along(q, chains, num_kinds, forecaster.bias.shape[0]),
        forecaster,
        np.zeros(q.user.max() + 1, np.int64),
        np.empty(n, np.int64),
        is_known,
        np.empty(n, np.int64),
        num,
    )


@njit(cache=True, nogil=True)
def run_mars(q, kinds, num_procs, net, forecaster, start):
    """Fill the start of each job; return how many passes there were.

    Parameters
    ----------
    q
        The jobs, as ``QueueArrays``; all must fit the machine and run for some time.
    kinds
        The kinds of each job, for ``queue_forecast``; [n, L].
    net
        Weights, as ``mars_policy.Net``.
    forecaster
        What it goes by where it has foresight.
    """
    start[:] = -1.0
    state = new_state(q, kinds, num_procs, net.bias.shape[0], forecaster, np.ones(q.submit.shape[0], np.bool_))
    advance(q, kinds, num_procs, net, state, q.submit.shape[0] + 1, start)
    return state.num[NUM_PASSES]


@njit(cache=True, nogil=True)
def take_over(q, kinds, num_procs, net, t, now, start):
    """Let another network see the jobs that wait."""
    for k in range(t.seen.size[0]):
        look(q, kinds, num_procs, net, t.forecaster, t.seen, t.past, t.records, k, t.num[ARRIVED], now, start)


@njit(cache=True, nogil=True)
def look(q, kinds, num_procs, net, forecaster, s, past, records, k, num_arrived, now, start):
    """Compute what does not change while a job waits, nothing like it ends, and those that run say nothing new."""
    job = s.job[k]
    estimate = max(1.0, q.estimate[job])
    share = net.foresight[0]
    believed, sharp = 1.0, 1.0
    s.looked[k] = now
    if share < 1.0:
        believed = believe(past, kinds[job], estimate)
        sharp = sharp_run(past, kinds[job], estimate)
    if share > 0.0:
        foresee(forecaster, q, records, kinds[job], job, num_arrived, now, start)
        longest = max(BOUND, estimate)
        believed = believed ** (1.0 - share) * (longest * np.exp(records.said[TYPICAL])) ** share
        sharp = sharp ** (1.0 - share) * (longest * np.exp(records.said[HARMONIC])) ** share
    describe(s, net, k, believed, sharp, num_procs)
    rate(s, net, k, now)


@njit(cache=True, nogil=True)
def learn(q, kinds, past, records, changed, num, job, now):
    """Take a run time into account."""
    remember_means(past, kinds[job], q.run[job], max(1.0, q.estimate[job]))
    note_end(q, records, kinds[job], job, now)
    changed[q.user[job]] = num[NUM_PASSES]


@njit(cache=True, nogil=True)
def learn_late(q, kinds, t):
    """Take run times into account that have become known after their jobs ended here."""
    count = t.num[NUM_LATE]
    if count == 0 or t.num[ARRIVED] == 0:
        return
    now = q.submit[t.num[ARRIVED] - 1]
    t.num[NUM_LATE] = 0
    for i in range(count):
        job = t.late[i]
        if t.is_known[job]:
            learn(q, kinds, t.past, t.records, t.changed, t.num, job, now)
        else:
            t.late[t.num[NUM_LATE]] = job
            t.num[NUM_LATE] += 1


@njit(cache=True, nogil=True)
def renew(q, kinds, num_procs, net, forecaster, s, past, records, changed, num, now, start, has_beliefs):
    """Look again at jobs of whose users something new is known.

    The forecaster takes its time, so that it is not asked again before a job has waited for some more of its time.

    Parameters
    ----------
    has_beliefs
        Whether the network goes by any. If not, another look would find the same and is only noted.
    """
    pause = PAUSE if net.foresight[0] > 0.0 else 0.0
    for k in range(s.size[0]):
        user = s.user[k]
        if records.due[user] <= now:
            records.due[user] = np.inf
            changed[user] = num[NUM_PASSES]
        if s.stamp[k] < changed[user] and now - s.looked[k] >= pause * (now - s.submit[k]):
            s.stamp[k] = num[NUM_PASSES]
            s.looked[k] = now
            if has_beliefs:
                look(q, kinds, num_procs, net, forecaster, s, past, records, k, num[ARRIVED], now, start)


@njit(cache=True, nogil=True)
def advance(q, kinds, num_procs, net, t, until, start):
    """Go on until so many jobs have arrived; beyond the last, until all have ended. Who has not started has -1."""
    n = q.submit.shape[0]
    # Taken apart here, once: to take a tuple from a tuple counts a reference to each of its arrays.
    r, x, s, past, records, forecaster = t.running, t.expected, t.seen, t.past, t.records, t.forecaster
    num = t.num
    changed, left, is_known, late = t.changed, t.left, t.is_known, t.late
    has_beliefs, lazily = goes_by_beliefs(net), is_lazy(net)
    learn_late(q, kinds, t)
    while num[ARRIVED] < min(until, n) or (until > n and r.size[0] > 0):
        now = r.end[0] if r.size[0] > 0 else np.inf
        if num[ARRIVED] < n:
            now = min(now, q.submit[num[ARRIVED]])
        num[NUM_PASSES] += 1
        while r.size[0] > 0 and r.end[0] == now:
            job = r.job[0]
            end_first(r, 0.0, False)
            forget(x, job)
            num[FREE] += q.procs[job]
            if is_known[job]:
                learn(q, kinds, past, records, changed, num, job, now)
            else:
                late[num[NUM_LATE]] = job
                num[NUM_LATE] += 1
        while num[ARRIVED] < n and q.submit[num[ARRIVED]] == now:
            k = join(s, q, num[ARRIVED], num[NUM_PASSES])
            num[ARRIVED] += 1
            look(q, kinds, num_procs, net, forecaster, s, past, records, k, num[ARRIVED], now, start)
        if not any_fits(s, num[FREE]):
            continue
        renew(q, kinds, num_procs, net, forecaster, s, past, records, changed, num, now, start, has_beliefs)
        if not lazily:
            fill_scores(s, net, now, num[FREE], num_procs)
            num[NUM_SCORED] += s.size[0]
        num[FREE] = start_jobs(q, net, r, x, s, left, num[FREE], now, start, lazily)


@njit(cache=True, nogil=True)
def start_jobs(q, net, r, x, s, left, free, now, start, lazily):
    """Start what is first while it fits, then what may pass the head; return the processors that stay free.

    Parameters
    ----------
    lazily
        Whether scores are computed as far as needed (``mars_lazy``), or have been for everybody.
    """
    count = 0
    head = leader(s, net, now) if lazily else first_of(s)
    while head >= 0 and s.need[head] <= free:
        free -= begin(q, r, x, s, head, now, start)
        left[count] = head
        count += 1
        head = leader(s, net, now) if lazily else first_of(s)
    if head >= 0 and free > 0 and any_fits(s, free):
        put_in_order(x)
        if net.trust[0] > 0.0:
            put_off(q, x, start, now)
            put_in_order(x)
        shadow, extra = shadow_at(x, s.need[head] - free, now, now)
        k = (
            follower(s, net, head, free, now, shadow, extra)
            if lazily
            else next_of(s, net, head, free, now, shadow, extra)
        )
        while k >= 0:
            if now + s.length[k] > shadow:
                extra -= s.procs[k]
            free -= begin(q, r, x, s, k, now, start)
            left[count] = k
            count += 1
            if lazily:
                k = follower(s, net, head, free, now, shadow, extra)
            else:
                k = next_of(s, net, head, free, now, shadow, extra)
    sort_few(left, count)
    for i in range(count - 1, -1, -1):
        move_last(s, left[i], net.bias.shape[0])
    return free


@njit(cache=True, nogil=True)
def put_off(q, x, start, now):
    """Expect jobs that have outlived a belief at the end of their estimates; the list must be in order."""
    k = 0
    while k < x.num[SIZE] and x.entry[k].end <= now:
        job = x.entry[k].job
        late = start[job] + q.estimate[job]
        if x.entry[k].procs > 0 and not x.gone[job] and late > now:
            expect(x, job, late, x.entry[k].procs)
            x.entry[k].procs = 0
        k += 1


@njit(cache=True, nogil=True)
def begin(q, r, x, s, k, now, start):
    """Start a waiting job; return its processors."""
    job = s.job[k]
    start[job] = now
    begin_job(r, job, now + q.run[job], 0.0, 0, False)
    expect(x, job, now + s.length[k], s.procs[k])
    s.score[k] = -np.inf
    s.top[k] = -np.inf
    return s.procs[k]


@njit(cache=True, nogil=True)
def sort_few(left, count):
    """Sort the first places by insertion: mostly one or two jobs start at a time."""
    for i in range(1, count):
        k = left[i]
        j = i
        while j > 0 and left[j - 1] > k:
            left[j] = left[j - 1]
            j -= 1
        left[j] = k


@njit(cache=True, nogil=True)
def any_fits(s, free):
    """Say whether any job that waits fits."""
    fits = False
    for k in range(s.size[0]):
        fits |= s.need[k] <= free
    return fits


@njit(cache=True, nogil=True)
def first_of(s):
    """Return the place of the highest score, the lower job where equal; -1 where all have started."""
    best = -1
    most = -np.inf
    for k in range(s.size[0]):
        if s.score[k] > most or (s.score[k] == most and best >= 0 and s.job[k] < s.job[best]):
            most = s.score[k]
            best = k
    return best


@njit(cache=True, nogil=True)
def next_of(s, net, head, free, now, shadow, extra):
    """Return the best job that fits, would not delay the head and may pass it; -1 where there is none."""
    best = -1
    most = -np.inf
    for k in range(s.size[0]):
        if (
            s.need[k] <= free
            and k != head
            and s.score[k] >= most
            and s.score[k] > -np.inf
            and (now + s.length[k] <= shadow or s.procs[k] <= extra)
            and (s.score[k] > most or s.job[k] < s.job[best])
            and may_pass(s, net, k, now)
        ):
            most = s.score[k]
            best = k
    return best


@njit(cache=True, nogil=True)
def weigh(cost, first, last, fade, share, length, means):
    """Fill the means of stretches that end with the last job; return the sum of all jobs, each times its weight.

    Parameters
    ----------
    cost
        Of all jobs; [n].
    first, last
        The jobs that count: from the one on, up to the other.
    fade
        The weight of each job by its place before the last one, that of the last one last.
    share
        What each counts within its stretch and the sum, from the first on; empty where all count the same.
    length
        Of a stretch; [means] must hold as many as are whole. What is left over at the beginning is in none.
    """
    total = 0.0
    begin = last - means.shape[0] * length
    for job in range(first, begin):
        total += term(cost, share, job, first) * fade[fade.shape[0] - (last - job)]
    for k in range(means.shape[0]):
        part = 0.0
        for job in range(begin + k * length, begin + (k + 1) * length):
            one = term(cost, share, job, first)
            part += one
            total += one * fade[fade.shape[0] - (last - job)]
        means[k] = part / length
    return total


@njit(cache=True, nogil=True)
def term(cost, share, job, first):
    """Return what a job counts."""
    return cost[job] * share[job - first] if share.shape[0] > 0 else cost[job]

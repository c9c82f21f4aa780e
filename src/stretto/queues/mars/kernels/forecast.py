"""What a waiting job is believed to run, by a small network that has seen the pasts of many queues.

Users submit in series, repeat themselves, and change their minds: a hundred jobs that look alike, the first fifty of
which run for days while the others crash at once. Means over jobs of the same kind say the same of all of them. So a
network is shown what is known at the moment: how the last jobs of the same kinds ended, how long the nearest ones in
the same series ran or have been running, and when. It says three things about the ratio of run time to estimate, all
as logarithms: the mean logarithm, and the logarithms of the mean and of the harmonic mean.

The ratio, not the run time: ratios mean the same on all machines, so what was learned on some logs holds on others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.forecast import BOUND, DISCOUNT
from stretto.queues.mars.parameters import MARS_PARAMETERS as P

#: Columns of ``kinds``: what each kind of jobs is seen by.
NUM_KINDS = 5
#: Of a kind: mean and spread of the logarithm, harmonic mean, number.
PER_KIND = 4
#: Ways to go from a job to others: back among exactly the same, back and forth in its series, back among all of a user.
NUM_CHAINS = 4
PER_CHAIN = 10
NUM_USER = 4
NUM_INPUTS = 2 + NUM_KINDS * PER_KIND + NUM_CHAINS * PER_CHAIN + NUM_USER
#: What the network says.
TYPICAL, MEAN, HARMONIC = range(3)
NUM_HEADS = 3
#: No input is larger.
CLIP = P.input_clip
LEAK = P.leak
#: Jobs on a chain that are looked at, and the weight from one to the next.
REACH, FADE = P.chain_jobs, P.chain_fade
#: What the latest job of a user counts in the mean of those that ended before it.
_FRESH = P.fresh_share
#: Jobs that run are looked at anew when they have run for so much of their time once more, and so long at least.
_AGAIN, _AGAIN_S = P.again_part, P.again_s
#: The logarithm of the time since the last submission or end of a user who had none.
_LONG_AGO = P.long_ago
#: Where run times have been this close to estimates, as a root mean square of logarithms, those are believed in part.
EXACT = P.exact_spread
#: The least logarithm of a ratio that is told.
_LEAST = P.least_log_ratio


class Forecaster(NamedTuple):
    """Weights; H hidden units."""

    first: np.ndarray  # [NUM_INPUTS, H]
    bias: np.ndarray  # [H]
    out: np.ndarray  # [H, NUM_HEADS]
    out_bias: np.ndarray  # [NUM_HEADS]


class Chains(NamedTuple):
    """Who is whose neighbour: the same under every order, so that all candidates share it; n jobs."""

    link: np.ndarray  # [NUM_CHAINS, n] the next job on each way; -1 = none
    pause: np.ndarray  # [n] logarithm of the time since the user's submission before


class Records(NamedTuple):
    """What has ended so far, and who is whose neighbour; n jobs, C kinds, U users."""

    link: np.ndarray  # [NUM_CHAINS, n] the next job on each way; -1 = none
    pause: np.ndarray  # [n] logarithm of the time since the user's submission before
    log_ratio: np.ndarray  # [n] of run time to estimate; NaN until a job has ended
    kind: np.ndarray  # [C, 5] discounted: number, logarithm, its square, one over the ratio; then the plain number
    seen: np.ndarray  # [C, PER_KIND] what the network sees of it
    last: np.ndarray  # [U, 3] log ratio of the last to end, their fresh mean, and when; -1 = never
    due: np.ndarray  # [U] when jobs that run will say something new of those that wait
    x: np.ndarray  # [NUM_INPUTS] scratch
    z: np.ndarray  # [H] scratch
    said: np.ndarray  # [NUM_HEADS] scratch


@njit(cache=True, nogil=True)
def new_records(q, num_kinds, num_hidden):
    """Return records of a queue in which nothing has ended."""
    return records_along(q, chains_of(q), num_kinds, num_hidden)


@njit(cache=True, nogil=True)
def chains_of(q):
    """Return the ways from each job to others."""
    n = q.submit.shape[0]
    procs = q.procs.astype(np.int64)
    user = q.user.astype(np.int64)
    width = procs.max() + 1
    octave = np.floor(np.log2(np.maximum(1.0, q.estimate))).astype(np.int64)
    link = np.full((NUM_CHAINS, n), -1, np.int32)
    by_estimate = np.argsort(q.estimate, kind="mergesort")
    rank = np.zeros(n, np.int64)
    for i in range(1, n):
        more = q.estimate[by_estimate[i]] != q.estimate[by_estimate[i - 1]]
        rank[by_estimate[i]] = rank[by_estimate[i - 1]] + (1 if more else 0)
    connect((user * (rank.max() + 1) + rank) * width + procs, link[0], link[0], False)
    connect((user * 64 + octave) * width + procs, link[1], link[2], True)
    connect(user, link[3], link[3], False)
    pause = np.full(n, _LONG_AGO)
    for job in range(n):
        if link[3, job] >= 0:
            pause[job] = np.log(1.0 + max(0.0, q.submit[job] - q.submit[link[3, job]]))
    return Chains(link, pause)


@njit(cache=True, nogil=True)
def records_along(q, chains, num_kinds, num_hidden):
    """Return records of a queue in which nothing has ended, with chains that others may share."""
    num_users = q.user.max() + 1
    last = np.zeros((num_users, 3))
    last[:, 2] = -1.0
    return Records(
        chains.link,
        chains.pause,
        np.full(q.submit.shape[0], np.nan),
        np.zeros((num_kinds, 5)),
        np.zeros((num_kinds, PER_KIND)),
        last,
        np.full(num_users, np.inf),
        np.zeros(NUM_INPUTS),
        np.zeros(num_hidden),
        np.zeros(NUM_HEADS),
    )


@njit(cache=True, nogil=True)
def connect(key, before, after, has_after):
    """Link each job with those of the same key before and after it."""
    order = np.argsort(key, kind="mergesort")
    for i in range(1, len(order)):
        if key[order[i]] == key[order[i - 1]]:
            before[order[i]] = order[i - 1]
            if has_after:
                after[order[i - 1]] = order[i]


@njit(cache=True, nogil=True)
def note_end(q, c, kinds, job, now):
    """Remember how a job ended."""
    ratio = np.log(max(BOUND, q.run[job]) / max(BOUND, q.estimate[job]))
    sharp = np.exp(-ratio)
    c.log_ratio[job] = ratio
    for kind in kinds:
        of = c.kind[kind]
        of[0] = DISCOUNT * of[0] + 1.0
        of[1] = DISCOUNT * of[1] + ratio
        of[2] = DISCOUNT * of[2] + ratio * ratio
        of[3] = DISCOUNT * of[3] + sharp
        of[4] += 1.0
        mean = of[1] / of[0]
        x = c.seen[kind]
        x[0] = mean / 2.0
        x[1] = np.sqrt(max(0.0, of[2] / of[0] - mean * mean))
        x[2] = -np.log(of[3] / of[0]) / 3.0
        x[3] = np.log(1.0 + of[4]) / 4.0
    user = c.last[q.user[job]]
    user[1] = ratio if user[2] < 0.0 else (1.0 - _FRESH) * user[1] + _FRESH * ratio
    user[0] = ratio
    user[2] = now


@njit(cache=True, nogil=True)
def walk(q, c, link, job, num_arrived, now, start, x):
    """Describe the jobs on one way from a job; return when those that run should be looked at anew."""
    nearest, nearness, gap = 0.0, 0.0, 1.0
    total, mean, least = 0.0, 0.0, 0.0
    longest, running = 0.0, 0.0
    waiting = 0
    weight = 1.0
    again = np.inf
    at = link[job]
    for _ in range(REACH):
        if at < 0 or at >= num_arrived:
            break
        ratio = c.log_ratio[at]
        if not np.isnan(ratio):
            if nearness == 0.0:
                nearest, nearness = ratio, weight
                gap = 1.0 + abs(q.submit[at] - q.submit[job])
            total += weight
            mean += weight * ratio
            least = min(least, ratio)
        elif start[at] >= 0.0:
            elapsed = now - start[at]
            longest = max(longest, max(BOUND, elapsed) / max(BOUND, q.estimate[at]))
            if running == 0.0:
                running = weight
            again = min(again, now + max(_AGAIN_S, _AGAIN * elapsed))
        elif nearness == 0.0 and running == 0.0:
            waiting += 1
        weight *= FADE
        at = link[at]
    x[0] = nearest / 2.0
    x[1] = nearness
    x[2] = nearness * nearest / 2.0
    x[3] = np.log(gap) / 5.0 if nearness > 0.0 else 0.0
    x[4] = mean / total / 2.0 if total > 0.0 else 0.0
    x[5] = total / 4.0
    x[6] = least / 3.0
    x[7] = np.log(longest) / 3.0 if running > 0.0 else 0.0
    x[8] = running
    x[9] = np.log(1.0 + waiting) / 2.0 if waiting > 0 else 0.0
    return again


@njit(cache=True, nogil=True)
def describe_past(q, c, kinds, job, num_arrived, now, start, x):
    """Fill in what the network sees of a job; return when it should be looked at anew."""
    x[0] = np.log(max(1.0, q.estimate[job])) / 4.0 - 2.0
    x[1] = np.log(q.procs[job]) / 3.0 - 1.0
    at = 2
    for kind in kinds:
        for i in range(PER_KIND):
            x[at + i] = c.seen[kind, i]
        at += PER_KIND
    again = np.inf
    for way in range(NUM_CHAINS):
        again = min(again, walk(q, c, c.link[way], job, num_arrived, now, start, x[at : at + PER_CHAIN]))
        at += PER_CHAIN
    last = c.last[q.user[job]]
    x[at] = c.pause[job] / 8.0
    x[at + 1] = last[0] / 2.0
    x[at + 2] = last[1] / 2.0
    x[at + 3] = (np.log(1.0 + max(0.0, now - last[2])) if last[2] >= 0.0 else _LONG_AGO) / 8.0
    for f in range(NUM_INPUTS):
        x[f] = min(CLIP, max(-CLIP, x[f]))
    return again


@njit(cache=True, nogil=True)
def forecast_share(c, kinds):
    """Return what the network counts beside the estimate: nothing where estimates have been exact so far."""
    of = c.kind[kinds[-1]]  # of all jobs
    if of[0] == 0.0:
        return 1.0
    return min(1.0, np.sqrt(of[2] / of[0]) / EXACT)


@njit(cache=True, nogil=True)
def foresee(f, q, c, kinds, job, num_arrived, now, start):
    """Return the forecast run time of a waiting job: ``said`` of the records, as logarithms of ratios."""
    again = describe_past(q, c, kinds, job, num_arrived, now, start, c.x)
    user = q.user[job]
    c.due[user] = min(c.due[user], again)
    num_hidden = f.bias.shape[0]
    z = c.z
    for h in range(num_hidden):
        z[h] = f.bias[h]
    for i in range(NUM_INPUTS):
        value = c.x[i]
        if value != 0.0:
            for h in range(num_hidden):  # all units at once: several are computed together
                z[h] += value * f.first[i, h]
    for head in range(NUM_HEADS):
        c.said[head] = f.out_bias[head]
    for h in range(num_hidden):
        unit = max(z[h], LEAK * z[h])
        for head in range(NUM_HEADS):
            c.said[head] += unit * f.out[h, head]
    certain = forecast_share(c, kinds)
    for head in range(NUM_HEADS):
        c.said[head] = certain * min(0.0, max(_LEAST, c.said[head]))


@njit(cache=True, nogil=True)
def collect(q, kinds, start, at_submission, at_start, x, of):
    """Show all that the network would have seen of some jobs when they were submitted or started.

    Parameters
    ----------
    start
        When each job started; all have.
    at_submission, at_start
        Which jobs are wanted at which of these moments.
    x, of
        Filled: inputs, and the job of each row.
    """
    n = q.submit.shape[0]
    c = new_records(q, kinds.max() + 1, 1)
    started = np.full(n, -1.0)
    end = start + q.run
    by_end = np.argsort(end, kind="mergesort")
    by_start = np.argsort(start, kind="mergesort")
    arrived, begun, done, row = 0, 0, 0, 0
    while begun < n:
        ends = end[by_end[done]]
        comes = q.submit[arrived] if arrived < n else np.inf
        begins = start[by_start[begun]]
        if ends <= comes and ends <= begins:
            job = by_end[done]
            done += 1
            note_end(q, c, kinds[job], job, ends)
        elif comes <= begins:
            job = arrived
            arrived += 1
            if at_submission[job]:
                describe_past(q, c, kinds[job], job, arrived, comes, started, x[row])
                of[row] = job
                row += 1
        else:
            job = by_start[begun]
            begun += 1
            if at_start[job]:
                describe_past(q, c, kinds[job], job, arrived, begins, started, x[row])
                of[row] = job
                row += 1
            started[job] = begins
    return row

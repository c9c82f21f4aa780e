"""Go through a log from moment to moment, with nothing but what was known then, and play futures there."""

from __future__ import annotations

from stretto.core.kernels.compile import njit
from stretto.queues.forecasts.kernels.online import foresee, remember
from stretto.queues.when.kernels.future import play
from stretto.queues.when.kernels.moment import by_estimates, draw_arrivals, draw_runs

# Places of ``place``.
DONE = 0  # jobs that had ended
ARRIVED = 1  # jobs that had been submitted
ACTIVE = 2  # jobs that ran or waited


@njit(cache=True, nogil=True)
def end_until(jobs, f, by_end, place, now):
    """Tell the forecaster of all jobs that had ended by a time."""
    while place[DONE] < by_end.shape[0] and jobs.end[by_end[place[DONE]]] <= now:
        job = by_end[place[DONE]]
        remember(f, job, jobs.end[job] - jobs.start[job], jobs.end[job])
        place[DONE] += 1


@njit(cache=True, nogil=True)
def go_to(jobs, f, by_end, place, active, now):
    """Go forward to a moment: tell the forecaster what had been submitted and had ended, and note who was there.

    Parameters
    ----------
    by_end
        Jobs whose end is known, by end.
    active
        Jobs that run or wait, by submission; the first ``place[ACTIVE]`` are in force.
    """
    before = place[ARRIVED]
    while place[ARRIVED] < jobs.submit.shape[0] and jobs.submit[place[ARRIVED]] <= now:
        job = place[ARRIVED]
        end_until(jobs, f, by_end, place, jobs.submit[job])
        foresee(f, job, jobs.submit[job], 0)
        place[ARRIVED] += 1
    end_until(jobs, f, by_end, place, now)
    count = 0
    for k in range(place[ACTIVE]):
        if jobs.end[active[k]] > now:
            active[count] = active[k]
            count += 1
    for job in range(before, place[ARRIVED]):
        if jobs.end[job] > now:
            active[count] = job
            count += 1
    place[ACTIVE] = count


@njit(cache=True, nogil=True)
def play_futures(jobs, f, num_procs, code, easy, arrived, now, m, stage, first, last, state, wait):
    """Fill in when places of a moment start, in seconds from now: by estimates in row 0, then one row per future."""
    by_estimates(m)
    play(m, stage, num_procs, code, easy, first, last)
    wait[0] = stage.start[first:last]
    for i in range(1, wait.shape[0]):
        draw_runs(jobs, f, m, now, state)
        draw_arrivals(jobs, f, code, m, arrived, now, state)
        play(m, stage, num_procs, code, easy, first, last)
        wait[i] = stage.start[first:last]

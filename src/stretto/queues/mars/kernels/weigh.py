"""Mean costs of many jobs, over all of them and over stretches, in one pass without copies."""

from __future__ import annotations

from stretto.core.kernels.compile import njit


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

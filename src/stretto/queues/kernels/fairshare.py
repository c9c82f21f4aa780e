"""Fair share: what users have used, with a half-life, against equal shares."""

from __future__ import annotations

import math

from stretto.core.kernels.compile import njit

LN_2 = math.log(2.0)


@njit(cache=True, nogil=True)
def decayed(rules, s, entry):
    """Return a user's usage (the last entry: everyone's) as it counts now."""
    return s.user[entry].usage * math.exp(-LN_2 * ((s.moment[0].now - s.user[entry].used) / rules.half_life))


@njit(cache=True, nogil=True)
def charge(rules, s, user, proc_s):
    """Add processor-seconds to a user and to the sum."""
    total = s.user.shape[0] - 1
    s.user[user].usage = decayed(rules, s, user) + proc_s
    s.user[user].used = s.moment[0].now
    s.user[total].usage = decayed(rules, s, total) + proc_s
    s.user[total].used = s.moment[0].now


@njit(cache=True, nogil=True)
def fair_share(rules, s, user):
    """Return the factor 2^(-usage/share): one for a user without usage, a half for one at the fair share."""
    num_users = s.user.shape[0] - 1
    total = decayed(rules, s, num_users)
    if total <= 0.0:
        return 1.0
    share = decayed(rules, s, user) / total
    return math.exp(-LN_2 * (share * num_users))


@njit(cache=True, nogil=True)
def multifactor_key(q, rules, s, job, wait, all_procs):
    """Return minus the priority: age, size and fair share, weighted."""
    return -(
        rules.age * min(1.0, wait / rules.max_age)
        + rules.size * (q.procs[job] / all_procs)
        + rules.fair_share * fair_share(rules, s, q.user[job])
    )

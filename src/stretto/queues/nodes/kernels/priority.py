"""The keys of waiting jobs, and Slurm's classic fair share over a tree of accounts.

``https://slurm.schedmd.com/classic_fair_share.html``: with the normalized shares S of a user and the effective usage
U_E, the factor is 2^(-U_E / S). The effective usage of an account at the top is its usage U_A over that of everyone;
further below it is U_A + (U_E of the parent - U_A) * shares / shares of all siblings. Slurm's newer
default, Fair Tree, ranks users instead. Usage is counted in processor-seconds when a job ends.
"""

from __future__ import annotations

import math

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.codes import MULTIFACTOR
from stretto.queues.kernels.keys import FIRST_DYNAMIC, dynamic_key, static_key
from stretto.queues.nodes.kernels.arrays import INNER

LN_2 = math.log(2.0)
#: Priorities are rounded to a millionth, so that what is equal by the formula is equal as a number.
STEPS = 1e6


@njit(**INNER)
def faded(half_life, usage, used_at, member, now):
    """Return the usage of a member as it counts now."""
    return usage[member] * math.exp(-LN_2 * ((now - used_at[member]) / half_life))


@njit(**INNER)
def charge(rules, usage, used_at, member, now, proc_s):
    """Add processor-seconds to a member, all accounts above it, and the sum."""
    total = usage.shape[0] - 1
    usage[total] = faded(rules.half_life, usage, used_at, total, now) + proc_s
    used_at[total] = now
    while member >= 0:
        usage[member] = faded(rules.half_life, usage, used_at, member, now) + proc_s
        used_at[member] = now
        member = rules.above[member]


@njit(**INNER)
def effective_usage(rules, usage, used_at, member, now, total):
    """Return the effective usage of a member: a part of what its account uses counts as its own."""
    actual = faded(rules.half_life, usage, used_at, member, now) / total
    parent = rules.above[member]
    weight = 1.0
    found = 0.0
    # U_E = U_A (1 - a) + a U_E(parent), unrolled up to the top, where U_E = U_A.
    while parent >= 0:
        found += weight * (1.0 - rules.among[member]) * actual
        weight *= rules.among[member]
        member = parent
        actual = faded(rules.half_life, usage, used_at, member, now) / total
        parent = rules.above[member]
    return found + weight * actual


@njit(**INNER)
def fair_share(rules, usage, used_at, member, now):
    """Return the factor: one without usage, a half at the fair share, zero for who has used without any share."""
    total = faded(rules.half_life, usage, used_at, usage.shape[0] - 1, now)
    if total <= 0.0:
        return 1.0
    used = effective_usage(rules, usage, used_at, member, now, total)
    if used <= 0.0:
        return 1.0
    if rules.share[member] <= 0.0:
        return 0.0
    return math.exp(-LN_2 * (used / rules.share[member]))


@njit(**INNER)
def key_of(q, rules, s, job):
    """Return a job's key now; lower keys come first."""
    strategy, now = rules.strategy, s.clock[0]
    if strategy == MULTIFACTOR:
        key = rules.age * min(1.0, (now - s.ready[job]) / rules.max_age) + rules.fixed[job]
        if rules.fair_share > 0.0:
            key += rules.fair_share * fair_share(rules, s.usage, s.used_at, rules.member[job], now)
        return -math.floor(key * STEPS + 0.5)
    if strategy >= FIRST_DYNAMIC:
        return dynamic_key(strategy, now, s.ready[job], q.estimate[job], q.procs[job])
    return static_key(strategy, job, q.submit[job], q.estimate[job], q.procs[job], q.deadline[job])

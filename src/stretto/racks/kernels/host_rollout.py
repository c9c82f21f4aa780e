"""Plays the waiting tasks of a host to their end, by the contention law and a simple rule: the price of a decision."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit

IDLE = -1


@njit(cache=True, nogil=True)
def fill_rates(coupling, foreign, demand, share, near, idle_busy, category, rate):
    """Fill in the alone-seconds of work that each core does in a second, 0 where nothing of ours runs."""
    num = share.shape[0]
    total = 0.0
    for p in range(num):
        if category[p] != IDLE:
            total += demand[category[p]] * share[p]
    for p in range(num):
        rate[p] = 0.0
        if category[p] == IDLE:
            continue
        busy = 0.0
        for q in range(num):
            if q != p:
                busy += near[p, q] * (1.0 if category[q] != IDLE else idle_busy[q])
        own = demand[category[p]]
        rate[p] = share[p] / (1.0 + coupling * busy + own * (total - own * share[p] + foreign))


@njit(cache=True, nogil=True)
def value(category, work, weight, rate):
    """Return the weight of tasks that end in a second at these rates."""
    total = 0.0
    for p in range(category.shape[0]):
        if category[p] != IDLE:
            total += rate[p] * weight[p] / work[p]
    return total


@njit(cache=True, nogil=True)
def best_start(law, host, tasks, core, category, work, weight, head, rate):
    """Return the category whose next task on this core ends the most weight per second, and that value; -1 for none."""
    coupling, foreign, demand = law
    share, near, idle_busy = host
    ptr, task_work, task_weight = tasks
    best, best_value = -1, -1.0
    for k in range(demand.shape[0]):
        task = head[k]
        if task >= ptr[k + 1] or not task_work[task, core] < np.inf:
            continue
        category[core], work[core], weight[core] = k, task_work[task, core], task_weight[task]
        fill_rates(coupling, foreign, demand, share, near, idle_busy, category, rate)
        found = value(category, work, weight, rate)
        if found > best_value:
            best, best_value = k, found
    category[core] = IDLE
    return best, best_value


@njit(cache=True, nogil=True)
def price(law, host, tasks, running, order, first_core, first_category):
    """Return the weighted sum of completion times when a core first gets a task of a category.

    After that each core that becomes idle starts what ends the most weight per second, or stays idle where nothing
    improves on that, or where the other cores would have done all that waits before the task ended there.

    Parameters
    ----------
    law
        Coupling, foreign demand, and demand by category [K].
    host
        By core [P]: the share that is left for a task, nearness [P, P], and how busy it is without our tasks.
    tasks
        Waiting tasks by category: pointers [K+1], alone-seconds on each core [N, P], weights [N].
    running
        By core [P]: category or -1, alone-seconds left, alone-seconds in all, weight.
    order
        Cores in the order in which they are filled.
    """
    coupling, foreign, demand = law
    share, near, idle_busy = host
    num = share.shape[0]
    category, left, work, weight = running[0].copy(), running[1].copy(), running[2].copy(), running[3].copy()
    rate, head = np.zeros(num), tasks[0][:-1].copy()
    _start(tasks, head, first_core, first_category, category, left, work, weight)
    now, cost = 0.0, 0.0
    while True:
        for core in order:
            if category[core] != IDLE:
                continue
            fill_rates(coupling, foreign, demand, share, near, idle_busy, category, rate)
            present = value(category, work, weight, rate)
            k, reached = best_start(law, host, tasks, core, category, work, weight, head, rate)
            if k >= 0 and reached > present and _is_in_time(law, host, tasks, core, k, category, left, head, rate):
                _start(tasks, head, core, k, category, left, work, weight)
        fill_rates(coupling, foreign, demand, share, near, idle_busy, category, rate)
        step = np.inf
        for p in range(num):
            if category[p] != IDLE:
                step = min(step, left[p] / rate[p])
        if step == np.inf:
            return cost
        now += step
        for p in range(num):
            if category[p] != IDLE:
                left[p] -= rate[p] * step
                if left[p] <= 1e-9 * work[p]:
                    cost += weight[p] * now
                    category[p] = IDLE


@njit(cache=True, nogil=True)
def _is_in_time(law, host, tasks, core, k, category, left, head, rate):
    """Say whether the next task of a category ends on a core before the busy ones could do all that is left."""
    coupling, foreign, demand = law
    share, near, idle_busy = host
    ptr, task_work, _ = tasks
    category[core] = k
    fill_rates(coupling, foreign, demand, share, near, idle_busy, category, rate)
    category[core] = IDLE
    speed, rest = 0.0, 0.0
    for q in range(share.shape[0]):
        if category[q] != IDLE:
            speed += rate[q]
            rest += left[q]
    for j in range(demand.shape[0]):
        for task in range(head[j], ptr[j + 1]):
            rest += task_work[task].min()
    return task_work[head[k], core] * speed <= rest * rate[core]


@njit(cache=True, nogil=True)
def _start(tasks, head, core, k, category, left, work, weight):
    task = head[k]
    head[k] += 1
    category[core] = k
    left[core] = work[core] = tasks[1][task, core]
    weight[core] = tasks[2][task]

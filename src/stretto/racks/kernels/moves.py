"""What can be done in a rack, and doing it.

Actions are numbered: execute kernel k on processor p is k * P + p, configure the q-th FPGA for k is K * P + k * Q + q,
and the last one waits for the next event.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.racks.kernels.state import ARRIVED, CONFIGURING, IDLE, READY, RUNNING, TOTAL, is_before


@njit(cache=True, nogil=True)
def act(a, w, s, b, action):
    """Do what an action says; return whether it was a valid one (an invalid one does nothing)."""
    num_kernels, num_procs = a.duration_s.shape
    num_fpgas = a.fpgas.shape[0]
    i = s.instance[b]
    if action == num_kernels * (num_procs + num_fpgas):
        return True
    if action < 0 or action > num_kernels * (num_procs + num_fpgas):
        return False
    if action < num_kernels * num_procs:
        k, p = action // num_procs, action % num_procs
        if not can_execute(a, s, b, k, p):
            return False
        task = s.head[b, k]
        s.task[b, p] = task
        s.left_s[b, p] = a.duration_s[k, p] * w.scale[i, task]
        s.demand[b, p, :] = a.demand[k, p]
        s.status[b, task] = RUNNING
        s.proc[b, task] = p
        s.start_s[b, task] = s.now_s[b]
        s.num_ready[b, k] -= 1
        _find_head(w, s, b, k)
    else:
        rest = action - num_kernels * num_procs
        k, p = rest // num_fpgas, a.fpgas[rest % num_fpgas]
        if not can_configure(a, s, b, k, p):
            return False
        s.task[b, p] = CONFIGURING
        s.left_s[b, p] = a.reconfigure_s[p]
        s.demand[b, p, :] = 0.0
        s.config[b, p] = k
    s.is_on[b, p] = True
    s.is_stale[b, a.proc_machine[p]] = True
    return True


@njit(cache=True, nogil=True)
def _find_head(w, s, b, k):
    i = s.instance[b]
    head = -1
    if s.num_ready[b, k] > 0:
        for task in range(w.kernel.shape[1]):
            if s.status[b, task] == READY and w.kernel[i, task] == k and (head < 0 or is_before(w, i, task, head)):
                head = task
    s.head[b, k] = head


@njit(cache=True, nogil=True)
def can_execute(a, s, b, k, p):
    """Say whether the next task of kernel k may start on p now."""
    if s.task[b, p] != IDLE or s.head[b, k] < 0 or a.duration_s[k, p] == np.inf:
        return False
    return a.reconfigure_s[p] == 0.0 or s.config[b, p] == k


@njit(cache=True, nogil=True)
def can_configure(a, s, b, k, p):
    """Say whether FPGA p may be given kernel k now.

    It is idle, a task of k waits, and none of its present kernel does: or it could be reconfigured for ever.
    """
    if s.task[b, p] != IDLE or s.head[b, k] < 0 or a.duration_s[k, p] == np.inf:
        return False
    present = s.config[b, p]
    return present < 0 or (present != k and s.head[b, present] < 0)


@njit(cache=True, nogil=True)
def can_wait(s, b):
    """Say whether an event is to come."""
    if s.num[b, ARRIVED] < s.num[b, TOTAL]:
        return True
    for p in range(s.task.shape[1]):
        if s.task[b, p] != IDLE:
            return True
    return False


@njit(cache=True, nogil=True)
def fill_mask(a, s, b, mask):
    """Fill which actions are valid; return whether there is anything to decide besides waiting."""
    num_kernels, num_procs = a.duration_s.shape
    task, head, config, num_fpgas = s.task[b], s.head[b], s.config[b], a.fpgas.shape[0]
    is_due = False
    mask[:] = False
    for k in range(num_kernels):  # as can_execute and can_configure, whose calls with so many arrays are not free
        if head[k] < 0:
            continue
        for p in range(num_procs):
            if task[p] == IDLE and a.duration_s[k, p] < np.inf and (a.reconfigure_s[p] == 0.0 or config[p] == k):
                mask[k * num_procs + p] = True
                is_due = True
        for q in range(num_fpgas):
            p = a.fpgas[q]
            is_open = config[p] < 0 or (config[p] != k and head[config[p]] < 0)
            if task[p] == IDLE and a.duration_s[k, p] < np.inf and is_open:
                mask[num_kernels * num_procs + k * num_fpgas + q] = True
                is_due = True
    mask[mask.shape[0] - 1] = can_wait(s, b)
    return is_due

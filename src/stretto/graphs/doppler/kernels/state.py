"""What a Doppler episode reads and writes: the problem's fixed side, the network, the rules, the record.

Hot functions are compiled without reference counting (``_nrt=False``): with so many arrays in tuples, counting
took two thirds of the time. They may therefore not allocate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.heap import pop_int, push_int
from stretto.core.kernels.shapes import Flags, Floats, Ints, Longs, Singles, Words
from stretto.graphs.doppler.kernels.memory import hold_objects

#: Features of a candidate for SEL; the first five are the paper's.
NUM_CANDIDATE_FEATURES = 10
#: Features of a (task, device) pair for PLC; the first five are the paper's.
NUM_DEVICE_FEATURES = 15

#: Ways to take an action from scores.
SAMPLE, GREEDY, EPSILON = 0, 1, 2
#: How the task is selected, and how its device.
LEARNED, BY_LEVEL = 0, 1
EARLIEST, LOOKAHEAD = 1, 2
#: What is recorded as the target of each step: the action taken, or what a teacher would do there.
TAKEN, TEACH_EARLIEST, TEACH_LOOKAHEAD = 0, 1, 2


class EpisodeInputs(NamedTuple):
    """What does not change during an episode, besides the problem's own arrays."""

    place: Ints  # [n] i32 position by falling b-level: 0 comes first
    at_place: Ints  # [n] i32 the task at each position
    level: Floats  # [n] f64 b-level
    raw: Floats  # [n, 5] f64 the paper's static features: compute, b-level, t-level, in, out
    weight: Floats  # [n] f64 mean duration
    object_move_s: Floats  # [O] f64 mean transfer
    twin: Ints  # [m] i32 lowest device that is interchangeable with this one
    resident: Floats  # [n] f64 bytes that stay where the task is placed
    need: Floats  # [n] f64 bytes that it needs while it runs
    limit: Floats  # [m] f64
    object_bytes: Floats  # [O] f64 bytes of an object where it is; zero where data takes no memory
    is_limited: int  # 1: some device has a limit
    scale_s: float  # a typical duration


class Heads(NamedTuple):
    """The two heads with their static halves computed; K hidden units, float32."""

    sel_node: Singles  # [n, K]
    sel_bias: Singles  # [n]
    sel_in: Singles  # [Fs, K]
    sel_out: Singles  # [K]
    sel_skip: Singles  # [Fs]
    plc_node: Singles  # [n, K]
    plc_bias: Singles  # [n, m]
    plc_in: Singles  # [Fp, K]
    plc_out: Singles  # [K]
    plc_skip: Singles  # [Fp]
    plc_sum: Singles  # [n, K] what a task adds to the memory of its device


class PlacementRules(NamedTuple):
    """How an episode is played."""

    window: int  # candidates scored at a time
    sel_rule: int
    plc_rule: int
    mode: int
    epsilon: float
    inverse_temperature: float
    label: int
    symmetric: int  # 1: of empty interchangeable devices only the first may be taken
    conserving: int  # 1: the makespan is that of a work-conserving execution


class EpisodeRequest(NamedTuple):
    """Which episodes to play: the first ``num_sampled`` follow the policy, the others retrace plans.

    Devices of retraced plans that are interchangeable are renamed so that they come into use in order.
    """

    num_sampled: int
    slot: Ints  # [n] i32 where each step is recorded, or -1
    plan_order: Ints  # [P, n] i32
    plan_assign: Ints  # [P, n] i32
    states: Words  # [num_sampled] u64 random states


class EpisodePlans(NamedTuple):
    """The plans of the episodes, a row each, and their times."""

    order: Ints  # [B, n] i32
    assign: Ints  # [B, n] i32
    makespan: Floats  # [B] f64


class EpisodeRecord(NamedTuple):
    """What the update needs, per episode and recorded step; W candidates at most."""

    num_candidates: Ints  # [B, S] i32
    candidate: Ints  # [B, S, W] i32
    x: Singles  # [B, S, W, Fs] f32
    sel_target: Flags  # [B, S, W] u8
    task: Ints  # [B, S] i32
    y: Singles  # [B, S, m, Fp] f32
    allowed: Flags  # [B, S, m] u8
    plc_target: Flags  # [B, S, m] u8
    log_prob: Singles  # [B, S] f32, of both actions under the way they were taken


class EpisodeScratch(NamedTuple):
    """Scratch space of one thread, used again for each episode."""

    start: Floats  # [n]
    finish: Floats  # [n]
    missing: Ints  # [n] producers without a device
    ready: Floats  # [n, m] when the data placed so far is on each device
    near: Floats  # [n, m] mean transfer seconds of the data placed so far, by where it is
    free: Floats  # [m]
    load: Floats  # [m] seconds of work given to a device
    used: Floats  # [m] resident bytes
    live: Floats  # [m] bytes of objects that have readers without a device
    num_on: Ints  # [m] tasks on a device
    window: Ints  # [W] i32 candidates
    waiting: Ints  # [n] i32 heap of positions of ready tasks outside the window
    counters: Longs  # [2] i64 candidates in the window, waiting
    total: Singles  # [m, K] f32 sums of plc_sum
    x: Singles  # [W, Fs] f32
    y: Singles  # [m, Fp] f32
    start_on: Floats  # [m]
    look_on: Floats  # [m]
    allowed: Flags  # [m] u8
    hidden: Singles  # [K] f32
    score: Floats  # [max(W, m)] f64
    relabel: Ints  # [m] i32 a forced plan's device -> ours
    rank: Ints  # [n] i32
    everyone: Flags  # [W] u8 ones


@njit(cache=True, nogil=True)
def new_work(num_tasks, num_devices, window, width):
    """Allocate the scratch space of a thread."""
    return EpisodeScratch(
        np.empty(num_tasks),
        np.empty(num_tasks),
        np.empty(num_tasks, dtype=np.int32),
        np.empty((num_tasks, num_devices)),
        np.empty((num_tasks, num_devices)),
        np.empty(num_devices),
        np.empty(num_devices),
        np.empty(num_devices),
        np.empty(num_devices),
        np.empty(num_devices, dtype=np.int32),
        np.empty(window, dtype=np.int32),
        np.empty(num_tasks, dtype=np.int32),
        np.empty(2, dtype=np.int64),
        np.empty((num_devices, width), dtype=np.float32),
        np.empty((window, NUM_CANDIDATE_FEATURES), dtype=np.float32),
        np.empty((num_devices, NUM_DEVICE_FEATURES), dtype=np.float32),
        np.empty(num_devices),
        np.empty(num_devices),
        np.empty(num_devices, dtype=np.uint8),
        np.empty(width, dtype=np.float32),
        np.empty(max(window, num_devices)),
        np.empty(num_devices, dtype=np.int32),
        np.empty(num_tasks, dtype=np.int32),
        np.ones(window, dtype=np.uint8),
    )


@njit(cache=True, nogil=True, _nrt=False)
def begin_episode(p, fixed, work, assign):
    """Empty all devices and offer the tasks that read nothing."""
    n = assign.shape[0]
    work.free[:] = 0.0
    work.load[:] = 0.0
    work.used[:] = 0.0
    work.live[:] = 0.0
    work.num_on[:] = 0
    work.total[:] = 0.0
    work.near[:] = 0.0
    work.counters[:] = 0
    work.relabel[:] = -1
    assign[:] = -1
    for v in range(n):
        work.missing[v] = p.in_ptr[v + 1] - p.in_ptr[v]
        for d in range(work.free.shape[0]):
            work.ready[v, d] = p.release[v]
    for i in range(n):
        v = fixed.at_place[i]
        if work.missing[v] == 0:
            offer(fixed, work, v)


@njit(cache=True, nogil=True, _nrt=False)
def offer(fixed, work, v):
    """Add a ready task to the window; when that is full, the lowest b-level waits outside."""
    count = work.counters[0]
    if count < work.window.shape[0]:
        work.window[count] = v
        work.counters[0] = count + 1
        return
    worst = 0
    for i in range(1, count):
        if fixed.place[work.window[i]] > fixed.place[work.window[worst]]:
            worst = i
    out = v
    if fixed.place[v] < fixed.place[work.window[worst]]:
        out = work.window[worst]
        work.window[worst] = v
    push_int(work.waiting, 0, work.counters[1], fixed.place[out])
    work.counters[1] += 1


@njit(cache=True, nogil=True, _nrt=False)
def bring_in(fixed, work, v):
    """Return the place of a ready task in the window, fetching it from outside when needed."""
    count = work.counters[0]
    for i in range(count):
        if work.window[i] == v:
            return i
    position = fixed.place[v]
    last = work.counters[1] - 1
    at = 0
    while work.waiting[at] != position:
        at += 1
    # Rebuild the heap without it: this happens only while a plan is retraced.
    work.waiting[at] = work.waiting[last]
    work.counters[1] = last
    for i in range(last):
        push_int(work.waiting, 0, i, work.waiting[i])
    worst = 0
    for i in range(1, count):
        if fixed.place[work.window[i]] > fixed.place[work.window[worst]]:
            worst = i
    push_int(work.waiting, 0, last, fixed.place[work.window[worst]])
    work.counters[1] = last + 1
    work.window[worst] = v
    return worst


@njit(cache=True, nogil=True, _nrt=False)
def leave_window(fixed, work, at):
    """Take a candidate out of the window and let the best waiting one in."""
    count = work.counters[0]
    if work.counters[1] > 0:
        work.window[at] = fixed.at_place[pop_int(work.waiting, 0, work.counters[1])]
        work.counters[1] -= 1
    else:
        work.window[at] = work.window[count - 1]
        work.counters[0] = count - 1


@njit(cache=True, nogil=True, _nrt=False)
def place_task(p, fixed, net, work, assign, v, d):
    """Append task v to device d, tell its readers, and return when it ends."""
    m = work.free.shape[0]
    begin = max(work.free[d], work.ready[v, d])
    end = begin + p.duration[v, p.device_class[d]]
    if fixed.is_limited == 1:
        hold_objects(p, fixed, work, assign, v, d)
    assign[v] = d
    work.start[v] = begin
    work.finish[v] = end
    work.free[d] = end
    work.load[d] += p.duration[v, p.device_class[d]]
    work.used[d] += fixed.resident[v]
    work.num_on[d] += 1
    for k in range(work.total.shape[1]):
        work.total[d, k] += net.plc_sum[v, k]
    for o in range(p.out_ptr[v], p.out_ptr[v + 1]):
        size = p.object_size[o]
        for e in range(p.object_ptr[o], p.object_ptr[o + 1]):
            c = p.object_reader[e]
            work.near[c, d] += fixed.object_move_s[o]
            if size > 0.0:
                for a in range(m):
                    # The links' zero diagonal makes the device of the data free.
                    there = end + (p.latency[d, a] + size * p.inv_bandwidth[d, a])
                    if there > work.ready[c, a]:
                        work.ready[c, a] = there
            else:
                for a in range(m):
                    if end > work.ready[c, a]:
                        work.ready[c, a] = end
            work.missing[c] -= 1
            if work.missing[c] == 0:
                offer(fixed, work, c)
    return end

"""Is a schedule possible? Checked from the problem alone, without the simulator."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.nodes.validate import check_nodes_work, check_packing
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule, Transfers
from stretto.errors import InvalidPlan

#: Times may differ by this share of the makespan: sums in another order round differently.
TOLERANCE = 1e-9


def check_schedule(problem: Problem, schedule: Schedule, *, noise: float = 0.0, tolerance: float = TOLERANCE) -> None:
    """Raise InvalidPlan where a schedule breaks a rule of its problem.

    Checked are: a device and finite times for each task, durations (unless ``noise`` is not zero),
    one task at a time per device (what nodes have, in projects the capacity of resources), releases, data
    that arrives before it is read even over idle links, and the transfers where they were recorded.
    """
    _check_complete(problem, schedule)
    slack = tolerance * max(schedule.makespan_s, 1e-300)
    _check_durations(problem, schedule, slack, is_exact=noise == 0)
    if problem.graph.resources is None:
        _check_overlap(problem, schedule, slack)
        if problem.packing is not None:
            check_packing(problem, problem.packing, schedule, slack)
    else:
        _check_resources(problem, schedule, slack)
    _check_releases(problem, schedule, slack)
    _check_precedence(problem, schedule, slack)
    if schedule.transfers is not None:
        _check_transfers(problem, schedule, schedule.transfers, slack)


def check_work_conserving(problem: Problem, schedule: Schedule, *, tolerance: float = TOLERANCE) -> None:
    """Raise InvalidPlan where a device idled while one of its tasks was ready, or a node had room for one.

    Under contention the schedule must hold its transfers: they say when data arrived. Memory limits
    may force a device to wait; this check is for schedules without them.
    """
    slack = tolerance * max(schedule.makespan_s, 1e-300)
    ready = _ready_times(problem, schedule)
    by_device = np.lexsort((schedule.finish_s, schedule.start_s, schedule.device))
    packing = problem.packing
    if packing is not None:
        check_nodes_work(problem, packing, schedule, ready, slack)
    for tasks in np.split(by_device, np.flatnonzero(np.diff(schedule.device[by_device])) + 1):
        if packing is not None and packing.packs[int(schedule.device[tasks[0]])]:
            continue
        start = schedule.start_s[tasks]
        idle_from = np.concatenate([[0.0], schedule.finish_s[tasks][:-1]])
        # Of the tasks that start here or later, the one that was ready first.
        first_ready = np.minimum.accumulate(ready[tasks][::-1])[::-1]
        idle = np.flatnonzero((start > idle_from + slack) & (first_ready < start - slack))
        if len(idle):
            at = int(idle[0])
            late = int(tasks[at + int(np.argmin(ready[tasks][at:]))])
            _fail(
                f"device {_device(problem, int(schedule.device[late]))} idles from "
                f"{max(float(idle_from[at]), float(ready[late])):.9g} s to {float(start[at]):.9g} s, while task "
                f"{_task(problem, late)} is ready"
            )


def _fail(message: str) -> NoReturn:
    raise InvalidPlan(message)


def _task(problem: Problem, task: int) -> str:
    return repr(problem.graph.task_name(int(task)))


def _device(problem: Problem, device: int) -> str:
    return repr(problem.cluster.devices[int(device)].name)


def _check_complete(problem: Problem, schedule: Schedule) -> None:
    n = problem.num_tasks
    for what, values in (("device", schedule.device), ("start_s", schedule.start_s), ("finish_s", schedule.finish_s)):
        if values.shape != (n,):
            _fail(f"the schedule's {what} has shape {values.shape}, expected ({n},)")
    for what, times in (("start", schedule.start_s), ("finish", schedule.finish_s)):
        bad = np.flatnonzero(~(np.isfinite(times) & (times >= 0)))
        if len(bad):
            _fail(f"task {_task(problem, bad[0])} has {what} {times[bad[0]]}")
    bad = np.flatnonzero((schedule.device < 0) | (schedule.device >= problem.num_devices))
    if len(bad):
        _fail(
            f"task {_task(problem, bad[0])} ran on device {schedule.device[bad[0]]}, "
            f"but there are {problem.num_devices}"
        )


def _check_durations(problem: Problem, schedule: Schedule, slack: float, *, is_exact: bool) -> None:
    arrays = problem.arrays
    duration = arrays.duration[np.arange(problem.num_tasks), arrays.device_class[schedule.device]]
    bad = np.flatnonzero(~np.isfinite(duration))
    if len(bad):
        task = int(bad[0])
        _fail(f"task {_task(problem, task)} cannot run on device {_device(problem, schedule.device[task])}")
    took = schedule.finish_s - schedule.start_s
    bad = np.flatnonzero(np.abs(took - duration) > slack) if is_exact else np.flatnonzero(took < 0)
    if len(bad):
        task = int(bad[0])
        _fail(
            f"task {_task(problem, task)} took {took[task]:.9g} s on device "
            f"{_device(problem, schedule.device[task])}, where it needs {duration[task]:.9g} s"
        )


def _check_overlap(problem: Problem, schedule: Schedule, slack: float) -> None:
    order = np.lexsort((schedule.finish_s, schedule.start_s, schedule.device))
    before, after = order[:-1], order[1:]
    same = schedule.device[before] == schedule.device[after]
    if problem.packing is not None:
        same &= ~np.array(problem.packing.packs)[schedule.device[before]]
    bad = np.flatnonzero(same & (schedule.start_s[after] < schedule.finish_s[before] - slack))
    if len(bad):
        one, two = int(before[bad[0]]), int(after[bad[0]])
        _fail(
            f"device {_device(problem, schedule.device[one])} runs task {_task(problem, two)} from "
            f"{schedule.start_s[two]:.9g} s, before task {_task(problem, one)} ends at {schedule.finish_s[one]:.9g} s"
        )


def _check_resources(problem: Problem, schedule: Schedule, slack: float) -> None:
    resources = problem.graph.resources
    assert resources is not None
    # A task that ends within the slack of another's start gives its units back first.
    times = np.concatenate([schedule.finish_s - slack, schedule.start_s])
    gives = np.concatenate([np.zeros(problem.num_tasks), np.ones(problem.num_tasks)])
    lasting = np.where(schedule.finish_s - schedule.start_s > slack, 1, 0)[:, None]
    change = np.concatenate([-resources.demand * lasting, resources.demand * lasting])
    order = np.lexsort((gives, times))
    level = np.cumsum(change[order], axis=0)
    bad = np.argwhere(level > resources.capacity)
    if len(bad):
        at, resource = int(bad[0][0]), int(bad[0][1])
        task = int(order[at]) % problem.num_tasks
        _fail(
            f"resource {resources.names[resource]!r} is used {level[at, resource]} times at {times[order[at]]:.9g} s, "
            f"when task {_task(problem, task)} starts; its capacity is {resources.capacity[resource]}"
        )


def _check_releases(problem: Problem, schedule: Schedule, slack: float) -> None:
    release = problem.arrays.release
    bad = np.flatnonzero(schedule.start_s < release - slack)
    if len(bad):
        task = int(bad[0])
        _fail(
            f"task {_task(problem, task)} starts at {schedule.start_s[task]:.9g} s, before its release at "
            f"{release[task]:.9g} s"
        )


def _readers(problem: Problem) -> Ints:
    """The task of each read, in the order of ``in_object``."""
    return np.repeat(np.arange(problem.num_tasks), np.diff(problem.arrays.in_ptr)).astype(np.int32)


def _move_seconds(problem: Problem, source: Ints, target: Ints, size: Floats) -> Floats:
    """Seconds over idle links; nothing on one device, and nothing for objects of no size."""
    arrays = problem.arrays
    seconds = arrays.latency[source, target] + size * arrays.inv_bandwidth[source, target]
    return np.where((source == target) | (size == 0), 0.0, seconds)


def _arrivals(problem: Problem, schedule: Schedule) -> Floats:
    """When each read object can be at its reader at the earliest, given when producers ended."""
    arrays = problem.arrays
    source, target = schedule.device[arrays.in_task], schedule.device[_readers(problem)]
    return schedule.finish_s[arrays.in_task] + _move_seconds(problem, source, target, arrays.in_size)


def _check_precedence(problem: Problem, schedule: Schedule, slack: float) -> None:
    reader, arrival = _readers(problem), _arrivals(problem, schedule)
    bad = np.flatnonzero(schedule.start_s[reader] < arrival - slack)
    if len(bad):
        read = int(bad[0])
        producer = int(problem.arrays.in_task[read])
        _fail(
            f"task {_task(problem, reader[read])} starts at {schedule.start_s[reader[read]]:.9g} s, but what it reads "
            f"from {_task(problem, producer)}, which ends at {schedule.finish_s[producer]:.9g} s, can be there at "
            f"{arrival[read]:.9g} s"
        )


def _check_transfers(problem: Problem, schedule: Schedule, moved: Transfers, slack: float) -> None:
    arrays, m = problem.arrays, problem.num_devices
    producer = arrays.object_task[moved.object_index]
    needed = _needed_moves(problem, schedule)
    key = moved.object_index.astype(np.int64) * m + moved.target
    if len(np.unique(key)) != len(key):
        twice = int(np.flatnonzero(np.bincount(np.unique(key, return_inverse=True)[1]) > 1)[0])
        item, target = divmod(int(np.unique(key)[twice]), m)
        _fail(f"an output of {_name(problem, item)} goes to device {_device(problem, target)} more than once")
    for odd, what in ((np.setdiff1d(needed, key), "never goes"), (np.setdiff1d(key, needed), "goes needlessly")):
        if len(odd):
            item, target = divmod(int(odd[0]), m)
            _fail(f"an output of {_name(problem, item)} {what} to device {_device(problem, target)}")
    _fail_first(
        problem, moved, moved.source != schedule.device[producer], "starts from another device than its producer's"
    )
    _fail_first(problem, moved, moved.start_s < schedule.finish_s[producer] - slack, "starts before its producer ends")
    least = _move_seconds(problem, moved.source, moved.target, arrays.object_size[moved.object_index])
    _fail_first(problem, moved, moved.finish_s - moved.start_s < least - slack, "is faster than its link")
    _check_arrived(problem, schedule, moved, key, slack)
    if schedule.contention == "fifo":
        _check_links(problem, moved, slack)


def _name(problem: Problem, item: int) -> str:
    return _task(problem, int(problem.arrays.object_task[item]))


def _needed_moves(problem: Problem, schedule: Schedule) -> Ints:
    """The transfers that the devices of producers and readers imply, as object * m + target."""
    arrays = problem.arrays
    target = schedule.device[_readers(problem)]
    moves = (schedule.device[arrays.in_task] != target) & (arrays.in_size > 0)
    found: Ints = np.unique(arrays.in_object[moves].astype(np.int64) * problem.num_devices + target[moves])
    return found


def _fail_first(
    problem: Problem, moved: Transfers, is_bad: np.ndarray[tuple[int], np.dtype[np.bool_]], what: str
) -> None:
    bad = np.flatnonzero(is_bad)
    if len(bad):
        at = int(bad[0])
        _fail(
            f"the transfer of an output of {_name(problem, int(moved.object_index[at]))} to device "
            f"{_device(problem, moved.target[at])}, from {moved.start_s[at]:.9g} s to {moved.finish_s[at]:.9g} s, "
            f"{what}"
        )


def _arrived(problem: Problem, schedule: Schedule, moved: Transfers, key: Ints) -> Floats:
    """When each read object was at its reader, by the recorded transfers."""
    arrays = problem.arrays
    arrival = schedule.finish_s[arrays.in_task].copy()
    if len(key):
        target = schedule.device[_readers(problem)]
        moves = (schedule.device[arrays.in_task] != target) & (arrays.in_size > 0)
        wanted = arrays.in_object[moves].astype(np.int64) * problem.num_devices + target[moves]
        order = np.argsort(key)
        arrival[moves] = moved.finish_s[order[np.searchsorted(key[order], wanted)]]
    return arrival


def _check_arrived(problem: Problem, schedule: Schedule, moved: Transfers, key: Ints, slack: float) -> None:
    reader = _readers(problem)
    arrival = _arrived(problem, schedule, moved, key)
    bad = np.flatnonzero(schedule.start_s[reader] < arrival - slack)
    if len(bad):
        read = int(bad[0])
        _fail(
            f"task {_task(problem, reader[read])} starts at {schedule.start_s[reader[read]]:.9g} s, before an output "
            f"of {_name(problem, int(problem.arrays.in_object[read]))} arrives at {arrival[read]:.9g} s"
        )


def _check_links(problem: Problem, moved: Transfers, slack: float) -> None:
    """Each link carries one transfer at a time."""
    links = problem.cluster.links if problem.graph.transfer_unit == "bytes" else None
    pair = moved.source.astype(np.int64) * problem.num_devices + moved.target
    if links is None:
        transfer, link = np.arange(len(pair)), pair
    else:
        hops = np.diff(links.route_ptr)[pair]
        transfer = np.repeat(np.arange(len(pair)), hops)
        link = np.array([hop for p in pair for hop in links.route[links.route_ptr[p] : links.route_ptr[p + 1]]])
    if len(transfer) < 2:
        return
    order = np.lexsort((moved.finish_s[transfer], moved.start_s[transfer], link))
    before, after = transfer[order[:-1]], transfer[order[1:]]
    same = (link[order[:-1]] == link[order[1:]]) & (before != after)
    bad = np.flatnonzero(same & (moved.start_s[after] < moved.finish_s[before] - slack))
    if len(bad):
        one, two = int(before[bad[0]]), int(after[bad[0]])
        _fail(
            f"the transfer of an output of {_name(problem, int(moved.object_index[two]))} starts at "
            f"{moved.start_s[two]:.9g} s on a link that carries an output of "
            f"{_name(problem, int(moved.object_index[one]))} until {moved.finish_s[one]:.9g} s"
        )


def _ready_times(problem: Problem, schedule: Schedule) -> Floats:
    arrays = problem.arrays
    if schedule.transfers is not None:
        moved = schedule.transfers
        key = moved.object_index.astype(np.int64) * problem.num_devices + moved.target
        arrival = _arrived(problem, schedule, moved, key)
    elif schedule.contention == "none":
        arrival = _arrivals(problem, schedule)
    else:
        _fail(f"a schedule under {schedule.contention!r} contention can be checked only with its transfers recorded")
    ready = arrays.release.copy()
    np.maximum.at(ready, _readers(problem), arrival)
    return ready

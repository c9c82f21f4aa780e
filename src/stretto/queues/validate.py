"""Check a replay against the rules that any queue must keep, without any simulator.

It knows nothing of strategies: only that no job is lost, none starts before it may, none runs shorter or longer
than it should, and no pool is used beyond its processors, beyond the nodes that can be up, or while it is closed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.pool import Pool
from stretto.core.pool_fit import pool_widths
from stretto.core.site import Site
from stretto.core.trace import Trace
from stretto.errors import InvalidPlan
from stretto.queues.result import QueueResult

Rows = NDArray[np.intp]
#: Ends are sums of floats.
_ROUNDING = 1e-9


def check_replay(trace: Trace, machine: int | tuple[Pool, ...] | Site, result: QueueResult) -> None:
    """Raise where a replay breaks a rule; on a site, also where a node is used beyond what it has.

    Parameters
    ----------
    trace
        What was to be replayed; jobs that fit nowhere may be missing from the result.
    """
    if isinstance(machine, Site):
        from stretto.queues.nodes.validate import check_nodes

        _check_complete(trace, result)
        _check_times(result)
        _check_durations(result.pools, result)
        check_nodes(machine, result)
        return
    pools = (Pool("machine", machine),) if isinstance(machine, int) else tuple(machine)
    _check_complete(trace, result)
    _check_times(result)
    _check_durations(pools, result)
    _check_capacity(pools, result)
    _check_nodes(pools, result)


def _fail(rule: str, jobs: np.ndarray, detail: Floats) -> None:
    job = int(jobs[0])
    raise InvalidPlan(f"job {job} {rule} ({float(detail[job]):.17g}); {len(jobs)} such jobs")


def _check_complete(trace: Trace, result: QueueResult) -> None:
    if result.trace.num_jobs + result.num_dropped != trace.num_jobs:
        raise InvalidPlan(
            f"{trace.num_jobs} jobs came, {result.trace.num_jobs} were replayed and {result.num_dropped} left out"
        )
    lost = np.flatnonzero(~(np.isfinite(result.end_s) & (result.start_s >= 0)))
    if len(lost):
        _fail("never ran", lost, result.start_s)


def early_starts(result: QueueResult) -> Rows:
    """Return the jobs that start before they are submitted."""
    return np.flatnonzero(result.start_s < result.trace.submit_s)


def starts_before_parents(result: QueueResult) -> Rows:
    """Return the jobs that start before a parent has ended, one for each such parent."""
    trace = result.trace
    if trace.parent is None or trace.child is None:
        return np.zeros(0, np.intp)
    hasty = result.start_s[trace.child] < result.end_s[trace.parent]
    return trace.child[hasty].astype(np.intp)


def starts_beyond(result: QueueResult, num_procs: int) -> Rows:
    """Return the jobs that run, are not wider than a machine, and start when it has more in use than it has."""
    ran = np.flatnonzero(result.end_s > result.start_s)
    times, load = load_over_time(result.trace.num_procs[ran].astype(np.float64), result.start_s[ran], result.end_s[ran])
    # The load at a start counts all that starts at that moment.
    at_start = load[np.searchsorted(times, result.start_s[ran], side="right") - 1]
    return ran[(at_start > num_procs) & (result.trace.num_procs[ran] <= num_procs)]


def load_over_time(need: Floats, start_s: Floats, end_s: Floats) -> tuple[Floats, Floats]:
    """Return the moments of starts and ends and what is in use after each; what ends is given back first."""
    times = np.concatenate((end_s, start_s))
    order = np.argsort(times, kind="stable")
    return times[order], np.cumsum(np.concatenate((-need, need))[order])


def _check_times(result: QueueResult) -> None:
    early = early_starts(result)
    if len(early):
        _fail("starts before it is submitted", early, result.start_s)
    hasty = starts_before_parents(result)
    if len(hasty):
        _fail("starts before a parent has ended", hasty, result.start_s)


def _check_durations(pools: tuple[Pool, ...], result: QueueResult) -> None:
    """An uninterrupted job runs for its time over the pool's speed, or its limit; an interrupted one not longer."""
    speed = np.array([pool.speed for pool in pools])[result.pool]
    limit = np.where(np.isfinite(result.trace.estimate_s), result.trace.estimate_s, result.trace.run_s)
    due = np.where(result.is_killed, limit, result.trace.run_s) / speed
    ran = result.end_s - result.start_s
    rounding = _ROUNDING * np.maximum(1.0, result.end_s)
    interrupted = result.num_interruptions > 0
    wrong = np.flatnonzero((ran > due + rounding) | (~interrupted & (ran < due - rounding)))
    if len(wrong):
        _fail("runs for a time that is not its own", wrong, ran)
    spared = np.flatnonzero(result.is_killed & (result.trace.run_s <= limit))
    if len(spared):
        _fail("was killed within its limit", spared, ran)


def _check_capacity(pools: tuple[Pool, ...], result: QueueResult) -> None:
    trace = result.trace
    for k, pool in enumerate(pools):
        here = (result.pool == k) & (result.end_s > result.start_s)
        _check_load(trace.num_procs[here].astype(np.float64), pool.num_procs, "processors", pool, result, here)
        if trace.num_gpus is not None:
            gpus = trace.num_gpus[here].astype(np.float64)
            _check_load(gpus, pool.num_nodes * pool.gpus_per_node, "GPUs", pool, result, here)
        if trace.memory_bytes is not None:
            memory = np.nan_to_num(trace.memory_bytes[here])
            _check_load(memory, pool.num_nodes * pool.memory_bytes_per_node, "bytes of memory", pool, result, here)


def _check_load(need: Floats, capacity: float, what: str, pool: Pool, result: QueueResult, here: np.ndarray) -> None:
    """Sweep over time; at one time, what ends is given back before what starts is taken."""
    times, load = load_over_time(need, result.start_s[here], result.end_s[here])
    over = np.flatnonzero(load > capacity)
    if len(over):
        at = int(over[0])
        raise InvalidPlan(
            f"pool {pool.name!r} has {capacity:g} {what}, {load[at]:g} are in use at {float(times[at]):.17g} s"
        )


def _check_nodes(pools: tuple[Pool, ...], result: QueueResult) -> None:
    """Check what a result tells of nodes: it has no times of theirs, but when the first can come up, and the bill."""
    width = pool_widths(result.trace, pools)
    for k, pool in enumerate(pools):
        here = (result.pool == k) & (result.end_s > result.start_s)
        procs = np.where(here, width[:, k], 0).astype(np.float64)
        if pool.min_nodes is not None:
            early = here & (result.start_s < pool.provision_s)
            base = pool.min_nodes * pool.procs_per_node
            _check_load(procs[early], base, "processors before any ordered node", pool, result, early)
        used = float(procs @ (result.end_s - result.start_s)) / pool.procs_per_node
        billed = float(result.billed_node_s[k])
        if used > billed * (1 + _ROUNDING) + _ROUNDING:
            raise InvalidPlan(f"pool {pool.name!r} was used for {used:.17g} node-seconds, {billed:.17g} are billed")
        _check_open(pool, result, here)


def _check_open(pool: Pool, result: QueueResult, here: np.ndarray) -> None:
    """No job runs while the price is above the bid."""
    if pool.spot is None:
        return
    times = pool.spot.time_s
    for i in np.flatnonzero(pool.spot.price_usd_per_hour > pool.spot.bid_usd_per_hour):
        until = times[i + 1] if i + 1 < len(times) else np.inf
        caught = np.flatnonzero(here & (result.start_s < until) & (result.end_s > times[i]))
        if len(caught):
            _fail(f"runs in pool {pool.name!r} while it is closed", caught, result.start_s)

"""The checker of replays: a replay that is just right passes, and each rule is broken by the least that breaks it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stretto.core.pool import Pool, Spot
from stretto.core.trace import Trace
from stretto.errors import InvalidPlan
from stretto.queues.result import QueueResult
from stretto.queues.validate import check_replay

INF = float("inf")
TRACE = Trace.of([0, 0, 2], [4, 6, 2], [1, 2, 3], [4, 8, 2])


def result_of(start: list[float], end: list[float], trace: Trace = TRACE, **changes: Any) -> QueueResult:
    n = trace.num_jobs
    found = QueueResult(
        trace=trace,
        pools=(Pool("machine", 3),),
        start_s=np.array(start, dtype=float),
        end_s=np.array(end, dtype=float),
        ready_s=trace.submit_s,
        pool=np.zeros(n, np.int32),
        is_killed=np.zeros(n, bool),
        num_interruptions=np.zeros(n, np.int32),
        cost_usd=np.zeros(2),
        billed_node_s=np.array([1e9, 1e9]),
    )
    return replace(found, **changes)


FINE = result_of([0, 0, 6], [4, 6, 8])


def refused(result: QueueResult, machine: Any = 3, trace: Trace | None = None) -> str:
    with pytest.raises(InvalidPlan) as caught:
        check_replay(trace if trace is not None else result.trace, machine, result)
    return str(caught.value)


def test_a_replay_that_is_just_right() -> None:
    check_replay(TRACE, 3, FINE)
    check_replay(TRACE, (Pool("p", 3),), FINE)
    check_replay(Trace.of([0] * 4, [1] * 4, [9, 1, 1, 1]), 3, replace(FINE, num_dropped=1))


def test_no_job_is_lost() -> None:
    longer = Trace.of([0] * 5, [1] * 5, [1] * 5)
    assert refused(replace(FINE, num_dropped=1), trace=longer) == "5 jobs came, 3 were replayed and 1 left out"
    assert refused(replace(FINE, num_dropped=1)) == "3 jobs came, 3 were replayed and 1 left out"
    assert refused(result_of([0, -1, -1], [4, INF, INF])) == "job 1 never ran (-1); 2 such jobs"
    assert "job 1 never ran" in refused(result_of([0, -1, 6], [4, 5, 8]))
    assert "job 2 never ran" in refused(result_of([0, 0, 6], [4, 6, INF]))


def test_nobody_starts_too_early() -> None:
    assert refused(result_of([0, 0, 1.5], [4, 6, 3.5])) == "job 2 starts before it is submitted (1.5); 1 such jobs"
    chained = replace(
        TRACE, parent=np.array([0], np.int32), child=np.array([2], np.int32), num_procs=np.ones(3, np.int32)
    )
    check_replay(chained, 3, result_of([0, 0, 4], [4, 6, 6], chained))
    words = refused(result_of([0, 0, 3.5], [4, 6, 5.5], chained))
    assert words == "job 2 starts before a parent has ended (3.5); 1 such jobs"


def test_jobs_run_for_their_own_time() -> None:
    assert refused(result_of([0, 0, 6], [4, 6, 8.5])) == "job 2 runs for a time that is not its own (2.5); 1 such jobs"
    assert refused(result_of([0, 0, 6], [4, 5, 8])) == "job 1 runs for a time that is not its own (5); 1 such jobs"
    check_replay(TRACE, 3, result_of([0, 0, 6], [4 + 1e-10, 6, 8 - 1e-10]))
    interrupted = np.array([0, 1, 0], np.int32)
    check_replay(TRACE, 3, result_of([0, 1, 6], [4, 6, 8], num_interruptions=interrupted))
    assert "not its own (6.5)" in refused(result_of([0, 0, 6.5], [4, 6.5, 8.5], num_interruptions=interrupted))
    fast = (Pool("p", 3, speed=2.0),)
    check_replay(TRACE, fast, result_of([0, 0, 3], [2, 3, 4]))
    assert "not its own (4)" in refused(FINE, fast)


def test_rounding_grows_with_the_clock() -> None:
    late = Trace.of([1e9], [1], [1])
    check_replay(late, 3, result_of([1e9], [1e9 + 1.25], late))
    assert "not its own" in refused(result_of([1e9], [1e9 + 3.5], late))


def test_who_is_killed_was_over_its_limit() -> None:
    limited = replace(TRACE, estimate_s=np.array([4.0, 5.0, np.nan]))
    killed = np.array([False, True, False])
    check_replay(limited, 3, result_of([0, 0, 6], [4, 5, 8], limited, is_killed=killed))
    assert "not its own (6)" in refused(result_of([0, 0, 6], [4, 6, 8], limited, is_killed=killed))
    spared = result_of([0, 0, 6], [4, 5, 8], limited, is_killed=np.array([True, True, True]))
    assert refused(spared) == "job 0 was killed within its limit (4); 2 such jobs"


def test_a_pool_gives_no_more_than_it_has() -> None:
    assert refused(result_of([0, 0, 5], [4, 6, 7])) == "pool 'machine' has 3 processors, 5 are in use at 5 s"
    pools = (Pool("a", 1), Pool("b", 2, procs_per_node=3))
    apart = result_of([0, 0, 2], [4, 6, 4], pool=np.array([0, 1, 1], np.int32))
    check_replay(TRACE, pools, apart)
    crowded = replace(TRACE, num_procs=np.array([1, 4, 3], np.int32))
    words = refused(replace(apart, trace=crowded), pools)
    assert words == "pool 'b' has 6 processors, 7 are in use at 2 s"


def test_jobs_that_take_no_time_take_no_room() -> None:
    instant = Trace.of([0, 0], [4, 0], [3, 3])
    check_replay(instant, 3, result_of([0, 2], [4, 2], instant))


def test_gpus_and_memory_are_limited_too() -> None:
    pool = (Pool("p", 2, procs_per_node=4, gpus_per_node=2, memory_bytes_per_node=8.0),)
    gpus = replace(TRACE, num_gpus=np.array([2, 2, 4], np.int32))
    check_replay(gpus, pool, result_of([0, 0, 6], [4, 6, 8], gpus))
    words = refused(result_of([0, 0, 4], [4, 6, 6], gpus), pool)
    assert words == "pool 'p' has 4 GPUs, 6 are in use at 4 s"
    memory = replace(TRACE, memory_bytes=np.array([np.nan, 9.0, 8.0]))
    check_replay(memory, pool, result_of([0, 0, 6], [4, 6, 8], memory))
    words = refused(result_of([0, 0, 5], [4, 6, 7], memory), pool)
    assert words == "pool 'p' has 16 bytes of memory, 17 are in use at 5 s"


def test_nodes_that_are_not_up_yet_run_nothing() -> None:
    elastic = Pool("e", 3, procs_per_node=2, min_nodes=1, provision_s=5.0)
    late = result_of([0, 5, 11], [4, 11, 13])
    check_replay(TRACE, (elastic,), late)
    words = refused(result_of([0, 4.5, 11], [4, 10.5, 13]), (replace(elastic, min_nodes=0),))
    assert words == "pool 'e' has 0 processors before any ordered node, 1 are in use at 0 s"
    words = refused(result_of([0, 3, 11], [4, 9, 13]), (elastic,))
    assert words == "pool 'e' has 2 processors before any ordered node, 3 are in use at 3 s"


def test_what_is_used_is_billed() -> None:
    pool = (Pool("a", 2, procs_per_node=3), Pool("b", 1))
    used = (4 * 1 + 6 * 2 + 2 * 3) / 3
    check_replay(TRACE, pool, replace(FINE, billed_node_s=np.array([used, 0.0])))
    words = refused(replace(FINE, billed_node_s=np.array([used - 1e-3, 0.0])), pool)
    assert words.startswith("pool 'a' was used for 7.333")
    assert "are billed" in words


def test_nothing_runs_in_a_pool_that_is_closed() -> None:
    times, prices = np.array([0.0, 4.0, 6.0, 8.0]), np.array([1.0, 9.0, 1.0, 9.0])
    spot = Spot(times, prices, np.zeros(4), bid_usd_per_hour=5.0)
    pool = (Pool("s", 9, spot=spot),)
    check_replay(TRACE, pool, result_of([0, 6, 6], [4, 8, 8], num_interruptions=np.array([0, 1, 0], np.int32)))
    assert refused(FINE, pool) == "job 1 runs in pool 's' while it is closed (0); 1 such jobs"
    words = refused(result_of([0, 7, 6], [4, 9, 8], num_interruptions=np.array([0, 1, 0], np.int32)), pool)
    assert words == "job 1 runs in pool 's' while it is closed (7); 1 such jobs"
    check_replay(TRACE, (Pool("s", 9, spot=replace(spot, bid_usd_per_hour=9.0)),), FINE)

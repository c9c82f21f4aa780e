"""A site as the machine of a replay: the cases that operators reported, and what is left out with which words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stretto.core.request import ANY_GPU, JobRequest, ResourceRequest
from stretto.core.site import MIB, Partition, Reservation, Site, SiteNode
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.compare import compare_strategies
from stretto.queues.replay import replay
from stretto.queues.result import QueueResult
from stretto.queues.validate import check_replay


def jobs_of(*rows: tuple[float, float, JobRequest], **columns: Any) -> Trace:
    """Return jobs of (submission, run time, request)."""
    n = len(rows)
    return Trace.of(
        [row[0] for row in rows],
        [row[1] for row in rows],
        np.ones(n),
        request=np.arange(n, dtype=np.int32),
        requests=tuple(row[2] for row in rows),
        **columns,
    )


def checked(trace: Trace, site: Site, **rules: Any) -> QueueResult:
    result = replay(trace, site, **rules)
    check_replay(trace, site, result)
    return result


def two_partitions() -> Site:
    nodes = (
        SiteNode("c1", 4),
        SiteNode("c2", 4),
        SiteNode("g1", 4, gpus={"a100": 2}),
        SiteNode("g2", 4, gpus={"a100": 2}),
    )
    parts = (Partition("cpu", ("c1", "c2"), is_default=True), Partition("gpu", ("g1", "g2")))
    return Site("small", nodes, parts)


def test_partition_is_not_ignored() -> None:
    """A job of a full partition waits although other nodes are idle."""
    request = ResourceRequest(("cpu",), num_tasks=8)
    result = checked(jobs_of((0, 100, request), (1, 10, ResourceRequest(("cpu",)))), two_partitions())
    assert result.start_s.tolist() == [0, 100]
    assert set(result.nodes_of(0)) == {"c1", "c2"}


def test_one_node_job_gets_its_gpus_on_one_node() -> None:
    """Two nodes with one free GPU each do not make a job of one node and two GPUs."""
    one = ResourceRequest(("gpu",), gpus_per_node={"a100": 1}, features=frozenset())
    both = ResourceRequest(("gpu",), max_nodes=1, gpus_per_node={"a100": 2})
    rows = [(0.0, 100.0, ResourceRequest(("gpu",), num_tasks=2, min_nodes=2, gpus_per_node={"a100": 1}))]
    rows += [(1.0, 10.0, both), (2.0, 5.0, one)]
    result = checked(jobs_of(*rows), two_partitions())
    assert len(result.nodes_of(0)) == 2
    assert result.start_s.tolist() == [0, 100, 2]
    assert len(result.nodes_of(1)) == 1


def test_gpu_jobs_are_not_dropped() -> None:
    """Jobs with GPUs run, also where the trace has no more than columns."""
    trace = Trace.of([0, 0, 0], [10, 10, 10], [2, 4, 1], num_gpus=np.array([2, 4, 0], np.int32))
    site = Site(
        "gpus", tuple(SiteNode(f"g{i}", 8, gpus={"v100": 2}) for i in range(2)), (Partition("all", ("g0", "g1")),)
    )
    result = checked(trace, site)
    assert result.num_dropped == 0
    assert result.start_s.tolist() == [0, 10, 0]
    assert (len(result.nodes_of(0)), len(result.nodes_of(1))) == (1, 2)


def test_components_of_a_heterogeneous_job_start_together() -> None:
    pair = (ResourceRequest(("cpu",), num_tasks=8), ResourceRequest(("gpu",), gpus_per_node={ANY_GPU: 1}))
    result = checked(jobs_of((0, 50, ResourceRequest(("cpu",))), (1, 10, pair)), two_partitions())
    assert result.start_s.tolist() == [0, 50]
    assert result.nodes_of(1) == ["c1", "c2", "g1"]


def test_partitions_of_columns() -> None:
    names = {"partition_names": ("gpu", "lost")}
    trace = Trace.of([0, 0, 0, 0], [5, 5, 5, 5], [1, 1, 1, 1], partition=np.array([0, 1, -1, 1], np.int32), meta=names)
    result = checked(trace, two_partitions())
    assert result.num_dropped == 2
    assert result.nodes_of(0)[0] in ("g1", "g2")
    assert result.nodes_of(1)[0] in ("c1", "c2")
    assert any("2 jobs" in note and "'lost'" in note for note in result.notes)
    assert any("1 job names no partition" in note and "'cpu'" in note for note in result.notes)


def test_unknown_partition_of_all_jobs_is_an_error() -> None:
    with pytest.raises(UnknownName, match="'cpus'"):
        replay(jobs_of((0, 1, ResourceRequest(("cpus",)))), two_partitions())


def test_job_that_fits_no_node_is_counted() -> None:
    rows = [(0.0, 1.0, ResourceRequest(cpus_per_task=5)), (0.0, 1.0, ResourceRequest()), (0.0, 0.0, ResourceRequest())]
    result = checked(jobs_of(*rows), two_partitions())
    assert result.num_dropped == 2
    assert any("asks for more on one node" in note and "'cpu'" in note for note in result.notes)
    assert any("never ran" in note for note in result.notes)
    with pytest.raises(InvalidInput, match="asks for more on one node"):
        replay(jobs_of(rows[0]), two_partitions())


@pytest.mark.parametrize("value", [10**18, -1])
def test_counts_out_of_range(value: int) -> None:
    with pytest.raises(InvalidInput, match=str(value)):
        ResourceRequest(num_tasks=value)
    with pytest.raises(InvalidInput, match=str(value)):
        ResourceRequest(gpus_per_task={"a100": value})
    with pytest.raises(InvalidInput, match=str(value)):
        SiteNode("n", 1, gpus={"a100": value})


def test_overlapping_reservations() -> None:
    closings = (Reservation("first", 0, 10, ("n",)), Reservation("second", 5, 20, ("n",)))
    with pytest.raises(InvalidInput, match="overlaps"):
        Site("s", (SiteNode("n", 1),), (Partition("p", ("n",)),), closings)


def test_largest_requests_do_not_overflow() -> None:
    most = 2**31 - 1
    huge = ResourceRequest(num_tasks=most, cpus_per_task=most, memory_bytes_per_cpu=1e18)
    result = checked(jobs_of((0, 1, huge), (0, 1, ResourceRequest())), two_partitions())
    assert result.num_dropped == 1


def test_maintenance_keeps_jobs_off() -> None:
    site = Site("s", (SiteNode("n", 2),), (Partition("p", ("n",)),), (Reservation("maintenance", 10, 20, ("n",)),))
    result = checked(jobs_of((0, 15, ResourceRequest()), (1, 5, ResourceRequest())), site)
    assert result.start_s.tolist() == [20, 1]


def test_limits_and_kills() -> None:
    site = Site("s", (SiteNode("n", 2),), (Partition("p", ("n",), max_time_s=100, default_time_s=10),))
    rows = [(0.0, 50.0, ResourceRequest())] * 3
    trace = jobs_of(*rows)
    trace = Trace.of(
        trace.submit_s, trace.run_s, trace.num_procs, [np.nan, 20, 200], request=trace.request, requests=trace.requests
    )
    result = checked(trace, site, kill=True)
    assert result.num_dropped == 1
    assert result.end_s.tolist() == [10, 20]
    assert result.is_killed.tolist() == [True, True]
    assert checked(trace, site).end_s.tolist() == [50, 50]


def test_metrics_of_a_site() -> None:
    site = Site("s", (SiteNode("n", 2, 4 * MIB, price_usd_per_hour=3600.0),), (Partition("p", ("n",)),))
    result = checked(jobs_of((0, 10, ResourceRequest()), (0, 10, ResourceRequest())), site)
    assert result.metrics.utilization == pytest.approx(1.0)
    assert result.metrics.cost_usd == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("rules", "field"),
    [({"backfill": "slack"}, "backfill"), ({"estimates": "last-two"}, "estimates"), ({"tie": "one-event"}, "tie")],
)
def test_unsupported_rules(rules: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput, match="not supported on a site") as raised:
        replay(jobs_of((0, 1, ResourceRequest())), two_partitions(), **rules)
    assert raised.value.field == field


def test_windows_of_a_comparison_meet_maintenance_when_it_was() -> None:
    """A window that begins with the second job sees a reservation that counts from the first."""
    site = Site("s", (SiteNode("n", 2),), (Partition("p", ("n",)),), (Reservation("maintenance", 100, 200, ("n",)),))
    trace = jobs_of((0, 1, ResourceRequest()), (90, 20, ResourceRequest()), (300, 1, ResourceRequest()))
    assert replay(trace.window(1, 2), site.later(90)).start_s.tolist() == [110, 210]
    found = compare_strategies(trace, site, ["fcfs"], num_windows=20, window_jobs=2, seed=0)
    waits = {row.first_job: row.metrics.wait_s.max for row in found.rows}
    assert waits == {0: 110.0, 1: 110.0}


def test_windows_keep_the_date_of_their_first_job() -> None:
    trace = Trace.of([0, 90], [1, 1], [1, 1], origin_unix_s=1000.0)
    assert trace.window(1, 1).origin_unix_s == 1090.0

"""The check of replays on nodes, of results that are written down by hand: each rule, kept just so and broken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stretto.core.pool import Pool
from stretto.core.request import ANY_GPU, JobRequest, ResourceRequest
from stretto.core.site import MIB, Partition, Reservation, Site, SiteNode
from stretto.core.site_policy import Qos, SitePolicy
from stretto.core.trace import Trace
from stretto.errors import InvalidPlan
from stretto.queues.nodes.validate import check_nodes
from stretto.queues.result import QueueResult

Place = tuple[int, int, int]  # node, tasks, partition
NODES = (
    SiteNode("n0", 4, 8 * MIB, {"a100": 2, "v100": 1}, frozenset({"ib"})),
    SiteNode("n1", 4, 8 * MIB, {}, frozenset({"ib", "fast"})),
    SiteNode("n2", 2),
)
PARTS = (
    Partition("main", ("n0", "n1", "n2"), is_default=True),
    Partition("alone", ("n1", "n2"), is_exclusive=True),
)
SITE = Site("small", NODES, PARTS)
ONE = ResourceRequest()


def told(*jobs: tuple[JobRequest, list[Place], float, float], **columns: Any) -> QueueResult:
    """Return the result of jobs of (request, places, start, end)."""
    n = len(jobs)
    start, end = (np.array([job[k] for job in jobs], dtype=float) for k in (2, 3))
    entries = np.array([place for job in jobs for place in job[1]], np.int32).reshape(-1, 3)
    width = [sum(part.num_cpus for part in (job[0] if isinstance(job[0], tuple) else (job[0],))) for job in jobs]
    requests = tuple(job[0] for job in jobs)
    trace = Trace.of(
        np.zeros(n), end - start, width, request=np.arange(n, dtype=np.int32), requests=requests, **columns
    )
    return QueueResult(
        trace=trace,
        pools=(Pool("small", 10),),
        start_s=start,
        end_s=end,
        ready_s=np.zeros(n),
        pool=np.zeros(n, np.int32),
        is_killed=np.zeros(n, np.bool_),
        num_interruptions=np.zeros(n, np.int32),
        cost_usd=np.zeros(1),
        billed_node_s=np.zeros(1),
        site=SITE,
        place_ptr=np.cumsum([0, *(len(job[1]) for job in jobs)]),
        node=entries[:, 0],
        tasks=entries[:, 1],
        partition=entries[:, 2],
    )


def single(request: JobRequest, *places: Place) -> QueueResult:
    return told((request, list(places), 0.0, 1.0))


FOUR = ResourceRequest(num_tasks=4)
GOOD: dict[str, tuple[JobRequest, list[Place]]] = {
    "one task": (ONE, [(2, 1, 0)]),
    "tasks on two nodes": (FOUR, [(0, 3, 0), (1, 1, 0)]),
    "just so many nodes": (ResourceRequest(num_tasks=4, min_nodes=2, max_nodes=2), [(0, 2, 0), (1, 2, 0)]),
    "just so many tasks per node": (ResourceRequest(num_tasks=4, tasks_per_node=2), [(0, 2, 0), (2, 2, 0)]),
    "a named partition": (ResourceRequest(("alone",)), [(1, 1, 1)]),
    "the second of two partitions": (ResourceRequest(("main", "alone")), [(2, 1, 1)]),
    "all features": (ResourceRequest(features=frozenset({"ib", "fast"})), [(1, 1, 0)]),
    "all processors": (ResourceRequest(num_tasks=2, cpus_per_task=2), [(1, 2, 0)]),
    "all memory by CPU": (ResourceRequest(num_tasks=2, cpus_per_task=2, memory_bytes_per_cpu=2 * MIB), [(0, 2, 0)]),
    "all memory by node": (ResourceRequest(num_tasks=2, memory_bytes_per_node=8 * MIB), [(0, 1, 0), (1, 1, 0)]),
    "all GPUs of a type by task": (ResourceRequest(num_tasks=2, gpus_per_task={"a100": 1}), [(0, 2, 0)]),
    "all GPUs by node": (ResourceRequest(num_tasks=2, gpus_per_node={ANY_GPU: 3}), [(0, 2, 0)]),
    "GPUs of both kinds": (ResourceRequest(gpus_per_node={"a100": 2}, gpus_per_task={"v100": 1}), [(0, 1, 0)]),
    "two components": ((FOUR, ResourceRequest(num_tasks=2)), [(0, 4, 0), (1, 1, 0), (2, 1, 0)]),
    "components of several nodes": ((FOUR, ResourceRequest(num_tasks=2)), [(0, 3, 0), (1, 1, 0), (2, 2, 0)]),
    "components on one node": ((ONE, ResourceRequest(num_tasks=3)), [(1, 1, 0), (1, 3, 0)]),
}
BAD: dict[str, tuple[JobRequest, list[Place], str]] = {
    "too few tasks": (FOUR, [(0, 3, 0)], r"asked for 4 tasks and got \[3\]"),
    "too many tasks": (FOUR, [(0, 3, 0), (1, 2, 0)], r"asked for 4 tasks and got \[3, 2\]"),
    "a node without a task": (FOUR, [(0, 0, 0), (1, 4, 0)], r"asked for 4 tasks and got \[0, 4\]"),
    "no node": (ONE, [], r"asked for 1 tasks and got \[\]"),
    "one node more": (ONE, [(0, 1, 0), (1, 1, 0)], "has nodes that it did not ask for"),
    "too few nodes": (ResourceRequest(num_tasks=2, min_nodes=2), [(0, 2, 0)], r"runs on 1 nodes, outside 2\.\.None"),
    "too many nodes": (ResourceRequest(num_tasks=2, max_nodes=1), [(0, 1, 0), (1, 1, 0)], r"2 nodes, outside 1\.\.1"),
    "too many on a node": (ResourceRequest(num_tasks=4, tasks_per_node=2), [(0, 3, 0), (1, 1, 0)], "more than 2 tasks"),
    "a node twice": (FOUR, [(0, 2, 0), (0, 2, 0)], "names a node twice"),
    "two partitions": (ResourceRequest(("main", "alone"), 2), [(1, 1, 0), (2, 1, 1)], "in main and alone"),
    "not the default one": (ONE, [(1, 1, 1)], r"runs on \['n1'\] in alone; it may use one partition of \('main',\)"),
    "not the named one": (ResourceRequest(("alone",)), [(1, 1, 0)], r"in main; .* of \('alone',\)"),
    "outside of its partition": (ResourceRequest(("alone",)), [(0, 1, 1)], r"runs on \['n0'\] in alone"),
    "a feature missing": (ResourceRequest(features=frozenset({"fast", "ib"})), [(0, 1, 0)], r"\['fast', 'ib'\]"),
    "too many processors": (ResourceRequest(cpus_per_task=3), [(2, 1, 0)], "n2 has 2 cpus; with job 0 3 "),
    "too much memory by CPU": (
        ResourceRequest(cpus_per_task=4, memory_bytes_per_cpu=2 * MIB + 1), [(0, 1, 0)], "has 8 memory; with job 0 9 "
    ),
    "too much memory by node": (ResourceRequest(memory_bytes_per_node=8 * MIB + 1), [(0, 1, 0)], "8 memory; with"),
    "too many GPUs of a type": (
        ResourceRequest(num_tasks=2, gpus_per_task={"v100": 1}), [(0, 2, 0)], "has 1 gpus of type v100; with job 0 2 "
    ),
    "GPUs that are elsewhere": (ResourceRequest(gpus_per_task={"a100": 1}), [(1, 1, 0)], "has 0 gpus; with job 0 1 "),
    "too many GPUs in all": (
        ResourceRequest(gpus_per_node={"a100": 2}, gpus_per_task={ANY_GPU: 2}), [(0, 1, 0)], "has 3 gpus; with job 0 4 "
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_a_job_may_have_what_it_asked_for(name: str) -> None:
    check_nodes(SITE, single(GOOD[name][0], *GOOD[name][1]))


@pytest.mark.parametrize("name", BAD)
def test_a_job_with_other_nodes_than_it_asked_for_is_named(name: str) -> None:
    request, places, message = BAD[name]
    with pytest.raises(InvalidPlan, match=message) as raised:
        check_nodes(SITE, single(request, *places))
    assert "job 0 " in str(raised.value)


def test_nodes_are_shared_in_time_and_given_back_first() -> None:
    four = ResourceRequest(num_tasks=4)
    check_nodes(SITE, told((four, [(0, 4, 0)], 0, 5), (four, [(0, 4, 0)], 5, 8), (ONE, [(1, 1, 0)], 0, 9)))
    check_nodes(SITE, told((four, [(0, 4, 0)], 0, 5), (ONE, [(0, 1, 0)], 3, 3)))  # takes no time
    with pytest.raises(InvalidPlan, match=r"node n0 has 4 cpus; with job 1 5 are in use at 4\.5"):
        check_nodes(SITE, told((four, [(0, 4, 0)], 0, 5), (ONE, [(0, 1, 0)], 4.5, 8)))
    half = ResourceRequest(memory_bytes_per_node=5 * MIB)
    with pytest.raises(InvalidPlan, match=r"has 8 memory; with job 1 10 are in use at 1\.0"):
        check_nodes(SITE, told((half, [(1, 1, 0)], 0, 5), (half, [(1, 1, 0)], 1, 8)))


@pytest.mark.parametrize("by_partition", [False, True])
def test_an_exclusive_job_has_its_node_alone(by_partition: bool) -> None:
    request = ResourceRequest(("alone",)) if by_partition else ResourceRequest(is_exclusive=True)
    place = (1, 1, 1) if by_partition else (1, 1, 0)
    check_nodes(SITE, told((request, [place], 0, 5), (ONE, [(1, 1, 0)], 5, 6), (ONE, [(0, 1, 0)], 0, 6)))
    with pytest.raises(InvalidPlan, match=r"node n1 has 4 cpus; with job 1 5 are in use at 4\.0"):
        check_nodes(SITE, told((request, [place], 0, 5), (ONE, [(1, 1, 0)], 4, 6)))
    with pytest.raises(InvalidPlan, match="node n1 has 4 cpus; with job 0 5"):
        check_nodes(SITE, told((request, [place], 1, 5), (ONE, [(1, 1, 0)], 0, 6)))


def test_memory_counts_in_whole_mebibytes() -> None:
    odd = replace(SITE, nodes=(replace(NODES[0], memory_bytes=8.5 * MIB), *NODES[1:]))
    check_nodes(odd, single(ResourceRequest(memory_bytes_per_node=7.5 * MIB), (0, 1, 0)))
    with pytest.raises(InvalidPlan, match="node n0 has 8 memory; with job 0 9 are in use"):
        check_nodes(odd, single(ResourceRequest(memory_bytes_per_node=8.5 * MIB), (0, 1, 0)))


def test_gpus_and_memory_of_an_exclusive_node_are_taken_too() -> None:
    whole = ResourceRequest(is_exclusive=True)
    for other in (ResourceRequest(gpus_per_task={"v100": 1}), ResourceRequest(memory_bytes_per_node=MIB)):
        with pytest.raises(InvalidPlan, match="with job 1"):
            check_nodes(SITE, told((whole, [(0, 1, 0)], 0, 5), (other, [(0, 1, 0)], 2, 3)))


def test_no_job_runs_on_a_node_while_it_is_reserved() -> None:
    site = replace(SITE, reservations=(Reservation("repair", 110, 120, ("n1", "n2")),))
    good = told((ONE, [(1, 1, 0)], 0, 10), (ONE, [(1, 1, 0)], 20, 30), (ONE, [(0, 1, 0)], 0, 30))
    check_nodes(site, replace(good, shift_s=100.0))
    for shift, job in ((99.0, 1), (101.0, 0)):
        with pytest.raises(InvalidPlan, match=f"job {job} runs on node n1 during reservation repair"):
            check_nodes(site, replace(good, shift_s=shift))


def test_a_replay_that_does_not_tell_places_is_refused() -> None:
    good = single(ONE, (0, 1, 0))
    for name in ("place_ptr", "node", "tasks", "partition"):
        with pytest.raises(InvalidPlan, match="does not say on which nodes"):
            check_nodes(SITE, replace(good, **{name: None}))
    with pytest.raises(InvalidPlan, match="does not say on which nodes"):
        check_nodes(SITE, replace(good, trace=replace(good.trace, request=None, requests=())))


def test_a_group_of_jobs_keeps_to_its_limit() -> None:
    rows = [(ONE, [(0, 1, 0)], 0.0, 5.0), (ONE, [(0, 1, 0)], 5.0, 9.0), (ONE, [(1, 1, 0)], 0.0, 9.0)]
    rows.append((ONE, [(1, 1, 0)], 0.0, 9.0))
    group = np.array([1, 1, 0, -1], np.int32)
    columns = {"limit_group": group, "group_limits": (1, 1)}
    check_nodes(SITE, told(*rows, **columns))
    rows[1] = (ONE, [(0, 1, 0)], 4.0, 9.0)
    with pytest.raises(InvalidPlan, match=r"2 jobs of group 1 run at 4\.0; its limit is 1"):
        check_nodes(SITE, told(*rows, **columns))
    check_nodes(SITE, told(*rows, **{**columns, "group_limits": (1, 2)}))


def limited(result: QueueResult, **limits: Any) -> None:
    check_nodes(replace(SITE, policy=SitePolicy(qos=(Qos("q", **limits), Qos("free")))), result)


def of_owners(*second: float) -> QueueResult:
    """Two jobs of QOS q, of other users in one account, and one of a QOS without limits."""
    start = second[0] if second else 0.0
    gpus = ResourceRequest(num_tasks=2, gpus_per_task={"a100": 1})
    rows = [(gpus, [(0, 2, 0)], 0.0, 5.0), (FOUR, [(1, 4, 0)], start, 9.0), (ONE, [(2, 1, 0)], 0.0, 9.0)]
    columns = {
        "user": np.array([0, 1, 1], np.int32),
        "account": np.array([2, 2, 2], np.int32),
        "qos": np.array([0, 0, 1], np.int32),
    }
    names = {"user_names": ("ann", "bob"), "account_names": ("a", "b", "c"), "qos_names": ("q", "free")}
    return told(*rows, **columns, meta=names)


@pytest.mark.parametrize(
    ("limit", "most", "held"),
    [
        ("max_jobs", 2, 2),
        ("max_cpus", 6, 6),
        ("max_gpus", 2, 2),
        ("max_jobs_per_account", 2, 2),
        ("max_cpus_per_account", 6, 6),
        ("max_jobs_per_user", 1, 1),
        ("max_cpus_per_user", 4, 4),
        ("max_gpus_per_user", 2, 2),
    ],
)
def test_what_a_qos_allows_at_once_is_counted_by_owner(limit: str, most: int, held: int) -> None:
    limited(of_owners(), **{limit: most})
    with pytest.raises(InvalidPlan, match=rf"{limit} of QOS 'q' is {most - 1}; {held} at 0\.0"):
        limited(of_owners(), **{limit: most - 1})


def test_what_a_qos_allows_is_free_again_at_an_end() -> None:
    limited(of_owners(5.0), max_jobs=1, max_cpus_per_account=4)
    with pytest.raises(InvalidPlan, match=r"max_jobs of QOS 'q' is 1; 2 at 4\.5"):
        limited(of_owners(4.5), max_jobs=1)


def test_unknown_owners_and_services_are_not_limited() -> None:
    result = of_owners()
    unknown = replace(result, trace=replace(result.trace, user=np.full(3, -1, np.int32), account=None))
    limited(unknown, max_jobs_per_user=0, max_jobs_per_account=0)
    limited(replace(result, trace=replace(result.trace, qos=np.full(3, -1, np.int32))), max_jobs=0)
    limited(replace(result, trace=replace(result.trace, qos=None)), max_jobs=0)


def test_gpus_per_node_count_once_for_each_node_in_a_qos() -> None:
    request = ResourceRequest(num_tasks=2, min_nodes=1, gpus_per_node={"a100": 1, "v100": 1})
    result = told((request, [(0, 2, 0)], 0, 5), qos=np.array([0], np.int32), meta={"qos_names": ("q",)})
    limited(result, max_gpus=2)
    with pytest.raises(InvalidPlan, match="max_gpus of QOS 'q' is 1; 2"):
        limited(result, max_gpus=1)


def test_a_limit_of_time_binds_jobs_that_do_not_run_beyond_it() -> None:
    """A job that was let run longer than its QOS allows was recorded so; one that only asked was not to start."""
    result = of_owners()
    for estimate, run, is_good in ((9.0, 5.0, True), (9.5, 5.0, False), (9.5, 9.5, True), (9.5, 9.0, False)):
        trace = replace(result.trace, estimate_s=np.full(3, estimate), run_s=np.full(3, run))
        if is_good:
            limited(replace(result, trace=trace), max_time_s=9.0)
        else:
            with pytest.raises(InvalidPlan, match="job 0 has a longer time limit than QOS 'q' allows"):
                limited(replace(result, trace=trace), max_time_s=9.0)

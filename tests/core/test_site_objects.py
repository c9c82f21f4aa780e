"""Sites, their policies and what jobs ask of them: limits just met and just missed, and reservations with dates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stretto.core.request import ANY_GPU, ResourceRequest, components_of
from stretto.core.site import END_OF_DATES, MAX_COUNT, Partition, Reservation, Site, SiteNode
from stretto.core.site_policy import DAY_S, QOS_LIMITS, Account, PriorityFactors, Qos, SchedulerTiming, SitePolicy
from stretto.errors import InvalidInput, StrettoError, UnknownName

NODES = (SiteNode("n0", 4, gpus={"v100": 0, "a100": 2}), SiteNode("n1", 8, gpus={"t4": 1, "a100": 1}))
PARTS = (Partition("p", ("n0", "n1")), Partition("q", ("n1",), is_default=True))


@pytest.mark.parametrize(
    ("kind", "good", "wrong", "words"),
    [
        (SiteNode, {"cpus": 1}, {"cpus": 0}, "cpus 0 must lie between 1 and 2,147,483,647"),
        (SiteNode, {"cpus": MAX_COUNT}, {"cpus": MAX_COUNT + 1}, "cpus 2147483648 must lie"),
        (SiteNode, {"gpus": {"a": 0}}, {"gpus": {"a": -1}}, "gpus of type 'a' -1 must lie between 0"),
        (SiteNode, {"memory_bytes": 1.0}, {"memory_bytes": -1.0}, "memory"),
        (SiteNode, {"memory_bytes": float("inf")}, {"memory_bytes": float("nan")}, "memory"),
        (SiteNode, {"power_w": 0.0}, {"power_w": -1.0}, "power_w -1.0 must lie between 0 and 1e9"),
        (SiteNode, {"idle_power_w": 1e9}, {"idle_power_w": 1.1e9}, "idle_power_w 1100000000.0 must lie"),
        (SiteNode, {"price_usd_per_hour": 0.0}, {"price_usd_per_hour": -0.5}, "price_usd_per_hour"),
        (Partition, {"nodes": ("a",)}, {"nodes": ()}, "has no nodes"),
        (Partition, {"nodes": ("a", "b")}, {"nodes": ("a", "b", "b")}, "names node 'b' twice"),
        (Partition, {"max_time_s": 0.5}, {"max_time_s": 0.0}, "max_time_s 0.0 must be positive"),
        (
            Partition,
            {"default_time_s": 5.0, "max_time_s": 5.0},
            {"default_time_s": 6.0, "max_time_s": 5.0},
            "default_time_s 6.0 must be positive and at most max_time_s 5.0",
        ),
        (Partition, {"default_time_s": 0.5}, {"default_time_s": 0.0}, "default_time_s 0.0 must be positive"),
        (Partition, {"max_nodes": 1}, {"max_nodes": 0}, "max_nodes 0 must be at least 1"),
        (Reservation, {"start_s": 0.0}, {"start_s": -1.0}, "start"),
        (Reservation, {"end_s": 1.5}, {"end_s": 1.0}, "ends at 1.0 s, not after its start at 1.0 s"),
        (
            Reservation,
            {"end_s": END_OF_DATES - 1, "is_dated": True},
            {"end_s": END_OF_DATES, "is_dated": True},
            "ends at Unix time 253402300800, after the year 9999",
        ),
        (Reservation, {"end_s": END_OF_DATES + 1}, {"nodes": ()}, "has no nodes"),
        (PriorityFactors, {"age": 0.0}, {"age": -1.0}, "weight -1.0 must lie between 0 and 4,294,967,296"),
        (PriorityFactors, {"qos": 2**32}, {"qos": 2**32 + 1}, "weight"),
        (PriorityFactors, {"max_age_s": 0.5}, {"max_age_s": 0.0}, "0.0 must be positive"),
        (PriorityFactors, {"half_life_s": 0.5}, {"half_life_s": 0.0}, "0.0 must be positive"),
        (Qos, {"max_time_s": 0.5}, {"max_time_s": 0.0}, "max_time_s 0.0 must be positive"),
        (Account, {"shares": 0}, {"shares": -1}, "-1 shares"),
        (SchedulerTiming, {"bf_interval_s": 1e9}, {"bf_interval_s": 2e9}, "must lie between 0 and 1e9"),
        (SchedulerTiming, {"bf_window_s": 0.5}, {"bf_window_s": 0.0}, "0.0 must lie"),
        (SchedulerTiming, {"bf_resolution_s": 0.5}, {"bf_resolution_s": 0.0}, "0.0 must lie"),
        (SchedulerTiming, {"sched_interval_s": 0.5}, {"sched_interval_s": 0.0}, "0.0 must lie"),
        (SchedulerTiming, {"bf_max_job_test": 1}, {"bf_max_job_test": 0}, "0 must be at least 1"),
        (SchedulerTiming, {"queue_depth": 1}, {"queue_depth": 0}, "0 must be at least 1"),
        (ResourceRequest, {"num_tasks": 1}, {"num_tasks": 0}, "num_tasks 0 must lie between 1"),
        (ResourceRequest, {"cpus_per_task": 1}, {"cpus_per_task": 0}, "cpus_per_task 0 must lie"),
        (ResourceRequest, {"min_nodes": 1}, {"min_nodes": 0}, "min_nodes 0 must lie"),
        (ResourceRequest, {"max_nodes": 1}, {"max_nodes": 0}, "max_nodes 0 must lie"),
        (ResourceRequest, {"tasks_per_node": MAX_COUNT}, {"tasks_per_node": 0}, "tasks_per_node 0 must lie"),
        (
            ResourceRequest,
            {"num_tasks": 3, "min_nodes": 3, "max_nodes": 3},
            {"num_tasks": 3, "min_nodes": 3, "max_nodes": 2},
            "max_nodes 2 is below min_nodes 3",
        ),
        (
            ResourceRequest,
            {"num_tasks": 2, "min_nodes": 2},
            {"num_tasks": 2, "min_nodes": 3},
            "2 tasks cannot be spread over at least 3 nodes",
        ),
        (ResourceRequest, {"memory_bytes_per_cpu": 0.0}, {"memory_bytes_per_cpu": -1.0}, "must be finite and not neg"),
        (
            ResourceRequest,
            {"memory_bytes_per_node": 1e18},
            {"memory_bytes_per_node": float("inf")},
            "memory_bytes_per_node inf must be finite",
        ),
        (
            ResourceRequest,
            {"memory_bytes_per_cpu": 1.0},
            {"memory_bytes_per_cpu": 1.0, "memory_bytes_per_node": 1.0},
            "per CPU and per node",
        ),
        (ResourceRequest, {"gpus_per_task": {"a": 0}}, {"gpus_per_task": {"a": -1}}, "gpus_per_task of type 'a' -1"),
        (ResourceRequest, {"gpus_per_node": {"a": 0}}, {"gpus_per_node": {"a": -1}}, "gpus_per_node of type 'a' -1"),
    ],
)
def test_limits_are_just_met_and_just_missed(
    kind: Any, good: dict[str, Any], wrong: dict[str, Any], words: str
) -> None:
    some = {
        SiteNode: {"name": "x", "cpus": 1},
        Partition: {"name": "x", "nodes": ("a",)},
        Reservation: {"name": "x", "start_s": 1.0, "end_s": 2.0, "nodes": ("a",)},
        Qos: {"name": "x"},
        Account: {"name": "x"},
    }.get(kind, {})
    made = kind(**{**some, **good})
    assert all(getattr(made, name) == value for name, value in good.items())
    with pytest.raises(InvalidInput) as raised:
        kind(**{**some, **wrong})
    assert words in str(raised.value)
    place = {
        SiteNode: "node x", Partition: "partition x", Reservation: "reservation x", Qos: "qos x", Account: "account x",
        ResourceRequest: "request",
    }.get(kind)  # fmt: skip
    if kind is PriorityFactors:
        place = f"priority.{next(iter(wrong))}"
    if kind is SchedulerTiming:
        place = f"scheduler.{next(iter(wrong))}"
    assert getattr(raised.value, "field", None) == place


@pytest.mark.parametrize("name", QOS_LIMITS)
def test_every_limit_of_a_qos_is_a_field_that_is_not_negative(name: str) -> None:
    assert getattr(Qos("q"), name) is None
    assert getattr(Qos("q", **{name: 0}), name) == 0
    with pytest.raises(InvalidInput, match=f"{name} -1 must not be negative"):
        Qos("q", **{name: -1})


def test_what_is_not_said_is_what_slurm_takes() -> None:
    timing, factors = SchedulerTiming(), PriorityFactors()
    assert (timing.bf_interval_s, timing.bf_window_s, timing.bf_resolution_s, timing.sched_interval_s) == (
        30.0, DAY_S, 60.0, 60.0,
    )  # fmt: skip
    assert (timing.has_backfill, timing.bf_continue, timing.bf_max_job_test, timing.queue_depth) == (
        True, False, 500, 100,
    )  # fmt: skip
    assert (factors.max_age_s, factors.half_life_s, factors.favors_small) == (604800.0, 604800.0, False)
    assert SitePolicy() == SitePolicy(None, None, (), ())
    assert DAY_S == 24 * 3600


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"nodes": ()}, "site 's' has no nodes"),
        ({"nodes": (*NODES, NODES[0])}, "'n0' is defined twice"),
        ({"partitions": ()}, "site 's' has no partitions"),
        ({"partitions": (*PARTS, Partition("p", ("n0",)))}, "'p' is defined twice"),
        ({"partitions": (*PARTS, Partition("r", ("n0",), is_default=True))}, "q and r are both the default partition"),
        ({"partitions": (Partition("p", ("n2",)),)}, "node of partition p"),
        ({"reservations": (Reservation("r", 0, 1, ("n9",)),)}, "node of reservation r"),
        (
            {"reservations": (Reservation("late", 9, 20, ("n1",)), Reservation("r", 0, 10, ("n0", "n1")))},
            "overlaps with reservation 'r' on node 'n1': it starts at 9 s, the other one ends at 10 s",
        ),
    ],
)
def test_a_site_that_contradicts_itself_is_refused(changes: dict[str, Any], words: str) -> None:
    Site("s", NODES, PARTS)
    with pytest.raises(StrettoError) as raised:
        replace(Site("s", NODES, PARTS), **changes)
    assert words in str(raised.value)


def test_reservations_may_touch_be_elsewhere_or_have_another_clock() -> None:
    rows = (
        Reservation("a", 0, 10, ("n0",)),
        Reservation("b", 10, 20, ("n0",)),
        Reservation("c", 5, 15, ("n1",)),
        Reservation("d", 0, 20, ("n0",), is_dated=True),
    )
    assert Site("s", NODES, PARTS, rows).reservations == rows


def test_a_site_is_asked_for_its_parts() -> None:
    site = Site("s", NODES, PARTS)
    assert site.default_partition.name == "q"
    assert replace(site, partitions=(PARTS[0], Partition("r", ("n0",)))).default_partition.name == "p"
    assert site.gpu_types == ("a100", "t4")
    assert site.num_cpus == 12
    assert site.partition("q") is PARTS[1]
    with pytest.raises(UnknownName, match="partition"):
        site.partition("z")


def test_dates_are_counted_from_a_moment() -> None:
    rows = (
        Reservation("old", 100, 200, ("n0",), is_dated=True),
        Reservation("now", 150, 210, ("n1",), is_dated=True),
        Reservation("soon", 260, 300, ("n1",), is_dated=True),
        Reservation("plain", 500, 509, ("n0",)),
    )
    site = Site("s", NODES, PARTS, rows, notes=("read",))
    moved = site.since(200.0)
    assert [(item.name, item.start_s, item.end_s, item.is_dated) for item in moved.reservations] == [
        ("now", 0.0, 10.0, False),
        ("soon", 60.0, 100.0, False),
        ("plain", 500, 509, False),
    ]
    assert moved.notes == ("read", "reservations that ended before the first submission are left out: 1")
    assert site.since(99.0).notes == ("read",)
    assert moved.since(None) is moved
    with pytest.raises(InvalidInput, match="reservation 'old' has a date"):
        site.since(None)


def test_a_site_later_has_less_before_it() -> None:
    rows = (Reservation("a", 0, 10, ("n0",)), Reservation("b", 10, 20, ("n0",)), Reservation("c", 25, 30, ("n0",)))
    later = Site("s", NODES, PARTS, rows).later(10.0)
    assert [(item.name, item.start_s, item.end_s) for item in later.reservations] == [
        ("b", 0.0, 10.0),
        ("c", 15.0, 20.0),
    ]


def test_requests_count_their_processors_and_are_equal_by_what_they_ask() -> None:
    request = ResourceRequest(num_tasks=3, cpus_per_task=4, gpus_per_task={ANY_GPU: 1, "a": 2})
    assert request.num_cpus == 12
    same = ResourceRequest(num_tasks=3, cpus_per_task=4, gpus_per_task={"a": 2, ANY_GPU: 1})
    assert (request, hash(request)) == (same, hash(same))
    others = [
        replace(request, gpus_per_task={"a": 2}),
        replace(request, gpus_per_node={"a": 1}),
        replace(request, partitions=("p",)),
        replace(request, features=frozenset("f")),
        replace(request, is_exclusive=True),
        replace(request, memory_bytes_per_cpu=1.0),
        replace(request, num_tasks=4),
    ]
    assert len({hash(one) for one in [request, *others]}) == 8
    assert components_of(request) == (request,)
    assert components_of((request, same)) == (request, same)

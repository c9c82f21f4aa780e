"""Clusters, kinds of devices, pools, units and budgets: what they refuse, in which words, and what they work out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stretto.core import units
from stretto.core.cluster import MAX_DEVICES, Cluster, Device, KindRule
from stretto.core.graph import TaskGraph
from stretto.core.heterogeneity import durations
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.pool import Pool, Spot
from stretto.errors import Infeasible, InvalidInput

INF = float("inf")
NAN = float("nan")


@pytest.mark.parametrize("speed", [0.0, -1.0, INF, NAN])
def test_a_device_has_a_speed(speed: float) -> None:
    with pytest.raises(InvalidInput, match="must be positive and finite") as caught:
        Device("d", speed=speed)
    assert caught.value.field == "device d"


@pytest.mark.parametrize("what", ["memory_bytes", "cores", "price_usd_per_hour"])
def test_a_device_has_no_negative_parts(what: str) -> None:
    assert getattr(Device("d", **{what: 0.0}), what) == 0.0
    for wrong in (-1.0, NAN):
        with pytest.raises(InvalidInput, match=rf"{what} {wrong} must not be negative"):
            Device("d", **{what: wrong})


def matrix(m: int, value: float, *, corner: float | None = None) -> np.ndarray:
    found = np.full((m, m), float(value))
    if corner is not None:
        found[0, 1] = corner
    return found


TWO = (Device("a"), Device("b", "gpu"))


@pytest.mark.parametrize(
    ("devices", "latency", "bandwidth", "field", "words"),
    [
        ((), matrix(0, 0), matrix(0, 1), "devices", "the cluster has no devices"),
        ((Device("a"), Device("a")), matrix(2, 0), matrix(2, 1), "devices", "two devices are called 'a'"),
        (TWO, matrix(3, 0), matrix(2, 1), "latency", "latency has shape (3, 3), expected (2, 2)"),
        (TWO, matrix(2, 0), matrix(1, 1), "bandwidth", "bandwidth has shape (1, 1), expected (2, 2)"),
        (TWO, matrix(2, 0, corner=-1), matrix(2, 1), "latency", "latency -1.0 from a to b"),
        (TWO, matrix(2, 0, corner=INF), matrix(2, 1), "latency", "latency inf from a to b"),
        (TWO, matrix(2, 0), matrix(2, 1, corner=0), "bandwidth", "bandwidth 0.0 from a to b must be positive"),
        (TWO, matrix(2, 0), matrix(2, 1, corner=NAN), "bandwidth", "bandwidth nan from a to b must be positive"),
    ],
)
def test_a_wrong_cluster_is_refused(devices: Any, latency: Any, bandwidth: Any, field: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Cluster(devices, latency, bandwidth)
    assert words in str(caught.value)
    assert caught.value.field == field


def test_what_stands_on_a_diagonal_does_not_matter() -> None:
    odd = np.array([[NAN, 1.0], [2.0, -1.0]])
    cluster = Cluster(TWO, odd, odd)
    assert (cluster.num_devices, cluster.kinds) == (2, ("cpu", "gpu"))


def test_the_shorthand(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Cluster.parse(" cpu:2x0.5, gpu,cpu:1x1e1 @ 2GB/s")
    assert [(d.name, d.kind, d.speed) for d in found.devices] == [
        ("cpu0", "cpu", 0.5),
        ("cpu1", "cpu", 0.5),
        ("gpu0", "gpu", 1.0),
        ("cpu2", "cpu", 10.0),
    ]
    assert found.bandwidth[0, 1] == 2e9
    assert found.latency_s.tolist() == np.zeros((4, 4)).tolist()
    monkeypatch.setattr("stretto.core.cluster.MAX_DEVICES", 6)  # the real limit would fill a gigabyte
    assert Cluster.parse("gpu:2,cpu:4").num_devices == 6


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'' is not KIND:COUNT"),
        ("cpu:2,,gpu:1", "'' is not KIND:COUNT"),
        ("cpu:-1", "'cpu:-1' is not KIND:COUNT"),
        ("cpu:0", f"'cpu:0': between 1 and {MAX_DEVICES} devices"),
        (f"cpu:{MAX_DEVICES},gpu:1", f"'gpu:1': between 1 and {MAX_DEVICES} devices"),
        ("cpu:1x1.2.3", "'cpu:1x1.2.3': '1.2.3' is not a speed"),
        ("cpu:1x0", "speed 0.0 must be positive and finite"),
        ("cpu:1@fast", "'fast' is not a bandwidth"),
    ],
)
def test_a_wrong_shorthand_is_told(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Cluster.parse(text)
    assert words in str(caught.value)


def test_speeds_alone_make_a_cluster() -> None:
    bandwidth = np.array([[1.0, 2.0], [3.0, 4.0]])
    found = Cluster.related([1.0, 4.0], bandwidth=bandwidth, latency_s=0.5, kind="node")
    assert [(d.name, d.kind, d.speed) for d in found.devices] == [("node0", "node", 1.0), ("node1", "node", 4.0)]
    assert found.bandwidth.tolist() == bandwidth.tolist()
    assert found.latency_s.tolist() == [[0.0, 0.5], [0.5, 0.0]]
    assert Cluster.related([1, 1], bandwidth=7.0).bandwidth.tolist() == [[7.0, 7.0], [7.0, 7.0]]


# Kinds --------------------------------------------------------------------------------------------

GRAPH = TaskGraph.from_edges(
    [4.0, 8.0],
    [],
    [],
    kinds=("cpu", "accelerator"),
    kind_duration_s=np.array([[4.0, 1.0], [8.0, INF]]),
    categories=("load", "train"),
    category=np.array([0, 1], np.int32),
)


def seconds(cluster: Cluster, graph: TaskGraph = GRAPH) -> list[list[float]]:
    table, device_class = durations(graph, cluster)
    found: list[list[float]] = table[:, device_class].T.tolist()
    return found


def ruled(**rules: KindRule) -> Cluster:
    return replace(Cluster.parse("cpu:1x2,gpu:1"), rules=rules)


def test_accelerators_take_the_durations_of_accelerators() -> None:
    assert seconds(Cluster.parse("cpu:1x2,gpu:1x0.5")) == [[2.0, 4.0], [2.0, INF]]
    assert seconds(ruled(gpu=KindRule(like="cpu"))) == [[2.0, 4.0], [4.0, 8.0]]


def test_rules_speed_up_and_forbid() -> None:
    assert seconds(ruled(cpu=KindRule(factor={"tr*": 4.0}))) == [[2.0, 1.0], [1.0, INF]]
    assert seconds(ruled(gpu=KindRule(never=("load",), like="cpu"))) == [[2.0, 4.0], [INF, 8.0]]
    assert seconds(ruled(gpu=KindRule(only=("load",), like="cpu"))) == [[2.0, 4.0], [4.0, INF]]
    assert seconds(ruled(gpu=KindRule(factor={"*": 2.0, "load": 4.0}, like="cpu"))) == [[2.0, 4.0], [1.0, 4.0]]
    plain = TaskGraph.from_edges([4.0], [], [])
    assert seconds(ruled(gpu=KindRule(never=("load",))), plain) == [[2.0], [4.0]]
    assert seconds(ruled(gpu=KindRule(only=("load",))), plain) == [[2.0], [INF]]


def test_equal_devices_are_one_class() -> None:
    table, device_class = durations(GRAPH, Cluster.parse("cpu:3,gpu:1,cpu:1,cpu:1x2"))
    assert device_class.tolist() == [0, 0, 0, 1, 0, 2]
    assert table.shape == (2, 3)


def test_kinds_without_durations_are_told_with_a_way_out() -> None:
    with pytest.raises(InvalidInput) as caught:
        durations(GRAPH, Cluster.parse("cpu:1,dsp:1"))
    assert "has durations for cpu, accelerator, none for 'dsp'" in str(caught.value)
    assert "[kinds.dsp] like = 'cpu'" in str(caught.value)
    assert caught.value.field == "device dsp0"


def test_a_task_that_fits_nowhere_says_what_it_needs() -> None:
    big = replace(GRAPH, name="flow", memory_bytes=np.array([5.0, 50.0]), cores=np.array([1.0, 64.0]))
    cluster = Cluster.uniform([Device("a", memory_bytes=10.0, cores=8.0), Device("b", memory_bytes=49.0, cores=32.0)])
    with pytest.raises(Infeasible) as caught:
        durations(big, cluster)
    text = str(caught.value)
    assert "task 't1' of graph 'flow' fits no device of 'cluster'" in text
    assert "memory 50 B (most: 49); cores 64 (most: 32); a kind among cpu, accelerator that can run it" in text
    assert "more" not in text
    nobody = replace(cluster, rules={"cpu": KindRule(never=("*",))})
    with pytest.raises(Infeasible, match=r"task 't0' \(and 1 more\) .* it needs a device whose rule admits it"):
        durations(TaskGraph.from_edges([1.0, 1.0], [], []), nobody)
    just = replace(GRAPH, memory_bytes=np.array([5.0, 49.0]), cores=np.array([1.0, 32.0]))
    assert seconds(cluster, just) == [[4.0, INF], [4.0, 8.0]]


def test_a_task_runs_where_its_needs_are_just_met() -> None:
    table = np.array([[1.0, 2.0], [1.0, 2.0]])
    graph = TaskGraph.from_edges([9.0, 9.0], [], [], kinds=("cpu", "gpu"), kind_duration_s=table)
    devices = [
        Device("a", memory_bytes=5.0, cores=2.0, gpus=1.0),
        Device("b", "gpu", memory_bytes=4.0, cores=1.0, gpus=0.0),
    ]
    for needs, expected in (
        ({"memory_bytes": np.array([5.0, 4.0])}, [[1, 1], [INF, 2]]),
        ({"cores": np.array([2.0, 1.0])}, [[1, 1], [INF, 2]]),
        ({"gpus": np.array([1.0, 0.0])}, [[1, 1], [INF, 2]]),
        ({"gpus": np.array([0.0, 0.5])}, [[1, 1], [2, INF]]),
    ):
        assert seconds(Cluster.uniform(devices), replace(graph, **needs)) == expected
    with pytest.raises(Infeasible, match=r"it needs GPUs 2 \(most: 1\); a kind among cpu, gpu that can run it$"):
        durations(replace(graph, gpus=np.array([2.0, 0.0])), Cluster.uniform(devices))
    named = replace(TaskGraph.from_edges([1.0], [], []), other_needs={"x": np.array([2.0])})
    node = Device("n", cores=1.0, packs=True, resources=(("x", 1.0),))
    with pytest.raises(Infeasible, match=r"it needs x 2 \(most: 1\)$"):
        durations(named, Cluster.uniform([node]))


def test_nodes_hold_what_fits_when_they_are_empty() -> None:
    graph = TaskGraph.from_edges([6.0, 6.0, 6.0], [], [], cores=np.array([2.0, 2.1, 0.0]))
    nodes = [Device("n", "cpu", 2.0, cores=2.0, packs=True), Device("m", "cpu", 3.0, cores=4.0, packs=True)]
    assert seconds(Cluster.uniform(nodes), graph) == [[3, INF, 3], [2, 2, 2]]
    slower = replace(Cluster.uniform(nodes), rules={"cpu": KindRule(factor={"*": 0.5})})
    assert seconds(slower, graph) == [[6, INF, 6], [4, 4, 4]]


def test_kinds_are_found_as_themselves_then_as_accelerators() -> None:
    table = np.array([[1.0, 2.0, 3.0]])
    graph = TaskGraph.from_edges([9.0], [], [], kinds=("cpu", "accelerator", "gpu"), kind_duration_s=table)
    for kind, expected in (("cpu", 1), ("gpu", 3), ("fpga", 2), ("tpu", 2), ("npu", 2), ("accelerator", 2)):
        assert seconds(Cluster.uniform([Device("d", kind)]), graph) == [[expected]]
    like = replace(Cluster.uniform([Device("d", "fpga")]), rules={"fpga": KindRule(like="gpu")})
    assert seconds(like, graph) == [[3]]
    with pytest.raises(InvalidInput, match="none for 'dsp'"):
        seconds(replace(like, rules={"fpga": KindRule(like="dsp")}), graph)


def test_rules_exclude_before_they_speed_up() -> None:
    both = KindRule(factor={"*": 4.0, "train": 0}, like="cpu")
    assert seconds(ruled(gpu=both)) == [[2.0, 4.0], [1.0, INF]]
    never = KindRule(factor={"*": 4.0}, never=("lo*", "nothing"), only=("*",), like="cpu")
    assert seconds(ruled(gpu=never)) == [[2.0, 4.0], [INF, 2.0]]


# Units --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.parse_bytes, "16GB", 16e9),
        (units.parse_bytes, " 2 KiB ", 2048.0),
        (units.parse_bytes, "1kB", 1e3),
        (units.parse_bytes, 7, 7.0),
        (units.parse_bytes, "0", 0.0),
        (units.parse_rate, "10Gbit/s", 1.25e9),
        (units.parse_rate, "3TB/s", 3e12),
        (units.parse_rate, "8bit/s", 1.0),
        (units.parse_seconds, "50us", 5e-5),
        (units.parse_seconds, "1.5e3ns", 1.5e-6),
        (units.parse_seconds, "2min", 120.0),
        (units.parse_seconds, "2h", 7200.0),
    ],
)
def test_quantities(parse: Any, text: Any, value: float) -> None:
    assert parse(text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("parse", "text", "words"),
    [
        (units.parse_bytes, "16gb", "'16gb' is not a size; units: B, KB, MB"),
        (units.parse_bytes, "-1", "is not a size"),
        (units.parse_bytes, -1.0, "must not be negative or NaN"),
        (units.parse_bytes, NAN, "must not be negative or NaN"),
        (units.parse_bytes, True, "True is not a size"),
        (units.parse_bytes, 10**400, "a number of 401 digits is not a size"),
        (units.parse_bytes, None, "None is not a size"),
        (units.parse_bytes, "1.2.3GB", "'1.2.3GB' is not a size"),
        (units.parse_rate, "10GB", "'10GB' is not a bandwidth; units: B/s"),
        (units.parse_seconds, "3 weeks", "'3 weeks' is not a time; units: s, ms"),
    ],
)
def test_wrong_quantities(parse: Any, text: Any, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(text)
    assert words in str(caught.value)


def test_quantities_for_people() -> None:
    times = [0.0, INF, 5e-9, 2.5e-5, 0.0123456, 1.0, 59.996, 9999.4, 12345.6, -0.002]
    written = ["0 s", "inf s", "5 ns", "25 µs", "12.35 ms", "1 s", "60 s", "9999 s", "12,346 s", "-2 ms"]
    assert [units.format_seconds(value) for value in times] == written
    sizes = [0.0, 999.0, 1000.0, 2.5e6, 1e9, 3e12, -4e3]
    assert [units.format_bytes(value) for value in sizes] == ["0 B", "999 B", "1 kB", "2.5 MB", "1 GB", "3 TB", "-4 kB"]


# Pools, budgets, plans ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_nodes": 0}, "at least one node with one processor"),
        ({"procs_per_node": 0}, "at least one node with one processor"),
        ({"min_nodes": 5}, "min_nodes 5 is not in 0..4"),
        ({"min_nodes": -1}, "min_nodes -1 is not in 0..4"),
        ({"speed": 0.0}, "speed 0.0 must be positive"),
        ({"speed": INF}, "speed inf must be positive"),
        ({"price_usd_per_hour": -1.0}, "price_usd_per_hour -1.0 must not be negative"),
        ({"provision_s": NAN}, "provision_s nan must not be negative"),
        ({"idle_shutdown_s": -1.0}, "idle_shutdown_s -1.0 must not be negative"),
        ({"gpus_per_node": -1}, "gpus_per_node -1 must not be negative"),
        ({"memory_bytes_per_node": -1.0}, "memory_bytes_per_node -1.0 must not be negative"),
        ({"billing_s": 0.0}, "billing_s 0.0 must be positive"),
    ],
)
def test_a_wrong_pool_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        replace(Pool("p", 4), **changes)
    assert words in str(caught.value)
    assert caught.value.field == "pool p"


def test_pools_that_are_just_right() -> None:
    assert Pool("p", 4, procs_per_node=3).num_procs == 12
    assert not Pool("p", 4).is_elastic
    assert not Pool("p", 4, min_nodes=4).is_elastic
    assert Pool("p", 4, min_nodes=0, price_usd_per_hour=0.0, provision_s=0.0, idle_shutdown_s=0.0).is_elastic


def test_wrong_spot_series_are_refused() -> None:
    one, two = np.zeros(1), np.array([0.0, 1.0])
    assert Spot(two, two, two).checkpoint_s == INF
    for wrong in ((one, two, two), (two, one, two), (two, two, one), (np.zeros(0),) * 3):
        with pytest.raises(InvalidInput, match="need one length"):
            Spot(*wrong)
    for times in (np.array([1.0, 2.0]), np.array([0.0, 0.0]), np.array([0.0, -1.0])):
        with pytest.raises(InvalidInput, match="start at zero and ascend"):
            Spot(times, two, two)
    for price, hazard in ((-two, two), (two, -two)):
        with pytest.raises(InvalidInput, match="must not be negative"):
            Spot(two, price, hazard)


def test_budgets() -> None:
    assert Budget(seed=0, time_limit_s=1e-9).num_threads == 2
    for limit in (0.0, -1.0, NAN):
        with pytest.raises(InvalidInput, match="must be positive") as caught:
            Budget(time_limit_s=limit)
        assert caught.value.field == "time_limit_s"
    with pytest.raises(InvalidInput, match="-1 must not be negative"):
        Budget(seed=-1)


def test_a_plan_from_times_puts_tasks_of_no_length_first() -> None:
    topo = np.array([2, 0, 1, 3], np.int32)
    start, finish = np.array([1.0, 1.0, 1.0, 0.0]), np.array([1.0, 5.0, 1.0, 1.0])
    plan = Plan.from_times(np.zeros(4, np.int32), start, finish, topo, note="x")
    assert plan.order.tolist() == [3, 2, 0, 1]
    assert plan.rank.tolist() == [2, 3, 1, 0]
    assert (plan.discipline, plan.info) == ("sequence", {"note": "x"})

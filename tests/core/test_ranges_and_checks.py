"""Ranges of numbers, checks of arguments and limits of size: what lies at their edges, and what is said beyond."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from stretto.core import argument_checks as checks
from stretto.core import machine, problem_size, topology
from stretto.core.cluster import Cluster, Device, KindRule, Links
from stretto.core.graph import TaskGraph
from stretto.core.kernels.records import PlainRecord
from stretto.core.machine import Machine, Part, rack_of
from stretto.core.machine_presets import hgx8, power8_m1, power8_m2, two_nics
from stretto.core.magnitudes import Range, first
from stretto.core.pool import MAX_NODES, MAX_PROCS, Pool, Spot
from stretto.core.pool_fit import pool_widths, runnable
from stretto.core.topology import Wire, route
from stretto.core.trace import Trace
from stretto.errors import InvalidInput

ONE, TWO = np.zeros(1), np.array([0.0, 5.0])
_PRICES, _BYTES = "0, or 1e-09 to 1e+09 USD/h", "0, or 1e-09 to 1e+18 bytes"
_AT_MOST = "a pool has at most 10,000,000 nodes and 2,147,483,647 processors"


def at_least_two(**counts: int) -> None:
    checks.at_least(2, **counts)


@pytest.mark.parametrize("has_zero", [True, False])
@pytest.mark.parametrize("has_infinity", [True, False])
def test_a_range_says_of_one_number_what_it_says_of_many(has_zero: bool, has_infinity: bool) -> None:
    supported = Range(2.0, 8.0, "s", has_zero, has_infinity)
    values = [0.0, 1.9, 2.0, 5.0, 8.0, 8.1, inf, -inf, nan, -5.0]
    good = [has_zero, False, True, True, True, False, has_infinity, False, False, False]
    assert [supported.holds(value) for value in values] == good
    assert supported.outside(np.array(values)).tolist() == [not one for one in good]
    assert supported.first_outside(np.array([5.0, 2.0])) is None
    assert supported.first_outside(np.array([[5.0, 2.0], [1.0, 9.0]])) == 2
    start, end = "0, or " * has_zero, ", or inf" * has_infinity
    assert str(supported) == f"{start}2 to 8 s{end}"
    assert str(replace(supported, unit="")) == f"{start}2 to 8{end}"
    finite = "it must be finite and not negative" if has_zero else "it must be finite and positive"
    assert [supported.why_not(value) for value in (1.0, 0.0, -1.0, nan)] == [
        f"supported: {supported}", f"supported: {supported}", finite, finite,
    ]  # fmt: skip
    supported.check(2.0, "it", field="f")
    with pytest.raises(InvalidInput) as caught:
        supported.check(1.5, "the time", field="place")
    assert str(caught.value) == f"place: the time 1.5 is out of range; supported: {supported}"


def test_the_first_of_a_mask() -> None:
    assert first(np.array([False, False, True, True])) == 2
    assert first(np.array([True])) == 0
    assert first(np.zeros(3, bool)) is first(np.zeros(0, bool)) is None


@pytest.mark.parametrize(
    ("check", "good", "wrong", "text"),
    [
        (checks.positive, [5e-324, 1e308], [0.0, -1.0, inf, nan, "1"], "must be positive and finite"),
        (checks.not_negative, [0, 0.0, 1e308], [-5e-324, inf, nan, None], "must be finite and not negative"),
        (checks.share, [0, 1, 0.5], [-0.001, 1.001, nan, inf], "must lie between 0 and 1"),
        (
            lambda **v: checks.at_least(2, **v),
            [2, 2.0, 10**9],
            [1, 1.5, True, inf],
            "must be a whole number of at least 2",
        ),
        (lambda **v: checks.at_least(2, **v), [10**9], [10**9 + 1], "must be at most 1,000,000,000"),
    ],
)
def test_arguments_at_the_edge(check: Callable[..., None], good: list[Any], wrong: list[Any], text: str) -> None:
    for value in good:
        check(first=value, second=good[0])
    for value in wrong:
        with pytest.raises(InvalidInput) as caught:
            check(first=good[0], second=value)
        assert str(caught.value) == f"second: {value!r} {text}"


def test_trees_have_the_sum_of_their_levels() -> None:
    for arity in (2, 3, 5):
        for depth in range(6):
            assert checks.tree_tasks(depth, arity) == sum(arity**level for level in range(depth + 1))
    assert checks.tree_tasks(7, 1) == 8.0
    assert checks.tree_tasks(10**9, 1) == 10**9 + 1.0
    assert checks.tree_tasks(64, 2) == 2.0**65 - 1
    assert checks.tree_tasks(65, 2) == inf


# Sizes --------------------------------------------------------------------------------------------


def test_links_and_tables_of_a_problem_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """80 bytes per pair of devices, 16 per task and device, 200 per task, 60 per read; half of the memory at most."""
    monkeypatch.setattr(
        problem_size, "process_memory_bytes", lambda: 2 * (80 * 10**2 + 16 * 50 * 10 + 200 * 50 + 60 * 7)
    )
    problem_size.check_problem_size(50, 7, 10)
    for larger in ((51, 7, 10), (50, 8, 10), (50, 7, 11)):
        with pytest.raises(InvalidInput):
            problem_size.check_problem_size(*larger)
    monkeypatch.setattr(problem_size, "process_memory_bytes", lambda: 2 * 80 * 10**2)
    problem_size.check_num_devices(10)
    with pytest.raises(InvalidInput) as caught:
        problem_size.check_num_devices(11)
    assert caught.value.field == "cluster"


def test_refusals_of_size_say_how_much_is_needed_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem_size, "process_memory_bytes", lambda: 2**30)
    with pytest.raises(InvalidInput) as caught:
        problem_size.check_num_devices(5000)
    assert str(caught.value) == (
        "cluster: 5,000 devices need about 1.9 GiB; a problem may take half of the 1.0 GiB that this process may use "
        "(links join every pair of them: take fewer devices)"
    )
    with pytest.raises(InvalidInput) as caught:
        problem_size.check_problem_size(1_000_000, 0, 100)
    assert str(caught.value) == (
        "cluster: 1,000,000 tasks on 100 devices need about 1.7 GiB; a problem may take half of the 1.0 GiB that this "
        "process may use (take fewer devices, or plan the graph in parts)"
    )


def test_routes_are_limited_by_devices_and_links(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = [Wire(0, 1, 5.0), Wire(1, 2, 5.0)]  # 1 + 2 links from each end, 2 from the middle: 8
    monkeypatch.setattr(topology, "MAX_HOPS", 8)
    assert route(["a", "b", "c"], 3, chain)[2].route.tolist() == [0, 0, 2, 1, 2, 3, 1, 3]
    monkeypatch.setattr(topology, "MAX_HOPS", 7)
    with pytest.raises(InvalidInput) as caught:
        route(["a", "b", "c"], 3, chain)
    assert str(caught.value) == "link: the routes between 3 devices pass more than 7 links; join them by switches"
    monkeypatch.setattr(topology, "MAX_ROUTED_DEVICES", 3)
    monkeypatch.setattr(topology, "MAX_HOPS", 8)
    assert route(["a", "b", "c"], 3, chain)[0].tolist() == [[0.0] * 3] * 3
    with pytest.raises(InvalidInput, match="4 devices; routes are limited to 3"):
        route(["a", "b", "c", "d"], 4, chain)


def test_machines_are_limited_by_their_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = (Part("mem", "memory"), Part("a", "cpu"), Part("b", "cpu"))
    links = (("a", "mem"), ("b", "mem"))
    monkeypatch.setattr(machine, "MAX_PARTS", 3)
    assert Machine("m", parts, links).of_kind("cpu") == (1, 2)
    monkeypatch.setattr(machine, "MAX_PARTS", 2)
    with pytest.raises(InvalidInput) as caught:
        Machine("m", parts, links)
    assert str(caught.value) == "m: 3 parts; a machine has at most 2"
    with pytest.raises(InvalidInput, match=r"^p: capacity 1e-07 is out of range"):
        Part("p", "memory", 1e-7)


def test_machines_that_come_with_stretto_have_their_names_and_sizes() -> None:
    made = {"m1": power8_m1(), "m2": power8_m2(), "hgx8": hgx8(), "two-nics": two_nics()}
    assert {name: found.name for name, found in made.items()} == {name: name for name in made}
    counts = {
        name: tuple(len(found.of_kind(kind)) for kind in ("memory", "core", "cpu", "gpu", "fpga", "nic", "pcie-switch"))
        for name, found in made.items()
    }
    assert counts == {
        "m1": (2, 2, 4, 3, 1, 1, 2), "m2": (2, 2, 4, 1, 1, 1, 2), "hgx8": (2, 16, 32, 8, 0, 4, 4),
        "two-nics": (2, 4, 4, 2, 0, 2, 2),
    }  # fmt: skip
    assert [part.model for part in made["m1"].parts if part.kind == "fpga"] == ["7v3"]
    assert [part.model for part in made["m2"].parts if part.kind == "fpga"] == ["385"]
    for found in made.values():
        assert {part.model for part in found.parts if part.kind not in ("cpu", "gpu", "fpga")} == {""}
        assert found.meta == {}
        # A PCIe switch carries no more than its root complex, and a NIC no more than its switch.
        best = {kind: max(p.capacity for p in found.parts if p.kind == kind) for kind in ("root-complex", "nic")}
        switch = min(p.capacity for p in found.parts if p.kind == "pcie-switch")
        assert best["nic"] <= switch < best["root-complex"]
    assert rack_of([made["m1"]]).num_processors == 4 + 3 + 1 + 1


# Pools, links and rules ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"minimum_s": -1.0}, "minimum_s -1 is out of range; it must be finite and not negative"),
        ({"minimum_s": 1e13}, "minimum_s 1e+13 is out of range; supported: 0, or 1e-12 to 1e+12 s"),
        ({"speed": 1e-10}, "speed 1e-10 is out of range; supported: 1e-09 to 1e+09"),
        ({"price_usd_per_hour": 1e10}, f"price_usd_per_hour 1e+10 is out of range; supported: {_PRICES}"),
        ({"memory_bytes_per_node": 1e19}, f"memory_bytes_per_node 1e+19 is out of range; supported: {_BYTES}, or inf"),
        ({"billing_s": 1e13}, "billing_s 1e+13 is out of range; supported: 0, or 1e-12 to 1e+12 s"),
        ({"provision_s": 1e13}, "provision_s 1e+13 is out of range; supported: 0, or 1e-12 to 1e+12 s"),
        ({"idle_shutdown_s": 1e13}, "idle_shutdown_s 1e+13 is out of range; supported: 0, or 1e-12 to 1e+12 s, or inf"),
        (
            {"spot": Spot(ONE, ONE, ONE), "promised": True},
            "promised starts cannot count on spot nodes, which may be taken back: leave promised out",
        ),
        ({"num_nodes": MAX_NODES + 1}, f"10000001 nodes with 1 processors each; {_AT_MOST}"),
        ({"num_nodes": 2, "procs_per_node": 2**30}, f"2 nodes with 1073741824 processors each; {_AT_MOST}"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_pool(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        replace(Pool("p", 4), **changes)
    assert str(caught.value) == f"pool p: {text}"


def test_pools_at_their_limits() -> None:
    assert Pool("p", MAX_NODES).num_procs == MAX_NODES
    assert Pool("p", 1, procs_per_node=MAX_PROCS).num_procs == MAX_PROCS
    spot = Spot(ONE, ONE, ONE)
    pools = (Pool("p", 4), Pool("p", 4, min_nodes=0), Pool("p", 4, min_nodes=0, promised=True), Pool("p", 4, spot=spot))
    assert [pool.is_elastic for pool in pools] == [False, True, True, False]
    assert [pool.keeps_promises for pool in pools] == [True, False, True, False]
    assert Pool("p", 4, minimum_s=0.0, spot=spot).minimum_s == 0.0


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"time_s": np.array([0.0, 1e13])}, "spot: time_s 1e+13 is out of range; supported: 0, or 1e-12 to 1e+12 s"),
        (
            {"price_usd_per_hour": np.array([0.0, 1e10])},
            f"spot: price_usd_per_hour 1e+10 is out of range; supported: {_PRICES}",
        ),
        (
            {"hazard_per_hour": np.array([0.0, 1e7])},
            "spot: hazard_per_hour 1e+07 is out of range; supported: 0, or 1e-12 to 1e+06 per hour",
        ),
        ({"bid_usd_per_hour": nan}, "spot: bid_usd_per_hour nan is out of range; it must be finite and not negative"),
        ({"checkpoint_s": 0.0}, "spot: checkpoint_s 0 is out of range; supported: 1e-12 to 1e+12 s, or inf"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_spot_series(changes: dict[str, Any], text: str) -> None:
    fine = Spot(TWO, TWO, TWO, bid_usd_per_hour=0.0, checkpoint_s=1.0)
    with pytest.raises(InvalidInput) as caught:
        replace(fine, **changes)
    assert str(caught.value) == text


def test_jobs_take_as_many_processors_as_bring_their_gpus_and_memory() -> None:
    trace = Trace.of(
        np.zeros(5), np.ones(5), [1, 3, 1, 4, 9], num_gpus=np.array([0, 0, 3, 0, 0], np.int32),
        memory_bytes=np.array([0.0, 17.0, 8.0, nan, 0.0]),
    )  # fmt: skip
    half, plain = Pool("half", 2, procs_per_node=4, gpus_per_node=2, memory_bytes_per_node=16.0), Pool("plain", 5)
    none = Pool("none", 8, memory_bytes_per_node=0.0)
    widths = pool_widths(trace, (half, plain, none))
    assert widths.tolist() == [[1, 1, 1], [5, 3, -1], [6, -1, -1], [4, 4, 4], [-1, -1, -1]]
    assert widths.dtype == np.int32
    assert runnable(trace, [half, plain]).tolist() == [True, True, True, True, False]
    assert runnable(trace, [none]).tolist() == [True, False, False, True, False]
    assert runnable(trace, 3).tolist() == [True, True, False, False, False]


def test_links_and_rules_say_what_is_out_of_range() -> None:
    with pytest.raises(InvalidInput) as caught:
        Links(("a", "b"), np.array([1.0, 1e19]), np.zeros(2, np.int32), np.zeros(0, np.int32))
    assert str(caught.value) == "link b: bandwidth 1e+19 is out of range; supported: 1e-06 to 1e+18 bytes/s, or inf"
    assert KindRule(factor={"a": 0}).factor == {"a": 0}
    with pytest.raises(InvalidInput) as caught:
        KindRule(factor={"a": 1.0, "b*": -1.0})
    assert str(caught.value) == "factor.b*: factor -1 is out of range; it must be finite and positive"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"gpus": -1.0}, "gpus -1.0 must not be negative"),
        ({"resources": (("io", 1.0), ("x", -2.0))}, "x -2.0 must not be negative"),
        ({"resources": (("x", nan),)}, "x nan must not be negative"),
        ({"packs": True}, "a node that packs states its cores, not inf"),
        ({"packs": True, "cores": 0.0}, "a node that packs states its cores, not 0.0"),
        ({"cores": 1e-7}, "cores 1e-07 is out of range; supported: 0, or 1e-06 to 1e+09, or inf"),
        ({"gpus": 1e10}, "gpus 1e+10 is out of range; supported: 0, or 1e-06 to 1e+09, or inf"),
        ({"speed": 1e10}, "speed 1e+10 is out of range; supported: 1e-09 to 1e+09"),
    ],
)
def test_what_is_wrong_with_a_device(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Device("d", **changes)
    assert str(caught.value) == f"device d: {text}"


def test_a_device_has_no_limit_of_what_is_named_and_a_node_has_none_of_it() -> None:
    told = {"memory_bytes": 3.0, "cores": 2.0, "gpus": 1.0, "resources": (("io", 7.0),)}
    device, node = Device("d", **told), Device("n", packs=True, **told)  # type: ignore[arg-type]
    names = ("cores", "memory", "gpus", "io", "other")
    assert [device.amount(name) for name in names] == [2, 3, 1, inf, inf]
    assert [node.amount(name) for name in names] == [2, 3, 1, 7, 0]


def test_what_is_wrong_with_links_of_a_cluster() -> None:
    devices = (Device("a"), Device("b"))
    fine = np.ones((2, 2))
    for latency, bandwidth, text in (
        (
            np.array([[0, 1e13], [1, 0]]),
            fine,
            "latency: latency 10000000000000.0 from a to b is out of range; supported: 0, or 1e-12 to 1e+12 s",
        ),
        (
            fine,
            np.array([[1, 1], [1e19, 1]]),
            "bandwidth: bandwidth 1e+19 from b to a is out of range; supported: 1e-06 to 1e+18 bytes/s, or inf",
        ),
        (fine, np.array([[1, 1], [-1.0, 1]]), "bandwidth: bandwidth -1.0 from b to a must be positive"),
    ):
        with pytest.raises(InvalidInput) as caught:
            Cluster(devices, latency, bandwidth)
        assert str(caught.value) == text


def test_tasks_may_have_no_duration_of_their_own_where_kinds_are_known() -> None:
    table = np.array([[1.0, inf]])
    assert TaskGraph.from_edges([inf], [], [], kinds=("a", "b"), kind_duration_s=table).num_tasks == 1
    with pytest.raises(
        InvalidInput,
        match=r"duration: task 't0' has duration 10000000000000\.0; supported: 0, or 1e-12 to 1e\+12 s, or inf",
    ):
        TaskGraph.from_edges([1e13], [], [], kinds=("a", "b"), kind_duration_s=table)
    with pytest.raises(
        InvalidInput, match=r"task 't0' has duration 10000000000000\.0 on b; supported: 0, or 1e-12 to 1e\+12 s, or inf"
    ):
        TaskGraph.from_edges([1.0], [], [], kinds=("a", "b"), kind_duration_s=np.array([[1.0, 1e13]]))


def test_records_of_plain_kernels_are_read_and_written_by_field() -> None:
    """As compiled records, whose fields may have names that numpy uses itself."""
    records = np.zeros(2, dtype=np.dtype((PlainRecord, [("base", np.int64), ("size", np.float64)])))
    one = records[1]
    one.base, one.size = 7, 2.5
    assert records["base"].tolist() == [0, 7]
    assert (one.base, one.size, records[0].size) == (7, 2.5, 0.0)
    assert (one.dtype.names, one.nbytes) == (("base", "size"), 16)
    with pytest.raises(AttributeError):
        _ = one.nothing
    with pytest.raises((ValueError, IndexError, KeyError)):
        one.nothing = 1

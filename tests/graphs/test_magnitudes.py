"""Within the supported range all numbers hold together, at its ends too; beyond it, everything is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.cluster import Cluster, Device, KindRule, Links
from stretto.core.graph import TaskGraph
from stretto.core.magnitudes import BYTES, BYTES_PER_S, NOISE, SECONDS, SPEED, USD_PER_HOUR, Range
from stretto.core.metrics import gap, is_proven_optimal, measure
from stretto.core.plan import DISCIPLINES, Plan
from stretto.core.pool import MAX_NODES, Pool, Spot
from stretto.core.problem import Problem
from stretto.core.trace import Trace
from stretto.core.workload import Job
from stretto.errors import InvalidInput
from stretto.graphs import reference
from stretto.graphs import simulator as device
from stretto.graphs.bounds.bound import bound
from stretto.graphs.bounds.interval import crowded
from stretto.graphs.conditions import CONTENTIONS, noise_factors
from stretto.queues.replay import replay

INF, NAN = float("inf"), float("nan")


def within(supported: Range) -> st.SearchStrategy[float]:
    """Numbers of a range, its ends among them, and as likely small as large."""
    spread = st.floats(math.log10(supported.least), math.log10(supported.most)).map(
        lambda power: min(max(10.0**power, supported.least), supported.most)
    )
    ends = st.sampled_from([supported.least, supported.most, *([0.0] if supported.has_zero else [])])
    return ends | spread | st.just(1.0)


def beyond(supported: Range) -> list[float]:
    """Numbers just and far outside of a range."""
    outside = [supported.least / 1.01, supported.most * 1.01, 5e-324, 1e-310, 1e-300, 1e300, 1e308, -1.0, NAN]
    return outside + ([] if supported.has_infinity else [INF]) + ([] if supported.has_zero else [0.0])


@st.composite
def parts(draw: st.DrawFn) -> tuple[TaskGraph, Cluster]:
    """A graph and a cluster with numbers from all over the range; speeds are moderate, so that most fit together."""
    n = draw(st.integers(1, 6))
    work = draw(st.lists(within(SECONDS), min_size=n, max_size=n))
    pairs = [(a, b) for b in range(n) for a in range(b)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=8)) if pairs else []
    sizes = draw(st.lists(within(BYTES), min_size=len(edges), max_size=len(edges)))
    graph = TaskGraph.from_edges(work, [a for a, _ in edges], [b for _, b in edges], sizes or 0.0)
    speeds = draw(st.lists(within(replace(SPEED, least=1e-3, most=1e3)), min_size=1, max_size=3))
    m = len(speeds)
    rates = draw(st.lists(within(BYTES_PER_S) | st.just(INF), min_size=m * m, max_size=m * m))
    cluster = Cluster.related(speeds, bandwidth=np.array(rates).reshape(m, m), latency_s=draw(within(SECONDS)))
    return graph, cluster


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_simulator_reference_and_bound_agree_over_the_whole_range(data: st.DataObject) -> None:
    graph, cluster = data.draw(parts())
    try:
        problem = Problem.of(graph, cluster)
    except InvalidInput:  # a transfer or the sum of all times is too long: the other permitted answer
        return
    check_agreement(problem, data)


@pytest.mark.long
@settings(max_examples=3000, deadline=None)
@given(data=st.data())
def test_they_agree_over_the_whole_range_many_times(data: st.DataObject) -> None:
    test_simulator_reference_and_bound_agree_over_the_whole_range.hypothesis.inner_test(data)


def check_agreement(problem: Problem, data: st.DataObject) -> None:
    n, m = problem.num_tasks, problem.num_devices
    where = np.array(data.draw(st.lists(st.integers(0, m - 1), min_size=n, max_size=n)), dtype=np.int32)
    plan = Plan(where, np.arange(n, dtype=np.int32))
    options = {
        "discipline": data.draw(st.sampled_from(DISCIPLINES)),
        "contention": data.draw(st.sampled_from(CONTENTIONS)),
        "noise": 0.0,
    }
    fast, slow = (simulate(problem, plan, **options) for simulate in (device.simulate, reference.simulate))
    np.testing.assert_array_equal(fast.start_s, slow.start_s)
    np.testing.assert_array_equal(fast.finish_s, slow.finish_s)
    assert np.all(np.isfinite(fast.finish_s))
    lower = bound(problem).value_s
    assert math.isfinite(lower)
    assert lower <= fast.makespan_s * (1 + 1e-9)
    assert measure(problem, fast).makespan_s == fast.makespan_s
    assert not is_proven_optimal(fast.makespan_s, lower) or gap(fast.makespan_s, lower) <= 1e-9


@pytest.mark.parametrize("value", beyond(SECONDS))
def test_times_beyond_the_range_are_refused(value: float) -> None:
    for make in (
        lambda: TaskGraph.from_edges([1.0, value], [0], [1]),
        lambda: TaskGraph.from_edges([1.0, 1.0], [0], [1], value, transfer_unit="seconds"),
        lambda: Job(TaskGraph.from_edges([1.0], [], []), value),
        lambda: Cluster.uniform([Device("a"), Device("b")], latency_s=value),
        lambda: Trace.of([0.0], [value], [1]),
        lambda: Trace.of([value], [1.0], [1]),
        lambda: Pool("p", 1, provision_s=value),
        lambda: Pool("p", 1, billing_s=value),
    ):
        with pytest.raises(InvalidInput):
            make()
    if value not in (INF,):
        with pytest.raises(InvalidInput):
            TaskGraph.from_edges([1.0], [], [], kinds=("cpu",), kind_duration_s=np.array([[value]]))
    if 0 < value < INF:  # elsewhere: unknown, or none
        with pytest.raises(InvalidInput):
            Trace.of([0.0], [1.0], [1], [value])


@pytest.mark.parametrize("value", beyond(BYTES))
def test_sizes_beyond_the_range_are_refused(value: float) -> None:
    with pytest.raises(InvalidInput, match=r"an output of task 't0' has size"):
        TaskGraph.from_edges([1.0, 1.0], [0], [1], value)
    with pytest.raises(InvalidInput):
        TaskGraph.from_edges([1.0], [], [], memory_bytes=np.array([value]))
    if value != INF:
        with pytest.raises(InvalidInput):
            Device("d", memory_bytes=value)


@pytest.mark.parametrize("value", beyond(BYTES_PER_S))
def test_bandwidths_beyond_the_range_are_refused(value: float) -> None:
    with pytest.raises(InvalidInput, match="from a to b"):
        Cluster.uniform([Device("a"), Device("b")], bandwidth=value)
    with pytest.raises(InvalidInput, match="link wire"):
        Links(("wire",), np.array([value]), np.zeros(2, np.int32), np.zeros(0, np.int32))


@pytest.mark.parametrize("value", beyond(SPEED))
def test_speeds_beyond_the_range_are_refused(value: float) -> None:
    for make in (lambda: Device("d", speed=value), lambda: Pool("p", 1, speed=value)):
        with pytest.raises(InvalidInput):
            make()
    if value != 0:  # which says that such tasks cannot run here
        with pytest.raises(InvalidInput):
            KindRule(factor={"x": value})


@pytest.mark.parametrize("value", beyond(USD_PER_HOUR))
def test_prices_beyond_the_range_are_refused(value: float) -> None:
    for make in (
        lambda: Device("d", price_usd_per_hour=value),
        lambda: Pool("p", 1, price_usd_per_hour=value),
        lambda: Spot(np.zeros(1), np.array([value]), np.zeros(1)),
    ):
        with pytest.raises(InvalidInput):
            make()


def test_what_comes_of_supported_numbers_must_be_supported_too() -> None:
    slow = Cluster.related([SPEED.least], bandwidth=1.0)
    with pytest.raises(InvalidInput, match=r"task 't0' would take 1e\+21 s on a device of cluster 'related'"):
        Problem.of(TaskGraph.from_edges([SECONDS.most], [], []), slow)
    pair = Cluster.parse("cpu:2@0.00001B/s")
    with pytest.raises(
        InvalidInput, match=r"output of task 't0' \(1e\+18 bytes\) would take 1e\+23 s from cpu0 to cpu1"
    ):
        Problem.of(TaskGraph.from_edges([1.0, 1.0], [0], [1], 1e18), pair)
    with pytest.raises(InvalidInput, match=r"all tasks and transfers .* up to .* supported: at most 1e\+18 s"):
        Problem.of(TaskGraph.from_edges([SECONDS.most] * 2000, [], []), Cluster.related([1e-3]))


def test_a_machine_of_two_billion_processors_takes_no_memory() -> None:
    trace = Trace.of([0.0, 1.0], [5.0, 5.0], [1, 2])
    with pytest.raises(InvalidInput, match=rf"2147483647 processors; a machine has at most {MAX_NODES:,}"):
        replay(trace, 2**31 - 1)
    with pytest.raises(InvalidInput, match="a pool has at most"):
        Pool("p", MAX_NODES + 1)
    with pytest.raises(InvalidInput, match="checkpoint_s 0 is out of range"):
        Spot(np.zeros(1), np.zeros(1), np.zeros(1), checkpoint_s=0.0)


@pytest.mark.parametrize("noise", [NOISE.most * 2, 1e300, INF, NAN, -1.0])
def test_noise_has_an_end(noise: float) -> None:
    problem = Problem.of(TaskGraph.from_edges([1.0], [], []), Cluster.parse("cpu"))
    for simulate in (device.simulate, reference.simulate):
        with pytest.raises(InvalidInput, match="noise"):
            simulate(problem, Plan(np.zeros(1, np.int32), np.zeros(1, np.int32)), noise=noise)
    assert np.all(np.isfinite(noise_factors(10_000, NOISE.most, 0)))
    assert np.all(noise_factors(10_000, NOISE.most, 0) > 0)


def test_a_bound_ends_whatever_the_numbers() -> None:
    """Called past every check: doubling and halving stop after a fixed number of steps."""
    for size in (1e308, 1e300, 1e17, 5e-324, INF, NAN):
        column = np.full((2, 1), size)
        zeros = np.zeros((2, 1))
        crowded(column, zeros, zeros, np.ones((2, 1)), size, 4, None)


@pytest.mark.parametrize(
    ("makespan_s", "lower_s", "expected"),
    [
        (1.0, 1.0, True),
        (0.0, 0.0, True),
        (1.0 + 1e-12, 1.0, True),
        (1.1, 1.0, False),
        (1.0, 0.0, False),
        (1.0, INF, False),
        (INF, INF, False),
        (INF, 1.0, False),
        (NAN, 1.0, False),
        (1.0, NAN, False),
        (0.5, 1.0, False),
        (4e-310, INF, False),
    ],
)
def test_only_finite_equal_numbers_prove_anything(makespan_s: float, lower_s: float, expected: bool) -> None:
    assert is_proven_optimal(makespan_s, lower_s) is expected
    if expected:
        assert gap(makespan_s, lower_s) == pytest.approx(0.0, abs=1e-9)


def test_supported_ends_are_supported() -> None:
    graph = TaskGraph.from_edges([SECONDS.least, SECONDS.most, 0.0], [0], [1], BYTES.least)
    fast = replace(Cluster.parse("cpu:2x1e9@1e18B/s"), name="fast")
    assert np.all(np.isfinite(Problem.of(graph, fast).arrays.duration))

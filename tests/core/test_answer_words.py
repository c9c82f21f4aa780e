"""Words that answers share, and sentences on inputs and installations, of values that are written down by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from stretto.core.answers.facts import (
    cluster_answer,
    doctor_answer,
    engines_answer,
    nextflow_answer,
    site_answer,
    workload_answer,
)
from stretto.core.answers.words import are_equal, change, interval, named, quoted, share, show_figure
from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.core.results.paired import Bootstrap, paired_difference
from stretto.core.site import Partition, Site, SiteNode
from stretto.core.units import better_or_worse
from stretto.core.workload import Workload

GRAPH = TaskGraph.from_edges([1.0, 2.0], [0], [1], 0.0, name="flow")
PROBLEM = Problem.of(GRAPH, Cluster.parse("cpu:2"))
GUESSED = Problem.of(replace(GRAPH, meta={"durations": "assumed (so)"}), Cluster.parse("cpu:2"))


def some(**values: Any) -> Any:
    return SimpleNamespace(**values)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("mean_wait_s", 90.0, "1.5 min"),
        ("utilization", 0.5, "50.0 %"),
        ("cost_usd", 1234.5, "$1,234.50"),
        ("energy_kwh", 1234.56, "1,234.6 kWh"),
        ("energy_kwh", 99.96, "100 kWh"),
        ("carbon_kg", 100.0, "100.0 kg CO2"),
        ("mean_bounded_slowdown", 1.2345, "1.23"),
    ],
)
def test_figures_have_units(name: str, value: float, text: str) -> None:
    assert show_figure(name, value) == text


def test_shares_and_changes() -> None:
    assert [share(x) for x in (0.0, 0.0004, 0.0005, 0.0994, 0.0995, -0.5)] == [
        "0.0 %", "less than 0.1 %", "0.1 %", "9.9 %", "10 %", "50 %",
    ]  # fmt: skip
    assert (change(1.0, 2.0), change(3.0, 2.0), change(2.0, 2.0)) == ("50 % below", "50 % above", "equal to")
    assert (change(1.0, 0.0), change(0.0, 0.0), change(1.0, 2.0, "less")) == ("above", "equal to", "50 % less")
    assert are_equal(1.0, 1.0 + 1e-10)
    assert not are_equal(1.0, 1.0 + 1e-8)
    assert are_equal(0.0, 1e-12)
    assert not are_equal(0.0, 1e-11)


def test_names_and_reasons_are_short() -> None:
    assert named(list("abcd")) == "a, b, c and d"
    assert named(list("abcde")) == "a, b, c and 2 others"
    assert named(["a", "b"]) == "a and b"
    assert quoted(" no memory.\nmore") == "no memory"
    assert quoted("x" * 120) == "x" * 120
    assert quoted("x" * 119 + " yz") == "x" * 119 + " ..."


def test_intervals_are_those_of_the_improvement() -> None:
    cases: dict[object, dict[object, float]] = {k: {0: 0.5 + 0.1 * (k % 2)} for k in range(8)}
    ones: dict[object, dict[object, float]] = {k: {0: 1.0} for k in range(8)}
    found = paired_difference(("a", cases), ("b", ones), "x", bootstrap=Bootstrap())
    assert replace(found, low=0.5, high=0.6).is_clear
    assert interval(replace(found, low=0.5, high=0.6, confidence=0.95)) == "95 %: 40 to 50 %"
    assert interval(replace(found, low=0.95, high=1.02, confidence=0.9)) == "90 %: -2.0 to 5.0 %"
    assert interval(replace(found, low=1.2, high=1.3, confidence=0.95), more_is_better=True) == "95 %: 20 to 30 %"
    assert interval(replace(found, low=float("nan"))) == ""


def test_inputs_are_told_by_their_size() -> None:
    assert workload_answer(Workload.of([GRAPH, GRAPH])).endswith(" has 2 graphs with 4 tasks.")
    assert cluster_answer(replace(Cluster.parse("cpu:2"), name="c")) == "c has 2 devices."
    two = Cluster.uniform([Device("a", "cpu", machine="m"), Device("b", "gpu", machine="n")], name="c")
    assert cluster_answer(two) == "c has 2 devices on 2 machines: 1 cpu and 1 gpu."
    one = Cluster.uniform([Device("a", "cpu", machine="m"), Device("b", "gpu", machine="m")], name="c")
    assert cluster_answer(one) == "c has 2 devices: 1 cpu and 1 gpu."
    site = Site("s", (SiteNode("a", 4), SiteNode("b", 8)), (Partition("p", ("a", "b")),))
    assert site_answer(site) == "s has 2 nodes with 12 processors in 1 partition."


def test_installations_are_told_by_what_is_ready() -> None:
    rows = [{"name": "local", "is_available": True}, {"name": "ray", "is_available": False}]
    assert engines_answer(rows) == "1 of 2 engines can run here: local."
    assert engines_answer(rows[1:]) == "0 of 1 engine can run here."
    engines = [{"name": "local", "available": True}]
    found = {"faults": [], "extras": [{"present": True}, {"present": False}], "engines": engines}
    tail = "1 of 2 extras installed; 1 of 1 engine can run here: local."
    assert doctor_answer(found) == f"Nothing needs attention; {tail}"
    assert doctor_answer({**found, "faults": ["x"]}) == f"1 thing needs attention; {tail}"
    assert doctor_answer({**found, "faults": ["x", "y"]}) == f"2 things need attention; {tail}"


def test_needs_of_processes_are_counted() -> None:
    def need(asked: float | None, used: float | None, killed: int = 0) -> Any:
        return some(asked_cpus=asked, cpus=used, num_tasks=3, num_killed=killed)

    assert nextflow_answer(some(needs=[need(4, 2), need(2, 2), need(None, 2)])) == (
        "3 processes with 9 tasks: 1 of 2 ask for more CPUs than they use."
    )
    assert nextflow_answer(some(needs=[need(4, None, 2)])) == (
        "1 process with 3 tasks: no CPU use is recorded; 2 attempts were killed."
    )


def test_what_is_less_is_better() -> None:
    assert better_or_worse(9.0, 10.0) == "10.0 % better"
    assert better_or_worse(12.0, 10.0) == "20.0 % worse"
    assert better_or_worse(10.0, 10.0) == better_or_worse(10.001, 10.0) == better_or_worse(9.996, 10.0) == "as good"

"""Sentences on trainings, racks and pages that are written down by hand: every clause where it belongs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stretto.core.answers.learned import rack_answer, training_answer
from stretto.core.answers.logged import logged_answer
from stretto.core.answers.seen import Standing, live_answer, standings_answer
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem

PROBLEM = Problem.of(TaskGraph.from_edges([1.0, 2.0], [0], [1], 0.0, name="flow"), Cluster.parse("cpu:2"))
NAN = float("nan")


def some(**values: Any) -> Any:
    return SimpleNamespace(**values)


def trained(others: dict[str, float], **values: Any) -> str:
    judged = {"trained": 1.0, "untrained": 2.0, "uses": {}}
    judged.update({name: values.pop(name) for name in list(values) if name in judged})
    best = min(others, key=lambda name: others[name])
    found = {
        "judged": some(others=others, best_other=best, **judged), "outcome": None, "num_jobs": 0, "seconds": 60.0,
        "is_interrupted": False, "trainer": some(num_held_out=1),
    }  # fmt: skip
    return training_answer(some(**{**found, **values}))


def test_a_trained_plan_is_compared_with_the_best_heuristic() -> None:
    plan = some(makespan_s=3.0, problem=PROBLEM, gap=0.0)
    assert trained({"heft": 4.0}, outcome=plan) == (
        "Trained for 60 s: the plan is 25 % shorter than that of heft; proven optimal."
    )
    assert trained({"heft": 6.0, "etf": 2.0}, outcome=plan) == (
        "Trained for 60 s: the plan is 50 % longer than that of etf, the best of 2 heuristics; proven optimal."
    )
    near = some(makespan_s=3.0, problem=PROBLEM, gap=0.5)
    assert trained({"heft": 3.0}, outcome=near, is_interrupted=True) == (
        "Interrupted after training for 60 s: the plan is equal to that of heft; at most 50.0 % above optimal."
    )


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.1234, "120 ms"), (9.96, "10 s"), (9.94, "9.9 s"), (10.4, "10 s"), (59.6, "60 s"), (12_345.6, "12,346 s")],
)
def test_the_time_of_a_training_is_rounded(seconds: float, told: str) -> None:
    assert trained({"srpt": 1.0}, seconds=seconds).startswith(f"Trained for {told}: ")


def test_a_trained_queue_is_compared_with_itself_without_the_network() -> None:
    uses = {"mars": 8.0, "mars without it": 10.0, "with / without, low": 0.75, "with / without, high": 0.875}
    start = "Trained for 60 s: on the last 1,200 jobs, the mean bounded slowdown of mars with the network is "
    queue: dict[str, Any] = {"num_jobs": 9000, "trainer": some(num_held_out=1200)}
    assert trained({"saf": 16.0, "fcfs": 99.0}, uses=uses, **queue) == (
        f"{start}20 % lower than without it (95 %: 12.5 to 25.0 % lower), and 50 % below saf, the best fixed strategy."
    )
    worse = {**uses, "mars": 12.0, "with / without, high": 0.75}
    assert trained({"saf": 6.0}, uses=worse, **queue) == (
        f"{start}20 % higher than without it, and 100 % above saf, the best fixed strategy."
    )
    same = {**uses, "mars": 10.0, "with / without, low": 1.0, "with / without, high": 1.0}
    assert trained({"saf": 10.0}, uses=same, num_jobs=9000) == (
        "Trained for 60 s: on the last 1 job, the mean bounded slowdown of mars with the network is as high as "
        "without it, and equal to saf, the best fixed strategy."
    )


def test_a_trained_rack_is_compared_with_the_best_rule_and_its_start() -> None:
    start = "Trained for 60 s: on 1 held-out stream, the mean job completion time is "
    assert trained({"srpt": 2.0, "mct": 1.5}, trained=1.2, untrained=2.4) == (
        f"{start}20 % below mct, the best rule, and 50 % below untrained."
    )
    assert trained({"srpt": 1.0}, trained=1.2, untrained=NAN) == f"{start}20 % above srpt, the best rule."


def test_episodes_on_a_rack_are_told_by_their_mean_and_tail() -> None:
    summary = {"mean_completion_s": 2.0, "p99_completion_s": 9.0, "num_jobs": 1500, "belief_error": None}
    summary["coverage_95"] = None

    def told(is_stopped: bool = False, **changes: float | None) -> str:
        return rack_answer(some(summary={**summary, **changes}, is_stopped=is_stopped, case="m1", label="mct"))

    start = "mct completed 1,500 jobs on m1 in 2 s on average, p99 9 s"
    assert told() == f"{start}."
    assert told(is_stopped=True) == f"Stopped early: {start}."
    assert told(belief_error=0.05) == told(coverage_95=0.9) == f"{start}."
    assert told(belief_error=0.05, coverage_95=0.9) == (
        f"{start}; estimated load was 5.0 % of capacity off, and 90.0 % of its 95 % intervals hold the true load."
    )
    assert told(p99_completion_s=None) == told(mean_completion_s=None) == "no job was completed on m1."
    assert told(num_jobs=None).startswith("mct completed 0 jobs")


# Runs of the log ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "summary", "told"),
    [
        ("done", {"answer": "Well."}, "Well."),
        ("failed", {"answer": "Well.", "error": "no"}, "Well."),
        ("failed", {"answer": "", "error": "no"}, "Failed: no."),
        ("failed", {"answer": 7, "reason": "no"}, "Failed: no."),
        ("failed", {"error": "first", "reason": "second"}, "Failed: first."),
        ("failed", {"error": ""}, ""),
        ("failed", {"error": 7}, ""),
        ("failed", {}, ""),
        ("done", {"error": "no"}, ""),
    ],
)
def test_a_run_says_its_answer_or_why_it_failed(status: str, summary: dict[str, object], told: str) -> None:
    assert logged_answer(status, summary) == told


def test_what_a_run_that_goes_on_says() -> None:
    load = {
        "at_s": [0.0, 1.0], "resources": ["mem0", "mem1", "nic0"], "mean": [[0.9, 0.2], [0.1, 0.456], [0.8, None]],
        "low": [[0.0, 0.1], [0.0, 0.4], [0.0, None]], "high": [[1.0, 0.3], [1.0, 0.5], [1.0, None]],
    }  # fmt: skip
    assert (
        live_answer("3 of 5", None, load)
        == "The part with the most estimated load is mem1, at 46 % (95 %: 40 to 50 %)."
    )
    assert live_answer("3 of 5", None, {**load, "at_s": []}) == "Running: 3 of 5."
    with pytest.raises(ValueError, match="longer"):  # a row of the log that belongs to no part
        live_answer(None, None, {**load, "resources": ["mem0"]})
    assert live_answer("3 of 5", None, None) == "Running: 3 of 5."
    assert live_answer(None, None, None) == live_answer("", None, None) == ""


def test_what_a_steered_queue_says() -> None:
    jobs = [{"before": 1, "after": 2}, {"before": 2, "after": 1}, {"before": 3, "after": 3}]
    steered = {
        "jobs": jobs, "num_waiting": 1200, "fallback": "", "chosen": "saf", "is_applied": True, "promises": "",
    }  # fmt: skip
    load = {"at_s": [0.0]}
    assert live_answer("3 of 5", steered, load) == "saf orders 1,200 waiting jobs and moves 2 of them."
    dry = {**steered, "is_applied": False, "promises": "kept", "num_waiting": 1}
    assert live_answer(None, dry, None) == "saf orders 1 waiting job in a dry run and moves 2 of them; promises: kept."
    assert live_answer(None, {**steered, "fallback": "no answer"}, None) == (
        "Slurm's own order applies to 1,200 waiting jobs: no answer."
    )


def test_standings_name_the_best() -> None:
    def on(instance: str, *policies: tuple[str, float], unit: str = "s") -> Standing:
        return Standing(instance, "makespan", unit, policies)

    assert standings_answer([]) == standings_answer([on("f")]) == ""
    assert standings_answer([on("f", ("heft", 90.0))]) == "heft on f: makespan 90 s."
    assert standings_answer([on("f", ("heft", 1234.56), unit="")]) == "heft on f: makespan 1,235."
    two = on("f", ("heft", 3.0), ("etf", 4.0))
    assert standings_answer([two]) == "heft is best on f: makespan 3 s, 25 % below etf."
    three = on("f", ("heft", 3.0), ("etf", 4.0), ("peft", 5.0))
    assert standings_answer([on("g"), three]) == "heft is best on f: makespan 3 s, 25 % below etf, the next."
    tie = on("f", ("heft", 3.0), ("etf", 3.0), ("peft", 5.0))
    assert standings_answer([tie]) == "heft and etf tie on f: makespan 3 s."
    assert standings_answer([on("f", ("heft", 3.0)), on("g", ("etf", 3.0))]) == ""
    others = [on("g", ("etf", 1.0), ("heft", 2.0)), on("h", ("etf", 1.0), ("heft", 2.0)), on("i", ("peft", 1.0))]
    assert standings_answer([two, *others]) == "etf is best on 2 of 4 instances."
    assert standings_answer([two, others[0]]) == "heft is best on 1 of 2 instances."

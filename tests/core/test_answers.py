"""Answers claim no more than the results hold: ties, intervals, assumptions and missing results are said."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stretto
from stretto.core.answers.logged import logged_answer
from stretto.core.answers.plan import bound_answer, how_good
from stretto.core.answers.words import change, interval, named, quoted, share
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.core.results.paired import paired_difference
from stretto.queues.evaluate import evaluate_replay

FORK = "workload:fork-join?width=4&num_stages=2"
TRACE = "trace:lublin?num_jobs=400&num_procs=64&load=1.1&seed=2"


def test_a_proven_plan_is_called_so_and_no_other() -> None:
    chain = stretto.plan(TaskGraph.from_edges([1.0, 2.0], [0], [1], 0.0, name="chain"), "cpu:1")
    assert chain.answer == "heft finishes chain in 3 s on 1 device: proven optimal."
    far = stretto.plan(FORK, "cpu:2", "round-robin")
    assert far.gap > 0
    assert "at most" in far.answer
    assert "proven" not in far.answer


def test_assumed_durations_rule_out_optimal() -> None:
    graph = TaskGraph.from_edges([1.0, 1.0, 1.0], [0, 0], [1, 2], 0.0, name="guess")
    guessed = replace(graph, meta={**graph.meta, "durations": "assumed (by a rule)"})
    for cluster in ("cpu:1", "cpu:1x1.0,cpu:1x0.3@1MB/s"):
        result = stretto.plan(guessed, cluster, "round-robin")
        assert "optimal" not in result.answer
        assert "if tasks take the assumed time" in result.answer.replace("when", "if")
        assert "assumed" in bound_answer(result.problem, result.bound)


def test_a_makespan_below_its_bound_is_never_praised() -> None:
    problem = stretto.plan(FORK, "cpu:2").problem
    assert "please report" in how_good(problem, -0.1)


def test_equal_policies_tie() -> None:
    found = stretto.compare(["workload:in-tree?depth=2"], "cpu:1", ["heft", "etf"])
    assert found.answer.startswith("heft and etf tie on in-tree-2^2: ")
    assert "best" not in found.answer


def test_the_answer_names_the_first_line_of_the_table() -> None:
    for policies in (["heft", "round-robin", "etf"], ["peft", "heft"]):
        for graphs in ([FORK], [FORK, "workload:fft?num_points=8"]):
            found = stretto.compare(graphs, "cpu:2x1.0,gpu:1x3.0@1GB/s", policies)
            best = found.summary()[0].policy
            assert found.answer.split()[0].rstrip(",") == best or " tie " in found.answer


def test_policies_without_a_result_are_named() -> None:
    class Refuses:
        def supports(self, problem: Problem) -> str | None:
            return "it plans nothing"

        def plan(self, problem: Problem, budget: Budget) -> Plan:
            raise AssertionError

    assert stretto.compare([FORK], "cpu:2", ["heft", Refuses()]).answer.endswith("; Refuses has no result.")
    nothing = stretto.compare([FORK], "cpu:2", [Refuses()]).answer
    assert nothing.startswith("No policy could plan fork-join")
    assert nothing.endswith("it plans nothing.")


def test_intervals_stand_only_where_windows_were_replayed() -> None:
    whole = stretto.compare(TRACE, strategies=["fcfs", "saf", "sjf"])
    assert "95 %" not in whole.answer
    windows = stretto.compare(
        TRACE, strategies=["fcfs", "saf", "sjf"], options=stretto.TraceOptions(windows=8, window_size=80)
    )
    assert "95 %" in windows.answer
    best, after = windows.summary()[:2]
    only = replace(windows, rows=tuple(r for r in windows.rows if r.strategy in (best.strategy, after.strategy)))
    paired = only.paired(f"{after.strategy} + {after.backfill}")[0]
    assert ("not clearly" in windows.answer) == (not (paired.is_clear and paired.effect < 1))
    assert windows.answer.startswith(best.strategy)


def test_equal_strategies_tie() -> None:
    found = stretto.compare("trace:lublin?num_jobs=12&num_procs=4096&load=0.05", strategies=["fcfs", "sjf"])
    assert found.answer.startswith("fcfs and sjf tie: ")


def test_missing_time_limits_are_said() -> None:
    without = stretto.load_trace(TRACE)
    limited = replace(without, estimate_s=2 * without.run_s)
    said = "400 jobs have no time limit, so their run times are assumed to be known in advance"
    for answer in (
        stretto.compare(without, 64, strategies=["fcfs", "saf"]).answer,
        evaluate_replay(without, 64, timed=False).answer,
    ):
        assert said in answer
    for answer in (
        stretto.compare(limited, 64, strategies=["fcfs", "saf"]).answer,
        evaluate_replay(limited, 64, timed=False).answer,
    ):
        assert "assumed" not in answer


def test_a_run_of_the_log_without_an_answer_says_nothing_or_why() -> None:
    assert logged_answer("running", {}) == ""
    assert logged_answer("done", {"makespan_s": 1.0}) == ""
    assert logged_answer("failed", {"error": "no memory.\nmore"}) == "Failed: no memory."


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_changes_point_the_right_way(value: float, reference: float) -> None:
    said = change(value, reference)
    if said != "equal to":
        assert said.endswith("below" if value < reference else "above")
        assert not said.startswith("0.0 ")


@given(st.floats(1e-9, 0.5))
def test_what_differs_is_never_written_as_nothing(value: float) -> None:
    assert float(share(value).removeprefix("less than ").split()[0]) > 0


def test_words() -> None:
    assert named(["a"]) == "a"
    assert named(["a", "b", "c"]) == "a, b and c"
    assert named(list("abcdefg")) == "a, b, c and 4 others"
    assert len(quoted("x" * 500)) < 130
    once: dict[object, dict[object, float]] = {"case": {"": 1.0}}
    assert interval(paired_difference(("a", once), ("b", once), "makespan_s")) == ""


def test_an_interrupted_training_and_an_empty_rack_are_said() -> None:
    from stretto.core.answers.learned import rack_answer, training_answer

    judged = SimpleNamespace(others={"srpt": 2.0}, best_other="srpt", trained=1.9, untrained=float("nan"), uses={})
    trainer = SimpleNamespace(num_held_out=4)
    result = SimpleNamespace(
        judged=judged, trainer=trainer, outcome=None, num_jobs=0, seconds=12.3, is_interrupted=True
    )
    said = training_answer(cast(Any, result))
    assert said.startswith("Interrupted after training for 12 s: on 4 held-out streams, ")
    assert "5.0 % below srpt" in said
    assert "untrained" not in said
    summary = {"mean_completion_s": None, "p99_completion_s": None}
    empty = SimpleNamespace(summary=summary, is_stopped=True, case="two-nics", label="mct")
    assert rack_answer(cast(Any, empty)) == "Stopped early: no job was completed on two-nics."


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_a_simulation_says_what_it_departs_from(noise: float, tmp_path: Any) -> None:
    from stretto.api.plan import plan_document
    from stretto.api.plan_file import save_plan
    from stretto.api.simulate import simulate_file

    save_plan(tmp_path / "plan.json", plan_document(stretto.plan(FORK, "cpu:2"), FORK, "cpu:2"))
    said = simulate_file(tmp_path / "plan.json", noise=noise, seed=1).answer
    assert ("as planned" in said) == (noise == 0)
    assert ("noise 0.3" in said) == (noise > 0)

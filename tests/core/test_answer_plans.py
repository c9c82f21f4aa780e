"""Sentences on plans and comparisons that are written down by hand: every clause where it belongs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from stretto.core.answers.comparison import comparison_answer
from stretto.core.answers.placement import placement_answer
from stretto.core.answers.plan import bound_answer, pipeline_answer, plan_answer, rental_answer, simulated_answer
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem

GRAPH = TaskGraph.from_edges([1.0, 2.0], [0], [1], 0.0, name="flow")
PROBLEM = Problem.of(GRAPH, Cluster.parse("cpu:2"))
GUESSED = Problem.of(replace(GRAPH, meta={"durations": "assumed (so)"}), Cluster.parse("cpu:2"))


def some(**values: Any) -> Any:
    return SimpleNamespace(**values)


def planned(problem: Problem = PROBLEM, **changes: Any) -> Any:
    values = {
        "problem": problem, "plan": some(info={}), "policy": "heft", "makespan_s": 3.0, "gap": 0.0,
        "setting": some(noise=0.0), "cost_usd": 0.0,
    }  # fmt: skip
    return some(**{**values, **changes})


def test_plans_are_told_with_their_quality_and_cost() -> None:
    start = "heft finishes flow in 3 s on 2 devices"
    assert plan_answer(planned()) == f"{start}: proven optimal."
    assert plan_answer(planned(cost_usd=1234.5, gap=0.5)) == f"{start}, for $1,234: at most 50.0 % above optimal."
    assert plan_answer(planned(GUESSED, gap=0.5)) == (
        f"{start}: at most 50.0 % above its lower bound if tasks take the assumed time."
    )
    assert plan_answer(planned(gap=float("inf"))) == f"{start}: not judged: the lower bound is zero."
    assert plan_answer(planned(gap=-0.1)).endswith(
        "below its lower bound, so one of the two is wrong: please report this."
    )
    noisy = plan_answer(planned(setting=some(noise=0.25)))
    assert noisy == f"{start} with noise 0.25 in the run times; that is not compared with the bound."
    repaired = plan_answer(planned(plan=some(info={"memory_repair": 2})))
    assert repaired.startswith("A packing within memory, in place of heft's plan, finishes flow in 3 s")


def test_bounds_simulations_and_pipelines() -> None:
    assert bound_answer(PROBLEM, some(value_s=2.0)) == "No schedule of flow on 2 devices takes less than 2 s."
    assert bound_answer(GUESSED, some(value_s=2.0)).endswith("less than 2 s if tasks take the assumed time.")
    assert bound_answer(PROBLEM, some(value_s=0.0)).startswith("Nothing is known about flow on 2 devices")
    done = some(policy="heft", schedule=some(makespan_s=3.0), problem=PROBLEM, noise=0.0, planned_makespan_s=3.0)
    assert simulated_answer(done) == "The plan by heft takes 3 s for flow, as planned."
    longer = some(**{**vars(done), "planned_makespan_s": 2.0, "policy": "", "noise": 0.5})
    assert simulated_answer(longer) == (
        "The plan takes 3 s for flow with noise 0.5 in the run times: 50 % more than the 2 s that were planned."
    )
    assert simulated_answer(some(**{**vars(done), "planned_makespan_s": 6.0})).endswith(
        "50 % less than the 6 s that were planned."
    )
    assert (
        simulated_answer(some(**{**vars(done), "planned_makespan_s": None})) == "The plan by heft takes 3 s for flow."
    )
    pipe = some(period_s=0.5, problem=PROBLEM, gap=0.0, latency_s=4.0)
    assert pipeline_answer(pipe) == (
        "flow completes a microbatch every 500 ms (2 per second), proven optimal; the first is done after 4 s."
    )
    assert pipeline_answer(some(**{**vars(pipe), "period_s": 0.0})) == "Nothing in flow takes time."


def test_rented_plans_keep_limits_and_cost() -> None:
    nodes = [some(market="owned"), some(market="spot"), some(market="on-demand")]
    found = some(
        rentals=[some(node=1), some(node=1), some(node=2)], fleet=some(nodes=nodes, notes=()), problem=PROBLEM,
        cost_usd=1234.5, verdict=["meets its deadline"],
    )  # fmt: skip
    assert rental_answer(found) == "flow on 1 owned and 2 rented nodes meets its deadline; costs $1,234.50."
    said = some(
        **{
            **vars(found),
            "verdict": ["costs $1,234.50, within budget"],
            "fleet": some(nodes=nodes, notes=["x is assumed"]),
        }
    )
    assert rental_answer(said) == (
        "flow on 1 owned and 2 rented nodes costs $1,234.50, within budget; some terms of the nodes are assumed."
    )
    guessed = some(**{**vars(found), "problem": GUESSED})
    assert rental_answer(guessed).endswith("costs $1,234.50 if tasks take the assumed time.")


def test_placements_are_told_beside_one_device() -> None:
    def placed(single: float, speedup: float) -> str:
        return placement_answer(
            some(
                result=some(problem=PROBLEM, gap=0.0), plan=some(assignment=np.array([0, 0])), graph=GRAPH,
                makespan_s=3.0, single_device_s=single, speedup_over_single=speedup,
            )
        )  # fmt: skip

    start = "flow takes 3 s on 1 of 2 devices, "
    assert placed(3.0, 1.0) == f"{start}as fast as the best single device: proven optimal."
    assert placed(6.0, 2.0) == f"{start}2.00 times as fast as the best single device: proven optimal."
    assert placed(float("inf"), float("inf")) == f"{start}and no single device can run all of it: proven optimal."


@dataclass(frozen=True)
class Compared:
    """Rows of (policy, graph, seed, makespan or None)."""

    rows: tuple[Any, ...]

    def bound(self, graph: str) -> float:
        return 2.0

    def summary(self) -> list[Any]:
        names = list(dict.fromkeys(row.policy for row in self.rows))
        lines = []
        for name in names:
            own = [row.result.makespan_s for row in self.rows if row.policy == name and row.result]
            mean = float(np.mean(own)) if own else float("inf")
            lines.append(some(policy=name, num_results=len(own), mean_ratio=mean, num_best=1, mean_gap=mean / 2 - 1))
        return sorted(lines, key=lambda one: (-one.num_results, one.mean_ratio))


def compared(*rows: tuple[str, str, int, float | None]) -> str:
    made = [
        some(
            policy=p, graph=g, seed=s, reason="it cannot.",
            result=None if m is None else some(makespan_s=m, problem=PROBLEM),
        )
        for p, g, s, m in rows
    ]  # fmt: skip
    return comparison_answer(Compared(tuple(made)))  # type: ignore[arg-type]


def test_comparisons_of_one_graph() -> None:
    assert compared() == "Nothing was compared."
    assert compared(("a", "f", 0, None)) == "No policy could plan f: it cannot."
    assert compared(("a", "f", 0, 2.0)) == "a finishes f in 2 s, proven optimal."
    assert compared(("b", "f", 0, 3.0), ("a", "f", 0, 2.0)) == (
        "a is best on f: 2 s, proven optimal; b, the next, takes 50 % longer."
    )
    assert compared(("a", "f", 0, 4.0), ("b", "f", 0, 4.0)) == "a and b tie on f: 4 s, at most 100.0 % above optimal."
    assert compared(("a", "f", 0, 4.0), ("b", "f", 0, None), ("c", "f", 0, None)) == (
        "a finishes f in 4 s, at most 100.0 % above optimal; b and c have no result."
    )
    assert compared(("a", "f", 0, 0.0), ("b", "f", 0, 1.0)).startswith("a is best on f: 0 s, below its lower bound")


def test_comparisons_over_graphs_and_seeds() -> None:
    one = [("a", "f", 0, 4.0), ("a", "f", 1, 2.0), ("b", "f", 0, 4.0), ("b", "f", 1, 2.0)]
    assert compared(*one) == "a and b tie over f and 2 seeds: shortest in 1 of 2 runs."
    assert compared(*one[:2]) == "a planned f and 2 seeds, 50 % above the lower bounds on average."
    graphs = [("a", "f", 0, 4.0), ("a", "g", 0, 2.0), ("b", "f", 0, 4.0)]
    assert compared(*graphs) == "a is best over 2 graphs: shortest in 1 of 2 runs; b has fewer results."

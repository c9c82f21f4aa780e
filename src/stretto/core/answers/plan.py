"""What a plan, a plan on pools, a simulation, a bound or a pipeline says."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stretto.core.answers.words import are_equal, change
from stretto.core.nodes.words import size_of
from stretto.core.notes import assumptions, verdict
from stretto.core.units import format_count, format_seconds, is_zero_gap

if TYPE_CHECKING:
    from stretto.api.simulate import SimulatedPlan
    from stretto.core.problem import Problem
    from stretto.graphs.bounds.bound import Bound
    from stretto.graphs.evaluate import PlanResult
    from stretto.graphs.pipelines.plan import PipelinePlan
    from stretto.graphs.rental.result import RentalPlan


def how_good(problem: Problem, gap: float) -> str:
    """Say how far a makespan is from its bound, and on which assumptions that rests."""
    if gap < 0 and not is_zero_gap(gap):
        return "below its lower bound, so one of the two is wrong: please report this"
    said, guessed = verdict(problem, gap), assumptions(problem)
    if is_zero_gap(gap) or math.isinf(gap) or not guessed:
        return said
    return f"{said} if {' and '.join(guessed)}"


def plan_answer(result: PlanResult) -> str:
    """Say how long the plan takes, how good that is, and what it costs."""
    problem, repaired = result.problem, result.plan.info.get("memory_repair") is not None
    by = f"A packing within memory, in place of {result.policy}'s plan," if repaired else result.policy
    takes = f"{by} finishes {problem.graph.name} in {format_seconds(result.makespan_s)} on {size_of(problem.cluster)}"
    if result.setting.noise:
        return f"{takes} with noise {result.setting.noise:g} in the run times; that is not compared with the bound."
    cost = f", for ${result.cost_usd:,.4g}" if result.cost_usd else ""
    return f"{takes}{cost}: {how_good(problem, result.gap)}."


def rental_answer(found: RentalPlan) -> str:
    """Say whether the plan keeps its limits, and what it costs."""
    num_rented = len({one.node for one in found.rentals})
    num_owned = sum(node.market == "owned" for node in found.fleet.nodes)
    nodes = f"{num_owned:,} owned and {format_count(num_rented, 'rented node')}"
    assumed = "; some terms of the nodes are assumed" if any("assumed" in note for note in found.fleet.notes) else ""
    told = list(found.verdict)
    if not any(words.startswith(f"costs ${found.cost_usd:,.2f}") for words in told):
        told.append(f"costs ${found.cost_usd:,.2f}")
    return f"{found.problem.graph.name} on {nodes} {'; '.join(told)}{_assumed(found.problem)}{assumed}."


def simulated_answer(done: SimulatedPlan) -> str:
    """Say how long the plan takes when executed, beside what was planned."""
    plan = f"The plan by {done.policy}" if done.policy else "The plan"
    takes = f"{plan} takes {format_seconds(done.schedule.makespan_s)} for {done.problem.graph.name}"
    how = f" with noise {done.noise:g} in the run times" if done.noise else ""
    if not done.planned_makespan_s:
        return f"{takes}{how}."
    if are_equal(done.schedule.makespan_s, done.planned_makespan_s):
        return f"{takes}{how}, as planned."
    compared = change(done.schedule.makespan_s, done.planned_makespan_s, "less than", "more than")
    return f"{takes}{how}: {compared} the {format_seconds(done.planned_makespan_s)} that were planned."


def bound_answer(problem: Problem, found: Bound) -> str:
    """Say what no schedule can beat."""
    what = f"{problem.graph.name} on {size_of(problem.cluster)}"
    if found.value_s <= 0:
        return f"Nothing is known about {what}: the lower bound is zero."
    return f"No schedule of {what} takes less than {format_seconds(found.value_s)}{_assumed(problem)}."


def pipeline_answer(found: PipelinePlan) -> str:
    """Say how often a microbatch comes out, how good that is, and when the first one does."""
    if found.period_s <= 0:
        return f"Nothing in {found.problem.graph.name} takes time."
    rate = f"every {format_seconds(found.period_s)} ({1 / found.period_s:,.3g} per second)"
    good = how_good(found.problem, found.gap)
    return (
        f"{found.problem.graph.name} completes a microbatch {rate}, {good}; "
        f"the first is done after {format_seconds(found.latency_s)}."
    )


def _assumed(problem: Problem) -> str:
    guessed = assumptions(problem)
    return f" if {' and '.join(guessed)}" if guessed else ""

"""The third stage: run placements on the real devices, give the simulator what they took, and plan again with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.core.units import format_seconds
from stretto.engines.jax_measure import MeasuredPlans, TimedPlacement, time_operations, time_programs, with_times
from stretto.errors import InvalidInput
from stretto.graphs.evaluate import evaluate
from stretto.reports.placement import Placement

#: Plans that run beside the policy's own, so that the ranks of the simulator can be judged.
OTHERS: tuple[tuple[str, int], ...] = (
    ("single-device", 0),
    ("heft", 0),
    ("etf", 0),
    ("round-robin", 0),
    ("random", 1),
    ("random", 2),
)


def measured(placement: Placement, devices: Sequence[Any], budget: Budget, *, repeats: int = 5) -> Placement:
    """Return the placement that took the least time on the real devices, planned with the measured costs.

    Parameters
    ----------
    devices
        A device of JAX for each device of the placement.
    """
    first, program = placement.result, placement.program
    kinds = first.problem.cluster.kinds
    if len(kinds) > 1:
        raise InvalidInput(f"operations are timed on one kind of device, not on {', '.join(kinds)}", field="measure")
    seconds = time_operations(program, devices[0], repeats=repeats)
    problem = Problem.of(with_times(first.problem.graph, seconds), first.problem.cluster)
    again = evaluate(problem, first.policy, params=first.params, budget=budget, setting=first.setting)
    plans = {first.policy: again} | {
        f"{name} {seed}".removesuffix(" 0"): evaluate(problem, name, budget=Budget(seed), setting=first.setting)
        for name, seed in OTHERS
        if name != first.policy
    }
    plans |= {
        f"{first.policy} before": replace(first, problem=problem, schedule=first.setting.run(problem, first.plan))
    }
    took = time_programs(program, [one.schedule for one in plans.values()], devices, repeats=repeats)
    rows = [
        TimedPlacement(name, first.setting.run(first.problem, one.plan).makespan_s, one.makespan_s, measured_s)
        for (name, one), measured_s in zip(plans.items(), took, strict=True)
    ]
    best = min(range(len(plans) - 1), key=lambda place: rows[place].measured_s)
    found = MeasuredPlans(tuple(rows))
    chosen = replace(list(plans.values())[best], policy=rows[best].name)
    return replace(placement, result=chosen, measured=found, remarks=(_told(found, rows[best]),), busy_factor=1.0)


def _told(found: MeasuredPlans, best: TimedPlacement) -> str:
    return (
        f"{len(found.plans)} placements ran on the devices; rank correlation of simulated and measured times: "
        f"{found.rank_before:.2f} by the costs before, {found.rank_after:.2f} by measured ones. This one took "
        f"{format_seconds(best.measured_s)} (simulated: {format_seconds(best.simulated_s)})."
    )

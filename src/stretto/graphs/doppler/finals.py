"""The final comparison on an engine: a few plans run in turns, and the one with the least median seconds is kept.

During training every plan is measured once or twice, so the best of many owes part of its time to chance. The plan of a
heuristic takes part as well, so that the result is never slower than that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stretto import catalog, registry
from stretto.core.csr import Floats
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.learning.trainer import Executor


def measure_in_turns(engine: Executor, plans: Sequence[Plan], rounds: int) -> Floats:  # [plans, rounds]
    """Run all plans once per round: what else the machine does then hits all of them alike."""
    return np.array([[engine.execute(plan) for plan in plans] for _ in range(rounds)]).T


def fastest(engine: Executor, plans: Sequence[Plan], rounds: int) -> Plan:
    """Return the plan with the least median seconds; of equals the first."""
    return plans[int(np.argmin(np.median(measure_in_turns(engine, plans, rounds), axis=1)))]


def rival_plans(problem: Problem, names: Sequence[str], seed: int) -> list[Plan]:
    """Return the plans of heuristics, of those that can plan this problem."""
    planners = [registry.construct("policy", name, catalog.PLANNERS, {}) for name in names]
    return [p.plan(problem, Budget(seed=seed)) for p in planners if p.supports(problem) is None]

"""A number that no schedule beats, and how it was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stretto.core.problem import Problem
from stretto.registry import lookup

_HERE = "stretto.graphs.bounds"

#: ``method(relaxation, time_limit_s) -> seconds`` for tasks on devices.
METHODS: dict[str, str] = {
    "critical-path": f"{_HERE}.relaxation:critical_path",
    "area": f"{_HERE}.area:area",
    "combined": f"{_HERE}.interval:combined",
    "cp-sat": f"{_HERE}.cpsat:cpsat_bound",
}

#: The same names for projects with renewable resources.
PROJECT_METHODS: dict[str, str] = METHODS | {
    "area": f"{_HERE}.project:project_area",
    "combined": f"{_HERE}.project:project_combined",
}

#: The same names for clusters with nodes that pack.
PACKED_METHODS: dict[str, str] = METHODS | {
    "area": f"{_HERE}.packed:packed_area",
    "combined": f"{_HERE}.packed:packed_combined",
}

DEFAULT_METHODS = ("critical-path", "area", "combined")
#: Tasks times device classes beyond which only the quick bound is computed unless others are asked for.
QUICK_FROM = 500_000


@dataclass(frozen=True)
class Bound:
    """A lower bound on the makespan of every noiseless schedule of a problem.

    Attributes
    ----------
    parts
        Seconds by method.
    method
        The method with the largest value, the first of them in case of a tie.
    """

    value_s: float
    parts: Mapping[str, float] = field(default_factory=dict)
    method: str = ""


def bound(problem: Problem, *, methods: Sequence[str] | None = None, time_limit_s: float | None = None) -> Bound:
    """Return the best of several lower bounds on the makespan.

    They hold for every execution without noise: any plan, either discipline, any contention.

    Parameters
    ----------
    methods
        Among ``critical-path``, ``area``, ``combined`` and ``cp-sat``. None takes the first three,
        or for very large problems a quick bound that does not outlast the planner.
    time_limit_s
        For ``cp-sat``; the others take what they take, seconds for a million tasks.
    """
    if methods is None:
        if problem.arrays.duration.size > QUICK_FROM and problem.graph.resources is None:
            value = lookup("bound", "quick", {"quick": f"{_HERE}.area:quick"})(problem)
            return Bound(value, {"quick": value}, "quick")
        methods = DEFAULT_METHODS
    from stretto.graphs.bounds.relaxation import Relaxation
    from stretto.graphs.bounds.rounding import on_grid

    table = METHODS if problem.packing is None else PACKED_METHODS
    if problem.graph.resources is not None:
        table = PROJECT_METHODS
    functions = {name: lookup("bound", name, table) for name in methods}
    relaxation = Relaxation.of(problem)
    parts = {
        name: on_grid(function(relaxation, time_limit_s), relaxation.grid, relaxation.num_tasks)
        for name, function in functions.items()
    }
    best = max(parts, key=lambda name: parts[name], default="")
    return Bound(parts.get(best, 0.0), parts, best)

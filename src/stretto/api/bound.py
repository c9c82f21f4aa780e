"""``stretto.bound``: a lower bound on the makespan of any schedule."""

from __future__ import annotations

from collections.abc import Mapping

from stretto.api.inputs import ClusterLike, GraphLike, problem
from stretto.core.problem import Problem
from stretto.graphs.bounds.bound import Bound
from stretto.graphs.bounds.bound import bound as lower_bound

_QUICK_METHODS = ("critical-path", "area", "combined")


def bound(
    graph: GraphLike | Problem,
    cluster: ClusterLike | None = None,
    *,
    time_limit_s: float | None = None,
    exact: bool = False,
    dims: Mapping[str, int] | None = None,
) -> Bound:
    """Return a lower bound on the makespan of any schedule; ``exact`` asks CP-SAT as well.

    Examples
    --------
    >>> import stretto
    >>> found = stretto.bound("workload:in-tree?depth=3", "cpu:2")
    >>> found.value_s == max(found.parts.values())
    True
    """
    methods = (*_QUICK_METHODS, "cp-sat") if exact else _QUICK_METHODS
    return lower_bound(problem(graph, cluster, dims=dims), methods=methods, time_limit_s=time_limit_s)

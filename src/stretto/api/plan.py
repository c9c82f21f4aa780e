"""``stretto.plan``: plan a graph with one policy and judge the plan, on a cluster or on pools that may be rented."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from stretto.api.inputs import ClusterLike, GraphLike, graph_of, lasting, load_pools, problem
from stretto.api.options import PoolOptions
from stretto.core.plan import Discipline
from stretto.core.planner import Budget, Progress
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.graphs.conditions import Contention
from stretto.graphs.evaluate import PlanResult, PolicyLike, Setting, evaluate, planner_of

if TYPE_CHECKING:
    from stretto.graphs.rental.result import RentalPlan

__all__ = ["PlanResult", "plan", "plan_document", "planner_of"]


@overload
def plan(
    graph: GraphLike | Problem,
    cluster: ClusterLike | None = None,
    policy: PolicyLike = "heft",
    *,
    time_limit_s: float | None = None,
    seed: int = 0,
    discipline: Discipline | None = None,
    contention: Contention = "none",
    params: Mapping[str, object] | None = None,
    num_threads: int = 2,
    on_progress: Callable[[Progress], None] | None = None,
    dims: Mapping[str, int] | None = None,
    pools: None = None,
) -> PlanResult: ...


@overload
def plan(
    graph: GraphLike,
    cluster: None = None,
    policy: PolicyLike = "heft",
    *,
    time_limit_s: float | None = None,
    seed: int = 0,
    discipline: None = None,
    contention: Contention = "none",
    params: Mapping[str, object] | None = None,
    num_threads: int = 2,
    on_progress: Callable[[Progress], None] | None = None,
    dims: Mapping[str, int] | None = None,
    pools: PoolOptions,
) -> RentalPlan: ...


def plan(
    graph: GraphLike | Problem,
    cluster: ClusterLike | None = None,
    policy: PolicyLike = "heft",
    *,
    time_limit_s: float | None = None,
    seed: int = 0,
    discipline: Discipline | None = None,
    contention: Contention = "none",
    params: Mapping[str, object] | None = None,
    num_threads: int = 2,
    on_progress: Callable[[Progress], None] | None = None,
    dims: Mapping[str, int] | None = None,
    pools: PoolOptions | None = None,
) -> PlanResult | RentalPlan:
    """Plan a graph on a cluster with one policy, and judge the plan; ``dims`` are those of :func:`load`.

    The result's ``notes`` say what the plan takes for granted.

    Parameters
    ----------
    policy
        A name of ``stretto list policies``, a planner (an object with ``supports`` and ``plan``), or a function
        ``plan(problem, budget)`` that returns a :class:`Plan`, or just the device of each task.
    params
        Parameters of a policy that is given by name.
    pools
        Plan on owned nodes and on nodes that may be rented, at the least cost or time within a deadline and a budget,
        in place of a cluster. The policy plans on several choices of nodes; ``heft`` comes with a placement by cost.

    Examples
    --------
    >>> import stretto
    >>> graph = stretto.workloads.random_dag(num_tasks=50, seed=1)
    >>> result = stretto.plan(graph, "cpu:8x1.0,gpu:2x5.0", policy="heft")
    >>> result.makespan_s >= result.lower_bound_s > 0
    True

    A function of your own may plan, too; here it names the fastest device of each task:

    >>> def fastest(problem, budget):
    ...     return problem.device_duration.argmin(axis=1)
    >>> stretto.plan(graph, "cpu:8x1.0,gpu:2x5.0", policy=fastest).policy
    'fastest'

    >>> found = stretto.plan(graph, pools=stretto.PoolOptions("own:8*4,cloud:0-16*4@0.40~90s", deadline="2h"))
    >>> found.keeps_limits, found.cost_usd
    (True, 0.0)
    """
    planner_of(policy, params)  # a misspelt name is found before a large file is read
    budget = Budget(seed, time_limit_s, num_threads, on_progress)
    setting = Setting(discipline, contention)
    if pools is not None:
        for name, given in (("cluster", cluster), ("discipline", discipline)):
            if given is not None:
                raise InvalidInput("cannot be combined with pools: a plan on pools makes its own choice", field=name)
        return _plan_pools(graph, pools, policy, params, budget, setting, dims)
    return evaluate(problem(graph, cluster, dims=dims), policy, params=params, budget=budget, setting=setting)


def plan_document(
    result: PlanResult | RentalPlan, graph: str, cluster: str | None, *, is_measured: bool = False
) -> dict[str, Any]:
    """Return the JSON document of a result, with its sources so that it can be read alone.

    Parameters
    ----------
    is_measured
        Durations and links were measured before planning: the sources do not hold them, so the document does.
    """
    from stretto.api.plan_file import measured_sources, rented_sources

    sources = {"graph_source": lasting(graph), "cluster_source": lasting(cluster) if cluster is not None else None}
    document = result.to_json() | sources
    if not isinstance(result, PlanResult):
        return document | rented_sources(result.problem, result.fleet)
    return document | (measured_sources(result.problem) if is_measured else {})


def _plan_pools(
    source: GraphLike | Problem,
    options: PoolOptions,
    policy: PolicyLike,
    params: Mapping[str, object] | None,
    budget: Budget,
    setting: Setting,
    dims: Mapping[str, int] | None,
) -> RentalPlan:
    from stretto.core.graph import TaskGraph
    from stretto.graphs.rental.result import RentalPlan
    from stretto.graphs.rental.search import rent

    if isinstance(source, Problem):
        raise TypeError("a Problem has its cluster already: give the graph to plan on pools")
    graph = graph_of(source, dims)
    if not isinstance(graph, TaskGraph):
        raise InvalidInput("holds several graphs; name one of them with FILE#MEMBER", source=graph.name)
    machines, goal = options.pools, options.goal()
    notes: tuple[str, ...] = ()
    if isinstance(machines, (str, Path)):
        from stretto.files.prices.offer_pools import is_price_list, offer_pools

        machines, notes = offer_pools(machines, graph) if is_price_list(machines) else (load_pools(machines), ())
    found = rent(graph, machines, goal, policy, params=params, budget=budget, setting=setting, notes=notes)
    return RentalPlan(goal, tuple(found), budget.seed, dict(params or {}))

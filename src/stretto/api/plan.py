"""``stretto.plan``: plan a graph with one policy and judge the plan, or choose pools for a workflow."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from stretto.api.inputs import ClusterLike, GraphLike, lasting, load_pools, problem, trace_of
from stretto.api.options import PoolOptions
from stretto.core.plan import Discipline
from stretto.core.planner import Budget, Progress
from stretto.core.pool import Pool
from stretto.core.problem import Problem
from stretto.core.trace import Trace
from stretto.graphs.conditions import Contention
from stretto.graphs.evaluate import PlanResult, PolicyLike, Setting, evaluate, planner_of

if TYPE_CHECKING:
    from stretto.queues.workflows.pools import Aim, PoolTrial

__all__ = ["PlanResult", "PoolPlan", "plan", "plan_document", "planner_of"]

#: Ways to run a workflow are judged by their means over so many draws of interruptions.
_NUM_SEEDS = 3


@dataclass(frozen=True, eq=False)
class PoolPlan:
    """The ways to run a workflow in pools that were tried, the best first."""

    trace: Trace
    pools: tuple[Pool, ...]
    aim: Aim
    tried: tuple[PoolTrial, ...]

    @property
    def best(self) -> PoolTrial:
        return self.tried[0]

    @property
    def keeps_limits(self) -> bool:
        """Whether the best way meets the deadline and the limit of cost."""
        return self.best.num_late == 0 and self.best.cost_usd <= self.aim.budget_usd

    def to_json(self) -> dict[str, object]:
        """Return what ``stretto plan --pools --output json`` prints."""
        return {
            "workflow": self.trace.name,
            "aim": {key: _finite(value) for key, value in asdict(self.aim).items()},
            "keeps_limits": self.keeps_limits,
            "tried": [self._row(one) for one in self.tried],
        }

    def _row(self, one: PoolTrial) -> dict[str, object]:
        row = {key: _finite(value) for key, value in asdict(one).items() if key != "way"}
        return asdict(one.way) | {"pools": [self.pools[k].name for k in one.way.pools]} | row


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
def plan(graph: GraphLike | Trace, *, seed: int = 0, pools: PoolOptions) -> PoolPlan: ...


def plan(
    graph: GraphLike | Problem | Trace,
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
) -> PlanResult | PoolPlan:
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
        Choose where to run a workflow in a queue and at what cost, in place of planning on a cluster; the result is
        then a :class:`PoolPlan`, and only ``graph`` and ``seed`` have an effect.

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
    >>> found.keeps_limits
    True
    """
    if pools is not None:
        return _plan_pools(graph, pools, seed)
    planner_of(policy, params)  # a misspelt name is found before a large file is read
    budget = Budget(seed, time_limit_s, num_threads, on_progress)
    setting = Setting(discipline, contention)
    if isinstance(graph, Trace):
        raise TypeError("a trace is planned on pools: plan(trace, pools=PoolOptions(...))")
    return evaluate(problem(graph, cluster, dims=dims), policy, params=params, budget=budget, setting=setting)


def plan_document(result: PlanResult, graph: str, cluster: str | None, *, is_measured: bool = False) -> dict[str, Any]:
    """Return the JSON document of a result, with its sources so that it can be read alone.

    Parameters
    ----------
    is_measured
        Durations and links were measured before planning: the sources do not hold them, so the document does.
    """
    sources = {"graph_source": lasting(graph), "cluster_source": lasting(cluster) if cluster is not None else None}
    document = result.to_json() | sources
    if is_measured:
        from stretto.api.plan_file import measured_sources

        document |= measured_sources(result.problem)
    return document


def _plan_pools(source: GraphLike | Problem | Trace, options: PoolOptions, seed: int) -> PoolPlan:
    from stretto.core.graph import TaskGraph
    from stretto.files.traces.workflow import trace_of_graph
    from stretto.queues.workflows.pool_search import choose_way

    machines = load_pools(options.pools) if isinstance(options.pools, (str, Path)) else tuple(options.pools)
    if isinstance(source, TaskGraph):
        source = trace_of_graph(source)
    if not isinstance(source, (Trace, str, Path)):
        raise TypeError(f"{type(source).__name__} is not one workflow: give a graph, a trace or a file")
    trace, aim = trace_of(source), options.aim()
    found = choose_way(trace, machines, aim, seeds=range(seed, seed + _NUM_SEEDS))
    return PoolPlan(trace, machines, aim, tuple(found))

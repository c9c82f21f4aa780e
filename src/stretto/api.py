"""The assembly: how the parts fit, one function per verb.

``plan`` reads like the system itself: compile the problem, let a policy decide, execute the
decision in the simulator, and set the outcome against a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Discipline, Plan
from stretto.core.planner import Budget, Progress
from stretto.core.pool import Pool
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.core.trace import Trace
from stretto.core.workload import Workload
from stretto.engines.engine import RunOptions, RunResult, make_engine
from stretto.engines.work import Work
from stretto.engines.workflow_file import is_workflow, load_workflow
from stretto.errors import InvalidInput
from stretto.files.load import load as load_file
from stretto.files.load import load_cluster, save
from stretto.files.traces.load import load_trace
from stretto.graphs.bounds.bound import Bound
from stretto.graphs.bounds.bound import bound as lower_bound
from stretto.graphs.compare import Comparison, Row
from stretto.graphs.compare import compare as compare_policies
from stretto.graphs.conditions import Contention
from stretto.graphs.evaluate import PlanResult, Setting, evaluate
from stretto.queues.play import play as replay_queue
from stretto.queues.result import QueueResult
from stretto.reports.placement import Placement, place_function

GraphLike = TaskGraph | Workload | str | Path
ClusterLike = Cluster | str | Path

__all__ = [
    "bound",
    "compare",
    "load",
    "load_cluster",
    "load_trace",
    "place",
    "plan",
    "problem",
    "replay",
    "run",
    "save",
    "simulate",
]


def load(
    source: str | Path, *, format: str | None = None, dims: Mapping[str, int] | None = None
) -> TaskGraph | Workload:
    """Read a graph, or a workload of several, from a file of any known format, or of a workflow of commands.

    Parameters
    ----------
    dims
        Sizes of dimensions that a model (ONNX) leaves open, such as ``{"batch": 8}``.
    """
    if format is None and is_workflow(str(source)):
        return load_workflow(source).graph
    return load_file(source, format=format, dims=dims)


def problem(graph: GraphLike, cluster: ClusterLike | None = None, *, dims: Mapping[str, int] | None = None) -> Problem:
    """Compile a graph for a cluster; both may be given as files or, for clusters, in shorthand.

    A project (RCPSP) brings its own resources and needs no cluster. ``dims`` are those of :func:`load`.
    """
    work = graph if isinstance(graph, (TaskGraph, Workload)) else load(graph, dims=dims)
    if cluster is None:
        cluster = "shop:1" if isinstance(work, TaskGraph) and work.resources is not None else "cpu:4"
    return Problem.of(work, cluster if isinstance(cluster, Cluster) else load_cluster(cluster))


def plan(
    graph: GraphLike,
    cluster: ClusterLike | None = None,
    policy: str = "heft",
    *,
    time_limit_s: float | None = None,
    seed: int = 0,
    discipline: Discipline | None = None,
    contention: Contention = "none",
    params: Mapping[str, Any] | None = None,
    num_threads: int = 2,
    on_progress: Callable[[Progress], None] | None = None,
    dims: Mapping[str, int] | None = None,
) -> PlanResult:
    """Plan a graph on a cluster with one policy, and judge the plan; ``dims`` are those of :func:`load`.

    The result's ``notes`` say what the plan takes for granted.

    Examples
    --------
    >>> import stretto
    >>> graph = stretto.workloads.random_dag(num_tasks=50, seed=1)
    >>> result = stretto.plan(graph, "cpu:8x1.0,gpu:2x5.0", policy="heft")
    >>> result.makespan_s >= result.lower_bound_s > 0
    True
    """
    budget = Budget(seed, time_limit_s, num_threads, on_progress)
    setting = Setting(discipline, contention)
    return evaluate(problem(graph, cluster, dims=dims), policy, params=params, budget=budget, setting=setting)


def place(
    fn: Callable[..., Any],
    *example_args: Any,
    devices: int | ClusterLike,
    policy: str | None = None,
    time_limit_s: float | None = None,
    seed: int = 0,
    discipline: Discipline | None = None,
    contention: Contention = "none",
    params: Mapping[str, Any] | None = None,
    num_threads: int = 2,
    on_progress: Callable[[Progress], None] | None = None,
    example_kwargs: Mapping[str, Any] | None = None,
) -> Placement:
    """Place the operations of a JAX function on devices.

    Parameters
    ----------
    fn, example_args, example_kwargs
        The function and arguments to trace it with: arrays, or ``jax.ShapeDtypeStruct``; nothing is computed.
    devices
        A number of GPUs (joined by 16 GB/s), a cluster, or its shorthand such as ``gpu:4@50GB/s``.
    policy
        Who decides; by default ``doppler``, or ``heft`` where that is not in the catalog.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, stretto
    >>> def both(x, a, b):
    ...     return jnp.tanh(x @ a) + jnp.tanh(x @ b)
    >>> shape = jax.ShapeDtypeStruct((4096, 4096), "float32")
    >>> placement = stretto.place(both, shape, shape, shape, devices=2, policy="heft")
    >>> placement.speedup_over_single > 1.2
    True
    """
    budget = Budget(seed, time_limit_s, num_threads, on_progress)
    setting = Setting(discipline, contention)
    return place_function(fn, example_args, example_kwargs or {}, devices, policy, params, budget, setting)


def simulate(
    graph: GraphLike | PlanResult,
    cluster: ClusterLike | None = None,
    plan: Plan | None = None,
    *,
    discipline: Discipline | None = None,
    contention: Contention = "none",
    noise: float = 0.0,
    seed: int = 0,
    record_transfers: bool = False,
) -> Schedule:
    """Execute a plan in the simulator; a :class:`PlanResult` brings graph, cluster and plan with it."""
    if isinstance(graph, PlanResult):
        work, chosen = graph.problem, plan or graph.plan
    else:
        if plan is None:
            raise TypeError("simulate needs a plan")
        work, chosen = problem(graph, cluster), plan
    return Setting(discipline, contention, noise, seed).run(work, chosen, record_transfers=record_transfers)


def bound(
    graph: GraphLike, cluster: ClusterLike | None = None, *, time_limit_s: float | None = None, exact: bool = False
) -> Bound:
    """Return a lower bound on the makespan of any schedule; ``exact`` asks CP-SAT as well."""
    methods = ("critical-path", "area", "combined", "cp-sat") if exact else ("critical-path", "area", "combined")
    return lower_bound(problem(graph, cluster), methods=methods, time_limit_s=time_limit_s)


def compare(
    graphs: Sequence[GraphLike],
    cluster: ClusterLike,
    policies: Sequence[str],
    *,
    seeds: Sequence[int] = (0,),
    time_limit_s: float | None = None,
    contention: Contention = "none",
    discipline: Discipline | None = None,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    on_row: Callable[[Row], None] | None = None,
) -> Comparison:
    """Plan every graph with every policy and seed, and rank the policies."""
    work = [graph if isinstance(graph, (TaskGraph, Workload)) else load(graph) for graph in graphs]
    return compare_policies(
        work,
        cluster if isinstance(cluster, Cluster) else load_cluster(cluster),
        policies,
        seeds=seeds,
        time_limit_s=time_limit_s,
        setting=Setting(discipline, contention),
        params=params,
        on_row=on_row,
    )


def run(
    work: Work | GraphLike,
    cluster: ClusterLike,
    policy: str | Plan = "heft",
    *,
    engine: str = "local",
    scale: float = 1.0,
    engine_params: Mapping[str, Any] | None = None,
    options: RunOptions | None = None,
    time_limit_s: float | None = None,
    seed: int = 0,
) -> RunResult:
    """Plan some work and run it; the tasks of a mere graph pass their planned seconds times ``scale``.

    Parameters
    ----------
    policy
        Who plans, or a plan.
    engine, engine_params
        Who runs it, as ``stretto engines`` lists them, and its parameters.

    Examples
    --------
    >>> import stretto
    >>> graph = stretto.workloads.random_dag(num_tasks=20, seed=1)
    >>> result = stretto.run(graph, "cpu:2", scale=0.0001)
    >>> result.status, result.is_timed
    ('done', True)
    """
    if not isinstance(work, Work):
        graph = work if isinstance(work, (TaskGraph, Workload)) else load(work)
        if not isinstance(graph, TaskGraph):
            raise InvalidInput(f"{graph.name!r} holds several graphs: an engine runs one", field="work")
        work = Work.timed(graph, scale)
    machines = cluster if isinstance(cluster, Cluster) else load_cluster(cluster)
    chosen = policy
    if not isinstance(chosen, Plan):
        budget = Budget(seed, time_limit_s)
        chosen = evaluate(problem(work.graph, machines), chosen, budget=budget).plan
    return make_engine(engine, **(engine_params or {})).run(work, chosen, machines, options or RunOptions())


def replay(trace: Trace | str | Path, machine: int | Sequence[Pool] | None = None, **rules: Any) -> QueueResult:
    """Replay recorded jobs on a machine, by default the one that they were recorded on.

    Parameters
    ----------
    machine
        A number of processors, or pools.
    rules
        ``strategy`` (``mars`` and ``portfolio`` among them), ``backfill``, ``estimates`` and others; see
        :func:`stretto.queues.replay.replay`.

    Returns
    -------
    QueueResult
        Its ``notes`` say what was passed over: jobs that cannot run there, by reason, and partitions.

    Examples
    --------
    >>> import stretto
    >>> from stretto.queues.workloads.lublin import lublin
    >>> trace = lublin(500, seed=1, num_procs=64)
    >>> result = stretto.replay(trace, 64, strategy="saf", backfill="easy")
    >>> bool((result.start_s >= result.trace.submit_s).all())
    True
    """
    jobs = trace if isinstance(trace, Trace) else load_trace(trace)
    chosen = machine if machine is not None else jobs.recorded_procs("machine=N")
    return replay_queue(jobs, chosen, **rules)

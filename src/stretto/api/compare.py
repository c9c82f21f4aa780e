"""``stretto.compare``: rank policies on graphs, or strategies on a trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast, overload

from stretto import catalog
from stretto.api.inputs import (
    ClusterLike,
    GraphLike,
    MachineLike,
    TraceLike,
    cluster_of,
    graph_of,
    is_trace,
    machine_of,
    trace_of,
)
from stretto.api.options import TraceOptions
from stretto.core.plan import Discipline
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.graphs.compare import Comparison, PolicyRow
from stretto.graphs.compare import compare as compare_policies
from stretto.graphs.conditions import Contention
from stretto.graphs.evaluate import PolicyLike, Setting
from stretto.queues.compare import QueueComparison, QueueRow, compare_strategies, pairs_of, usable_strategies
from stretto.queues.recorded.record import RECORDED, has_waits
from stretto.queues.strategies import StrategyLike
from stretto.registry import known

T = TypeVar("T")
ALL = "all"


@overload
def compare(  # type: ignore[overload-overlap]  # a text is a sequence, too
    sources: Sequence[GraphLike],
    cluster: ClusterLike,
    policies: Sequence[PolicyLike] | str = ALL,
    *,
    seeds: Sequence[int] = (0,),
    time_limit_s: float | None = None,
    contention: Contention = "none",
    discipline: Discipline | None = None,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    dims: Mapping[str, int] | None = None,
    on_row: Callable[[PolicyRow], None] | None = None,
) -> Comparison: ...


@overload
def compare(
    sources: TraceLike,
    cluster: MachineLike | None = None,
    *,
    strategies: Sequence[StrategyLike] | str = ALL,
    options: TraceOptions | None = None,
    on_row: Callable[[QueueRow], None] | None = None,
) -> QueueComparison: ...


def compare(
    sources: Sequence[GraphLike] | TraceLike,
    cluster: ClusterLike | MachineLike | None = None,
    policies: Sequence[PolicyLike] | str = ALL,
    *,
    seeds: Sequence[int] = (0,),
    time_limit_s: float | None = None,
    contention: Contention = "none",
    discipline: Discipline | None = None,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    dims: Mapping[str, int] | None = None,
    strategies: Sequence[StrategyLike] | str = ALL,
    options: TraceOptions | None = None,
    on_row: Callable[[PolicyRow], None] | Callable[[QueueRow], None] | None = None,
) -> Comparison | QueueComparison:
    """Plan every graph with every policy and seed, or replay a trace with every strategy, and rank them.

    Parameters
    ----------
    sources
        Graphs, or one trace.
    cluster
        For a trace: a number of processors or pools, by default as recorded.
    policies
        Names, planners or functions as for :func:`plan`; or ``all`` that can plan these graphs.
    strategies, options
        Of a trace: names or functions as for :func:`replay`, or ``all`` that can replay it; and how. Where the trace
        holds waits, ``recorded`` is always among them: what really happened.
    params
        Parameters of policies, by name.
    on_row
        Told of each result as soon as it is there.

    Examples
    --------
    >>> import stretto
    >>> found = stretto.compare(["workload:cholesky?num_tiles=4"], "cpu:2,gpu:1@1GB/s", ["heft", "round-robin"])
    >>> found.summary()[0].policy
    'heft'
    >>> found = stretto.compare("trace:lublin?num_jobs=300&num_procs=64&load=1.0", strategies=["fcfs", "saf"])
    >>> sorted(line.strategy for line in found.summary())
    ['fcfs', 'saf']
    """
    if isinstance(sources, Trace) or is_trace(sources):
        one = cast("TraceLike", sources)
        return _compare_trace(one, cast("MachineLike | None", cluster), strategies, options or TraceOptions(), on_row)
    if cluster is None:
        raise InvalidInput("name the machines, for example cpu:8x1.0,gpu:2x5.0", field="cluster")
    graphs = [sources] if isinstance(sources, str) else cast("Sequence[GraphLike]", sources)
    machines = cluster_of(cast("ClusterLike", cluster))
    work = [graph_of(graph, dims) for graph in graphs]
    return compare_policies(
        work,
        machines,
        policy_names(policies),
        seeds=seeds,
        time_limit_s=time_limit_s,
        setting=Setting(discipline, contention),
        params=params,
        on_row=cast("Callable[[PolicyRow], None] | None", on_row),
    )


def policy_names(policies: Sequence[T] | str) -> list[T | str]:
    """Return the policies that are meant; ``all`` are those of the catalog and of plugins."""
    return [*sorted(known("policy", catalog.PLANNERS))] if policies == ALL else [*policies]


def strategies_to_compare(
    trace: Trace, machine: MachineLike, strategies: Sequence[T] | str, options: TraceOptions
) -> tuple[list[T | str], int]:
    """Return the strategies that are meant, and how many replays comparing them takes."""
    place, fills = machine_of(trace, machine), options.backfills
    names: list[T | str] = [*strategies]
    if RECORDED not in names and has_waits(trace):
        names.append(RECORDED)
    if strategies == ALL:
        names = [*usable_strategies(trace, place, backfills=fills, **options.rules())]
    return names, len(pairs_of(names, fills)) * max(1, options.windows)


def _compare_trace(
    source: TraceLike,
    machine: MachineLike | None,
    strategies: Sequence[StrategyLike] | str,
    options: TraceOptions,
    on_row: Callable[[PolicyRow], None] | Callable[[QueueRow], None] | None,
) -> QueueComparison:
    meter = options.meter()
    trace = trace_of(source, strict=options.strict)
    place = machine_of(trace, machine)
    names, _ = strategies_to_compare(trace, place, strategies, options)
    return compare_strategies(
        trace,
        place,
        names,
        backfills=options.backfills,
        num_windows=options.windows,
        window_jobs=options.window_size,
        on_row=cast("Callable[[QueueRow], None] | None", on_row),
        meter=meter,
        rank_by=options.rank_by,
        **options.rules(),
    )

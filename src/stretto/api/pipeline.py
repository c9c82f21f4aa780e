"""``stretto.pipeline``: a placement for throughput, run again and again for microbatches."""

from __future__ import annotations

from collections.abc import Mapping

from stretto.api.inputs import ClusterLike, GraphLike, problem
from stretto.core.problem import Problem
from stretto.graphs.pipelines.plan import PipelinePlan, plan_pipeline


def pipeline(
    graph: GraphLike | Problem,
    cluster: ClusterLike | None = None,
    *,
    microbatches: int = 8,
    time_limit_s: float | None = None,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
) -> PipelinePlan:
    """Place a graph for throughput: the least time between two microbatches, within the memory of the devices.

    Parameters
    ----------
    microbatches
        How many run one after the other; activations of those in flight take memory.

    Examples
    --------
    >>> import stretto
    >>> found = stretto.pipeline("workload:chain-matmul", "gpu:2@16GB/s", microbatches=4)
    >>> found.lower_bound_s <= found.period_s <= found.cut_period_s
    True
    """
    return plan_pipeline(
        problem(graph, cluster, dims=dims), num_microbatches=microbatches, time_limit_s=time_limit_s, seed=seed
    )

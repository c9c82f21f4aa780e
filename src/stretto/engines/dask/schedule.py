"""What a client asks of the plugin in Dask's scheduler, and what the plugin has to tell."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from stretto import catalog, registry
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import DISCIPLINES, Discipline, Plan
from stretto.core.planner import Budget
from stretto.engines.dask.dask_types import Client, Key, Scheduler
from stretto.engines.dask.placer import Placer
from stretto.engines.dask.settings import DEFAULT_DURATION_S, DaskReport, Durations, PlacementSettings, TaskEstimates
from stretto.engines.dask.survey import check_names, from_client
from stretto.engines.driver.dispatch import Dispatcher, LateDispatcher
from stretto.errors import InvalidInput


@contextmanager
def schedule(
    client: Client,
    policy: str = "heft",
    *,
    plan: tuple[TaskGraph, Cluster, Plan] | None = None,
    cluster: Cluster | str | None = None,
    durations: Durations | TaskGraph | None = None,
    sizes: Mapping[Key, float] | None = None,
    default_duration_s: float = DEFAULT_DURATION_S,
    discipline: Discipline = "work-conserving",
    params: Mapping[str, object] | None = None,
    time_limit_s: float | None = None,
    seed: int = 0,
) -> Iterator[DaskReport]:
    """Place and order every graph that the client computes inside, by a plan for the whole graph.

    Parameters
    ----------
    client
        A ``distributed.Client``, of a local cluster or of one that runs elsewhere; the scheduler's
        environment must have Stretto installed, as Dask asks of everything that graphs use.
    policy
        A planner of the catalog; it runs in the scheduler, when a graph arrives.
    plan
        A plan made before, with the graph and the cluster that it is for; tasks are found by the text of their key,
        those it does not know are left to Dask.
    cluster
        Devices named after workers, with kinds, speeds and links; by default one of kind ``cpu`` per thread.
    durations, sizes
        Seconds of a task (or seconds by kind of worker) and bytes of its result, by key, by the key's text or by
        prefix; or, as ``durations``, a graph that was captured. What is missing comes from Dask's running averages.
    discipline
        ``work-conserving``: a worker takes the first in the plan's order of what is ready. ``sequence``: it keeps the
        planned order and waits for the next one; tasks are then held back in the scheduler until their turn.

    Returns
    -------
    A report that is filled in when the context ends.

    Examples
    --------
    >>> with stretto.dask.schedule(client, policy="heft") as report:  # doctest: +SKIP
    ...     total = x.sum().compute()
    """
    if discipline not in DISCIPLINES:
        raise InvalidInput(f"{discipline!r} is not one of {', '.join(DISCIPLINES)}", field="discipline")
    registry.construct("policy", policy, catalog.PLANNERS, params or {})  # a wrong name is better told here
    fixed = None
    if plan is not None:
        graph, planned_on, chosen = plan
        cluster, fixed = planned_on, _by_name(graph, planned_on, chosen)
    yield from _session(
        client,
        PlacementSettings(
            client.id,
            policy,
            dict(params or {}),
            fixed,
            _cluster(client, cluster),
            TaskEstimates.of(durations, sizes, default_duration_s),
            discipline,
            Budget(seed, time_limit_s),
        ),
    )


@contextmanager
def dispatch(
    client: Client,
    dispatcher: Dispatcher | None = None,
    *,
    cluster: Cluster | str | None = None,
    durations: Durations | TaskGraph | None = None,
    sizes: Mapping[Key, float] | None = None,
    default_duration_s: float = DEFAULT_DURATION_S,
) -> Iterator[DaskReport]:
    """Place the tasks of every graph that the client computes inside as late as possible, one decision at a time.

    Tasks are held back in the scheduler: a worker has one that runs and at most one that waits behind it, and each next
    decision knows everything that has ended by then. For the other parameters see :func:`schedule`.

    Parameters
    ----------
    dispatcher
        Places the tasks; by default a :class:`LateDispatcher`.
    """
    yield from _session(
        client,
        PlacementSettings(
            client.id,
            dispatcher if dispatcher is not None else LateDispatcher(),
            cluster=_cluster(client, cluster),
            estimates=TaskEstimates.of(durations, sizes, default_duration_s),
        ),
    )


def _session(client: Client, settings: PlacementSettings) -> Iterator[DaskReport]:
    """Register the plugin, hand out a report, and fill it in at the end."""
    if client.asynchronous:
        raise InvalidInput("is asynchronous; make one with asynchronous=False", field="client")
    name = f"stretto-{uuid.uuid4().hex[:12]}"
    client.register_plugin(Placer(name, settings), name=name)
    report = DaskReport()
    try:
        yield report
    finally:
        told = client.run_on_scheduler(_retire, name=name)
        for column in dataclasses.fields(DaskReport):
            setattr(report, column.name, getattr(told, column.name))


def _retire(dask_scheduler: Scheduler, name: str) -> DaskReport:
    placer: Placer = dask_scheduler.plugins[name]
    return placer.retire()


def _cluster(client: Client, cluster: Cluster | str | None) -> Cluster | None:
    if cluster is None:
        return None
    if not isinstance(cluster, Cluster):
        from stretto.files.load import load_cluster

        cluster = load_cluster(cluster)
    check_names(from_client(client), cluster)
    return cluster


def _by_name(graph: TaskGraph, cluster: Cluster, plan: Plan) -> dict[str, tuple[str, int]]:
    names = [device.name for device in cluster.devices]
    pairs = zip(plan.assignment.tolist(), plan.rank.tolist(), strict=True)
    return {graph.task_name(task): (names[device], rank) for task, (device, rank) in enumerate(pairs)}

"""Many calls on Dask's workers: of one function on one problem, with a seed each, or of what a training plays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from stretto import catalog, registry
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.planner import Budget, Planner
from stretto.core.problem import Problem
from stretto.core.workload import Workload
from stretto.engines.dask.dask_types import Client, Future
from stretto.errors import EngineFailure, InvalidInput, MissingExtra
from stretto.files.clusters.cluster_toml import read_cluster
from stretto.files.clusters.cluster_writer import write_cluster
from stretto.files.document import Document
from stretto.files.graphs.native import FORMAT
from stretto.graphs.simulator import simulate

Result = TypeVar("Result")
Shared = TypeVar("Shared")
Item = TypeVar("Item")
#: How long a scheduler may take to answer, and to have a worker.
_PATIENCE_S = 20.0


class DaskFarm:
    """Workers that call a function for many items; what the calls share travels once to each worker.

    A worker that dies costs only the calls it had not returned.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._held: tuple[object, Future] | None = None

    def map(self, function: Callable[[Shared, Item], Result], shared: Shared, items: Sequence[Item]) -> list[Result]:
        """Return ``function(shared, item)`` of every item, in their order."""
        if self._held is None or self._held[0] is not shared:
            # A task, not scattered data: should the worker that holds it die, Dask makes it again.
            self._held = shared, self._client.submit(_itself, shared, pure=False)
        futures = [self._client.submit(function, self._held[1], item, pure=False) for item in items]
        results: list[Result] = self._client.gather(futures)
        return results


@contextmanager
def farm_at(address: str) -> Iterator[DaskFarm]:
    """Connect to the scheduler at an address, and wait until it has a worker."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise MissingExtra("distributed", "dask", "training on Dask's workers") from None
    try:
        client = Client(address, set_as_default=False, timeout=_PATIENCE_S)
    except (OSError, ValueError) as error:
        raise EngineFailure(f"no Dask scheduler answers at {address!r}: {error}") from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE_S)
        except TimeoutError as error:
            raise EngineFailure(f"the Dask scheduler at {address!r} has no workers") from error
        yield DaskFarm(client)


def _itself(shared: Shared) -> Shared:
    return shared


def farm(
    client: Client,
    function: Callable[[Problem, int], Result],
    graph: TaskGraph | Workload,
    cluster: Cluster,
    seeds: Iterable[int],
) -> list[Result]:
    """Return ``function(problem, seed)`` for every seed, computed on the workers, in the order of the seeds.

    The problem travels once to each worker, as Stretto's own JSON and TOML, and is compiled there once. A worker that
    dies costs only the calls it had not returned.

    Examples
    --------
    >>> makespans = stretto.dask.farm(client, planned_makespan("annealing"), graph, cluster, range(8))  # doctest: +SKIP
    """
    wanted = list(seeds)
    if len(set(wanted)) != len(wanted):
        raise InvalidInput("contains a seed twice; its result would be the same", field="seeds")
    return DaskFarm(client).map(_call, (function, FORMAT.write(graph), write_cluster(cluster)), wanted)


def planned_makespan(
    policy: str, time_limit_s: float | None = None, **params: object
) -> Callable[[Problem, int], float]:
    """Return the function that plans a problem with a policy of the catalog and simulates the plan."""
    registry.construct("policy", policy, catalog.PLANNERS, params)

    def evaluate(problem: Problem, seed: int) -> float:
        planner: Planner = registry.construct("policy", policy, catalog.PLANNERS, params)
        return simulate(problem, planner.plan(problem, Budget(seed, time_limit_s, num_threads=1))).makespan_s

    return evaluate


def _call(shared: tuple[Callable[[Problem, int], Result], bytes, bytes], seed: int) -> Result:
    function, graph, cluster = shared
    return function(_compiled(graph, cluster), seed)


_LAST: list[tuple[bytes, bytes, Problem]] = []


def _compiled(graph: bytes, cluster: bytes) -> Problem:
    """Return the problem of these texts; a worker keeps the last one it compiled."""
    if not _LAST or _LAST[0][:2] != (graph, cluster):
        work = FORMAT.read(Document("farm.json", graph))
        _LAST[:] = [(graph, cluster, Problem.of(work, read_cluster(Document("farm.toml", cluster))))]
    return _LAST[0][2]

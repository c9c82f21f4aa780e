"""What a client asks of the plugin in Dask's scheduler, what it knows of its tasks, and what the plugin reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Discipline
from stretto.core.planner import Budget
from stretto.engines.driver.dispatch import Dispatcher
from stretto.errors import InvalidInput

#: For a task of which nothing is known: about what Dask itself spends on one.
DEFAULT_DURATION_S = 1e-3
#: The column of a duration that holds for every kind of worker.
ANY_KIND = ""

Durations = Mapping[object, float | Mapping[str, float]]


@dataclass(frozen=True)
class TaskEstimates:
    """Seconds by name and kind of worker, bytes by name; a name is a key's text or its prefix.

    What nobody stated is taken from Dask's own running average for the prefix, then from the default.
    """

    seconds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    size_bytes: Mapping[str, float] = field(default_factory=dict)
    default_duration_s: float = DEFAULT_DURATION_S

    @staticmethod
    def of(
        durations: Durations | TaskGraph | None,
        sizes: Mapping[object, float] | None,
        default_duration_s: float,
    ) -> TaskEstimates:
        """Check what the user stated: mappings, or a graph that was captured or loaded."""
        if isinstance(durations, TaskGraph):
            seconds, known = _from_graph(durations)
        else:
            seconds, known = {str(key): _by_kind(key, value) for key, value in (durations or {}).items()}, {}
        known |= {str(key): _positive(key, value, "sizes") for key, value in (sizes or {}).items()}
        return TaskEstimates(seconds, known, _positive("default_duration_s", default_duration_s, "default_duration_s"))

    def row(self, name: str, kinds: tuple[str, ...]) -> tuple[float, ...] | None:
        """Return the seconds under this name on each kind, or None where the name is unknown."""
        stated = self.seconds.get(name)
        if stated is None:
            return None
        fallback = stated.get(ANY_KIND, sum(stated.values()) / len(stated))
        return tuple(stated.get(kind, fallback) for kind in kinds)


@dataclass(frozen=True)
class PlacementSettings:
    """What a client asked for; travels to the scheduler with the plugin.

    Attributes
    ----------
    policy
        The name of a planner, or an online dispatcher.
    fixed
        A plan made before: the worker and the position of tasks by key text; takes the place of the policy.
    """

    client_id: str
    policy: str | Dispatcher = "heft"
    params: Mapping[str, object] = field(default_factory=dict)
    fixed: Mapping[str, tuple[str, int]] | None = None
    cluster: Cluster | None = None
    estimates: TaskEstimates = field(default_factory=TaskEstimates)
    discipline: Discipline = "work-conserving"
    budget: Budget = field(default_factory=Budget)

    @property
    def is_held_back(self) -> bool:
        return self.discipline == "sequence" or not isinstance(self.policy, str)


@dataclass
class DaskReport:
    """What the plugin did.

    Attributes
    ----------
    hook_s, plan_s
        Seconds inside Dask's ``update_graph``, and the part of them that planners took.
    errors
        Graphs that were left to Dask, and why.
    """

    num_graphs: int = 0
    num_tasks: int = 0
    num_ended: int = 0
    num_replans: int = 0
    hook_s: float = 0.0
    plan_s: float = 0.0
    errors: list[str] = field(default_factory=list)

    @property
    def hook_us_per_task(self) -> float:
        return 1e6 * self.hook_s / self.num_tasks if self.num_tasks else 0.0


def _by_kind(key: object, value: float | Mapping[str, float]) -> dict[str, float]:
    if not isinstance(value, Mapping):
        return {ANY_KIND: _positive(key, value, "durations")}
    if not value:
        raise InvalidInput(
            f"has an empty table for {key!r}; give seconds for at least one kind of worker", field="durations"
        )
    return {str(kind): _positive(key, seconds, "durations") for kind, seconds in value.items()}


def _positive(key: object, value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise InvalidInput(f"has {value!r} for {key!r}; it must be a finite number and not negative", field=what)
    return float(value)


def _from_graph(graph: TaskGraph) -> tuple[dict[str, Mapping[str, float]], dict[str, float]]:
    """Return what a graph says of each task and, as means, of each category."""
    seconds: dict[str, Mapping[str, float]] = {}
    sizes: dict[str, float] = {}
    sums: dict[str, tuple[list[Mapping[str, float]], list[float]]] = {}
    for task in range(graph.num_tasks):
        name, group = graph.task_name(task), graph.category_name(task)
        seconds[name] = _graph_row(graph, task)
        sizes[name] = float(graph.object_size[graph.out_ptr[task] : graph.out_ptr[task + 1]].sum())
        rows, bytes_ = sums.setdefault(group, ([], []))
        rows.append(seconds[name])
        bytes_.append(sizes[name])
    for group, (rows, bytes_) in sums.items():
        seconds.setdefault(group, {kind: sum(row[kind] for row in rows) / len(rows) for kind in rows[0]})
        sizes.setdefault(group, sum(bytes_) / len(bytes_))
    return seconds, sizes


def _graph_row(graph: TaskGraph, task: int) -> dict[str, float]:
    if graph.kind_duration_s is None:
        return {ANY_KIND: float(graph.work_s[task])}
    measured = zip(graph.kinds, graph.kind_duration_s[task].tolist(), strict=True)
    return {ANY_KIND: float(graph.work_s[task]), **dict(measured)}

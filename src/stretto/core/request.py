"""What jobs ask of a site: nodes, tasks, processors, memory and GPUs, in the partitions that they may use."""

from __future__ import annotations

from dataclasses import dataclass, field

from stretto.core.site import MAX_COUNT
from stretto.errors import InvalidInput

#: The type of GPUs that a job takes whatever their type.
ANY_GPU = "any"


@dataclass(frozen=True)
class ResourceRequest:
    """What one job, or one component of a heterogeneous job, asks for.

    A node that hosts *m* of the tasks gives ``m`` times what a task needs, and once what is needed per node.

    Attributes
    ----------
    partitions
        Partitions that the job may use; empty = the default one.
    num_tasks, cpus_per_task
        Indivisible tasks, each on one node.
    min_nodes, max_nodes
        How many nodes the tasks may be spread over; ``max_nodes`` None = as many as needed.
    tasks_per_node
        Most tasks on one node; None = as many as fit.
    memory_bytes_per_cpu, memory_bytes_per_node
        At most one of them.
    gpus_per_task, gpus_per_node
        Number by type; :data:`ANY_GPU` takes any.
    features
        What a node must have, all of it.
    is_exclusive
        The job gets its nodes alone.
    """

    partitions: tuple[str, ...] = ()
    num_tasks: int = 1
    cpus_per_task: int = 1
    min_nodes: int = 1
    max_nodes: int | None = None
    tasks_per_node: int | None = None
    memory_bytes_per_cpu: float = 0.0
    memory_bytes_per_node: float = 0.0
    gpus_per_task: dict[str, int] = field(default_factory=dict)
    gpus_per_node: dict[str, int] = field(default_factory=dict)
    features: frozenset[str] = frozenset()
    is_exclusive: bool = False

    def __post_init__(self) -> None:
        for what in ("num_tasks", "cpus_per_task", "min_nodes"):
            _check(getattr(self, what), 1, what)
        for what in ("max_nodes", "tasks_per_node"):
            if getattr(self, what) is not None:
                _check(getattr(self, what), 1, what)
        if self.max_nodes is not None and self.max_nodes < self.min_nodes:
            raise InvalidInput(f"max_nodes {self.max_nodes} is below min_nodes {self.min_nodes}", field="request")
        if self.num_tasks < self.min_nodes:
            raise InvalidInput(
                f"{self.num_tasks} tasks cannot be spread over at least {self.min_nodes} nodes", field="request"
            )
        for what in ("memory_bytes_per_cpu", "memory_bytes_per_node"):
            if not 0 <= getattr(self, what) < float("inf"):
                raise InvalidInput(f"{what} {getattr(self, what)} must be finite and not negative", field="request")
        if self.memory_bytes_per_cpu and self.memory_bytes_per_node:
            raise InvalidInput("memory is given per CPU and per node: give one of them", field="request")
        for what in ("gpus_per_task", "gpus_per_node"):
            for kind, count in getattr(self, what).items():
                _check(count, 0, f"{what} of type {kind!r}")

    def __hash__(self) -> int:
        gpus = (frozenset(self.gpus_per_task.items()), frozenset(self.gpus_per_node.items()))
        counts = (self.num_tasks, self.cpus_per_task, self.min_nodes, self.max_nodes, self.tasks_per_node)
        memory = (self.memory_bytes_per_cpu, self.memory_bytes_per_node)
        return hash((self.partitions, counts, memory, gpus, self.features, self.is_exclusive))

    @property
    def num_cpus(self) -> int:
        return self.num_tasks * self.cpus_per_task


#: What one job asks for: a request, or the components of a heterogeneous job, which start together.
JobRequest = ResourceRequest | tuple[ResourceRequest, ...]


def components_of(request: JobRequest) -> tuple[ResourceRequest, ...]:
    """Return the components of a job; most have one."""
    return request if isinstance(request, tuple) else (request,)


def _check(value: int, least: int, what: str) -> None:
    if not least <= value <= MAX_COUNT:
        raise InvalidInput(f"{what} {value} must lie between {least} and {MAX_COUNT:,}", field="request")

"""A site: nodes with processors, memory and GPUs, the partitions over them, and when nodes are not available."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from stretto.core.magnitudes import CAPACITY_BYTES, SECONDS, USD_PER_HOUR
from stretto.core.pool import MAX_NODES
from stretto.core.site_policy import SitePolicy
from stretto.errors import InvalidInput, UnknownName

MIB = 2**20
#: Processors, GPUs and tasks per node or job; a slip of the keyboard should not overflow a sum.
MAX_COUNT = 2**31 - 1
#: Unix time of the year 10000, which no calendar of ours has.
END_OF_DATES = 253_402_300_800.0


@dataclass(frozen=True)
class SiteNode:
    """One node.

    Attributes
    ----------
    gpus
        Number by type; the type of GPUs that have none is ``gpu``.
    weight
        Nodes of lower weight are taken first.
    power_w, idle_power_w
        What a node draws while all its processors are busy, and while none is; None = not known.
    price_usd_per_hour
        Of a node that is up; 0 = not known, or owned.
    """

    name: str
    cpus: int
    memory_bytes: float = float("inf")
    gpus: dict[str, int] = field(default_factory=dict)
    features: frozenset[str] = frozenset()
    weight: int = 1
    power_w: float | None = None
    idle_power_w: float | None = None
    price_usd_per_hour: float = 0.0

    def __post_init__(self) -> None:
        place = f"node {self.name}"
        _check_count(self.cpus, 1, "cpus", place)
        for kind, count in self.gpus.items():
            _check_count(count, 0, f"gpus of type {kind!r}", place)
        if self.memory_bytes != float("inf"):
            CAPACITY_BYTES.check(self.memory_bytes, "memory", field=place)
        for what in ("power_w", "idle_power_w"):
            value = getattr(self, what)
            if value is not None and not 0 <= value <= 1e9:
                raise InvalidInput(f"{what} {value} must lie between 0 and 1e9", field=place)
        USD_PER_HOUR.check(self.price_usd_per_hour, "price_usd_per_hour", field=place)


@dataclass(frozen=True)
class Partition:
    """Nodes that jobs can ask for by one name, and the limits there.

    Attributes
    ----------
    priority_tier, priority_job_factor
        Jobs of a higher tier are considered first; the factor is the partition's part of a multifactor priority.
    max_time_s, default_time_s, max_nodes
        The longest limit, the limit of jobs that state none, and the most nodes of a job.
    is_exclusive
        Jobs get whole nodes, whatever they ask for.
    """

    name: str
    nodes: tuple[str, ...]
    priority_tier: int = 1
    priority_job_factor: int = 1
    max_time_s: float = float("inf")
    default_time_s: float | None = None
    max_nodes: int | None = None
    is_default: bool = False
    is_exclusive: bool = False

    def __post_init__(self) -> None:
        place = f"partition {self.name}"
        if not self.nodes:
            raise InvalidInput("has no nodes", field=place)
        if len(set(self.nodes)) != len(self.nodes):
            twice = next(name for name in self.nodes if self.nodes.count(name) > 1)
            raise InvalidInput(f"names node {twice!r} twice", field=place)
        if not self.max_time_s > 0:
            raise InvalidInput(f"max_time_s {self.max_time_s} must be positive", field=place)
        if self.default_time_s is not None and not 0 < self.default_time_s <= self.max_time_s:
            raise InvalidInput(
                f"default_time_s {self.default_time_s} must be positive and at most max_time_s {self.max_time_s}",
                field=place,
            )
        if self.max_nodes is not None and self.max_nodes < 1:
            raise InvalidInput(f"max_nodes {self.max_nodes} must be at least 1", field=place)


@dataclass(frozen=True)
class Reservation:
    """A time in which nodes are not available: maintenance, an outage, or a reservation for others.

    Attributes
    ----------
    start_s, end_s
        Seconds from the first submission of the trace that is replayed, or Unix time.
    is_dated
        Whether they are Unix time; :meth:`Site.since` counts them from a moment instead.
    """

    name: str
    start_s: float
    end_s: float
    nodes: tuple[str, ...]
    is_dated: bool = False

    def __post_init__(self) -> None:
        place = f"reservation {self.name}"
        SECONDS.check(self.start_s, "start", field=place)
        if not self.end_s > self.start_s:
            raise InvalidInput(f"ends at {self.end_s} s, not after its start at {self.start_s} s", field=place)
        if self.is_dated and not self.end_s < END_OF_DATES:
            raise InvalidInput(f"ends at Unix time {self.end_s:.0f}, after the year 9999", field=place)
        if not self.nodes:
            raise InvalidInput("has no nodes", field=place)


@dataclass(frozen=True)
class Site:
    """Nodes, partitions and reservations, checked against each other.

    Attributes
    ----------
    policy
        How the site orders its queue, where its configuration says so.
    notes
        What the reader of a file noticed and did not use.
    """

    name: str
    nodes: tuple[SiteNode, ...]
    partitions: tuple[Partition, ...]
    reservations: tuple[Reservation, ...] = ()
    policy: SitePolicy = field(default_factory=SitePolicy)
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if not self.nodes:
            raise InvalidInput(f"site {self.name!r} has no nodes", field="nodes")
        if len(self.nodes) > MAX_NODES:
            raise InvalidInput(f"{len(self.nodes):,} nodes; a site has at most {MAX_NODES:,}", field="nodes")
        known = _by_name("node", [node.name for node in self.nodes])
        if not self.partitions:
            raise InvalidInput(f"site {self.name!r} has no partitions", field="partitions")
        _by_name("partition", [part.name for part in self.partitions])
        if sum(part.is_default for part in self.partitions) > 1:
            names = [part.name for part in self.partitions if part.is_default]
            raise InvalidInput(f"{' and '.join(names)} are both the default partition", field="partitions")
        groups: tuple[Partition | Reservation, ...] = (*self.partitions, *self.reservations)
        for part in groups:
            for name in part.nodes:
                if name not in known:
                    raise UnknownName(f"node of {type(part).__name__.lower()} {part.name}", name, known)
        self._check_overlaps()

    def _check_overlaps(self) -> None:
        last: dict[tuple[str, bool], Reservation] = {}
        for item in sorted(self.reservations, key=lambda item: item.start_s):
            for name in item.nodes:
                before = last.get((name, item.is_dated))
                if before is not None and before.end_s > item.start_s:
                    raise InvalidInput(
                        f"overlaps with reservation {before.name!r} on node {name!r}: it starts at {item.start_s:g} s, "
                        f"the other one ends at {before.end_s:g} s",
                        field=f"reservation {item.name}",
                    )
                last[name, item.is_dated] = item

    def since(self, origin_unix_s: float | None) -> Site:
        """Return the site with dated reservations counted from a moment; those that had ended by then are left out.

        Parameters
        ----------
        origin_unix_s
            The moment; None = not known, which only does where no reservation has a date.
        """
        dated = [item for item in self.reservations if item.is_dated]
        if not dated:
            return self
        if origin_unix_s is None:
            raise InvalidInput(
                f"reservation {dated[0].name!r} has a date, and the trace does not say when it began: "
                "give the reservation in seconds from the first submission",
                field="reservations",
            )
        moved = [
            replace(
                item, start_s=max(0.0, item.start_s - origin_unix_s), end_s=item.end_s - origin_unix_s, is_dated=False
            )
            if item.is_dated
            else item
            for item in self.reservations
            if not item.is_dated or item.end_s > origin_unix_s
        ]
        past = len(self.reservations) - len(moved)
        notes = (f"reservations that ended before the first submission are left out: {past}",) if past else ()
        return replace(self, reservations=tuple(moved), notes=(*self.notes, *notes))

    def later(self, seconds: float) -> Site:
        """Return the site as it is so many seconds later: reservations count from then, and past ones are gone."""
        moved = [
            replace(item, start_s=max(0.0, item.start_s - seconds), end_s=item.end_s - seconds)
            for item in self.reservations
            if item.end_s > seconds
        ]
        return replace(self, reservations=tuple(moved))

    @property
    def default_partition(self) -> Partition:
        """The partition of jobs that name none: the default one, or the first."""
        return next((part for part in self.partitions if part.is_default), self.partitions[0])

    @property
    def gpu_types(self) -> tuple[str, ...]:
        """All types of GPUs, in the order of their first appearance."""
        return tuple(dict.fromkeys(kind for node in self.nodes for kind, count in node.gpus.items() if count))

    @property
    def num_cpus(self) -> int:
        return sum(node.cpus for node in self.nodes)

    def partition(self, name: str) -> Partition:
        """Return a partition by name."""
        for part in self.partitions:
            if part.name == name:
                return part
        raise UnknownName("partition", name, [part.name for part in self.partitions])


def _check_count(value: int, least: int, what: str, place: str) -> None:
    if not least <= value <= MAX_COUNT:
        raise InvalidInput(f"{what} {value} must lie between {least} and {MAX_COUNT:,}", field=place)


def _by_name(what: str, names: list[str]) -> set[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInput(f"{name!r} is defined twice", field=what)
        seen.add(name)
    return seen

"""A site put together from parts that stand in a file; each fault is told with the line and the field of its part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from stretto.core.site import Partition, Reservation, Site, SiteNode
from stretto.core.site_policy import SitePolicy
from stretto.errors import InvalidInput, StrettoError, UnknownName
from stretto.files.clusters.host_list import MAX_HOSTS, expand_hosts
from stretto.files.document import Document

#: All nodes of the site.
ALL = "ALL"
_MOST_NAMES = 4
Part = TypeVar("Part", Partition, Reservation)


class FilePlace(NamedTuple):
    """Where a part stands, for messages."""

    line: int | None = None
    field: str | None = None

    def __str__(self) -> str:
        return f"line {self.line}" if self.line is not None else str(self.field)


@dataclass(frozen=True)
class _Open(Generic[Part]):
    """A part whose nodes are not looked up yet."""

    name: str
    hosts: str
    make: Callable[[tuple[str, ...]], Part]
    place: FilePlace


@dataclass
class SiteBuilder:
    """Collects nodes, partitions and reservations in any order, and checks them against each other at the end."""

    document: Document
    notes: list[str] = field(default_factory=list)
    _nodes: dict[str, tuple[SiteNode, FilePlace]] = field(default_factory=dict)
    _sets: dict[str, Callable[[], Sequence[str]]] = field(default_factory=dict)
    _partitions: list[_Open[Partition]] = field(default_factory=list)
    _reservations: list[_Open[Reservation]] = field(default_factory=list)

    @contextmanager
    def at(self, place: FilePlace) -> Iterator[None]:
        """Turn whatever goes wrong inside into an error at a place of the document."""
        try:
            yield
        except InvalidInput as error:
            if error.source is not None:
                raise
            what = error.field if place.field is None else place.field
            self.document.fail(error.message, line=place.line, field=what)
        except (StrettoError, ValueError) as error:
            self.document.fail(str(error), line=place.line, field=place.field)

    def add_nodes(self, hosts: str, make: Callable[[str], SiteNode], place: FilePlace) -> None:
        """Add equal nodes by their host list; a node that is there already must be the same one."""
        with self.at(place):
            for name in expand_hosts(hosts):
                node = make(name)
                known = self._nodes.get(name)
                if known is not None and known[0] != node:
                    raise InvalidInput(
                        f"node {name!r} is defined twice and differently ({_difference(known[0], node)}), here and at "
                        f"{known[1]}",
                        field="node",
                    )
                if len(self._nodes) >= MAX_HOSTS:
                    raise InvalidInput(f"more than {MAX_HOSTS:,} nodes", field="node")
                self._nodes.setdefault(name, (node, place))

    def add_set(self, name: str, hosts: str, feature: str) -> None:
        """Give nodes one name, by a host list or by a feature that they have."""

        def members() -> Sequence[str]:
            if hosts:
                return self._hosts(hosts)
            return [node.name for node, _ in self._nodes.values() if feature in node.features]

        self._sets[name] = members

    def add_partition(
        self, name: str, hosts: str, make: Callable[[tuple[str, ...]], Partition], place: FilePlace
    ) -> None:
        """Add a partition, made once all nodes are known."""
        self._partitions.append(_Open(name, hosts, make, place))

    def add_reservation(
        self, name: str, hosts: str, make: Callable[[tuple[str, ...]], Reservation], place: FilePlace
    ) -> None:
        """Add a reservation, made once all nodes are known."""
        self._reservations.append(_Open(name, hosts, make, place))

    def build(self, name: str, policy: SitePolicy) -> Site:
        """Return the site; without partitions, all nodes are one."""
        if not self._nodes:
            self.document.fail("the file names no nodes")
        if not self._partitions:
            self.notes.append("the file has no partitions: all nodes are one, called all")
            self.add_partition("all", ALL, lambda nodes: Partition("all", nodes, is_default=True), FilePlace())
        partitions = self._made(self._partitions, "partition")
        self._check_defaults(partitions)
        reservations = self._made(self._reservations, "reservation")
        self._check_overlaps(reservations)
        nodes = tuple(node for node, _ in self._nodes.values())
        with self.at(FilePlace()):
            return Site(name, nodes, partitions, reservations, policy, tuple(self.notes))

    def _made(self, parts: Sequence[_Open[Part]], what: str) -> tuple[Part, ...]:
        made: list[Part] = []
        seen: dict[str, FilePlace] = {}
        for part in parts:
            with self.at(part.place):
                if part.name in seen:
                    raise InvalidInput(f"{part.name!r} is defined twice, here and at {seen[part.name]}", field=what)
                seen[part.name] = part.place
                made.append(part.make(tuple(self._members(part, what))))
        return tuple(made)

    def _members(self, part: _Open[Part], what: str) -> Sequence[str]:
        names = list(dict.fromkeys(self._hosts(part.hosts)))
        for name in names:
            if name not in self._nodes:
                raise UnknownName(f"node of {what} {part.name}", name, self._nodes)
        return names

    def _hosts(self, text: str) -> list[str]:
        names: list[str] = []
        for name in self._nodes if text.strip().upper() == ALL else expand_hosts(text):
            names += self._sets[name]() if name in self._sets else [name]
        return names

    def _check_defaults(self, partitions: Sequence[Partition]) -> None:
        chosen = [at for at, part in enumerate(partitions) if part.is_default]
        if len(chosen) > 1:
            first, second = (self._partitions[at] for at in chosen[:2])
            with self.at(second.place):
                raise InvalidInput(
                    f"{second.name!r} and {first.name!r} ({first.place}) are both the default partition",
                    field="partition",
                )

    def _check_overlaps(self, reservations: Sequence[Reservation]) -> None:
        """Tell overlaps with lines; the site itself would refuse them, too."""
        order = sorted(range(len(reservations)), key=lambda at: reservations[at].start_s)
        last: dict[tuple[str, bool], int] = {}
        for at in order:
            item = reservations[at]
            for name in item.nodes:
                before = last.get((name, item.is_dated))
                if before is not None and reservations[before].end_s > item.start_s:
                    other = self._reservations[before]
                    with self.at(self._reservations[at].place):
                        raise InvalidInput(
                            f"reservation {item.name!r} overlaps with {other.name!r} ({other.place}) on node {name!r}: "
                            "delete one of them, or join them",
                            field="reservation",
                        )
                last[name, item.is_dated] = at


def _difference(old: SiteNode, new: SiteNode) -> str:
    key = next(key for key in vars(old) if getattr(old, key) != getattr(new, key))
    return f"{key} {_words(getattr(new, key))} and {_words(getattr(old, key))}"


def _words(value: object) -> str:
    return str(sorted(value) if isinstance(value, frozenset) else value)


def some(names: Sequence[str]) -> str:
    """Return a few names for a note, and how many more there are."""
    shown = ", ".join(names[:_MOST_NAMES])
    return shown + (f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else "")

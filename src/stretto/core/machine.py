"""A machine as a graph of parts: what computes, what is shared on the way to memory, and how they hang together.

Traffic between a processor and a memory node takes the shortest path through the graph, and uses the capacity of every
part on it. That is how a GPU behind a PCIe switch comes to slow down its neighbour on the same switch, and both of them
the cores that share the memory channels.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from stretto.core.magnitudes import BYTES_PER_S
from stretto.errors import InvalidInput

#: What runs tasks.
PROCESSORS = ("cpu", "gpu", "fpga", "nic")
#: What is shared: capacity in bytes per second, but in issue slots (1.0 is all of them) for cores.
SHARED = ("core", "memory", "pcie-switch", "root-complex", "socket-link")
KINDS = (*PROCESSORS, *SHARED)
#: Parts of a machine: paths are searched from each processor to each memory.
MAX_PARTS = 10_000


@dataclass(frozen=True)
class Part:
    """A part of a machine.

    Attributes
    ----------
    capacity
        Bytes per second that pass through it, or issue slots of a core. Of a NIC, its injection bandwidth; the
        other processors are limited by their links only, so theirs may be infinite.
    model
        The make, for kernels whose durations differ between makes of one kind.
    """

    name: str
    kind: str
    capacity: float = float("inf")
    model: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidInput(f"kind {self.kind!r} is unknown; known: {', '.join(KINDS)}", field=self.name)
        if not self.capacity > 0:
            raise InvalidInput(f"capacity {self.capacity} must be positive", field=self.name)
        BYTES_PER_S.check(self.capacity, "capacity", field=self.name)


@dataclass(frozen=True, eq=False)
class Machine:
    """Parts and the links between them, checked at construction."""

    name: str
    parts: tuple[Part, ...]
    links: tuple[tuple[str, str], ...]
    meta: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [part.name for part in self.parts]
        if len(names) > MAX_PARTS:
            raise InvalidInput(f"{len(names):,} parts; a machine has at most {MAX_PARTS:,}", field=self.name)
        twice = {name for name, number in Counter(names).items() if number > 1}
        if twice:
            raise InvalidInput(f"{sorted(twice)[0]!r} names two parts", field=self.name)
        for link in self.links:
            for end in link:
                if end not in self.index_of:
                    raise InvalidInput(f"a link names {end!r}, which is no part", field=self.name)
        if not self.of_kind("memory"):
            raise InvalidInput("the machine has no memory", field=self.name)
        for place in self.processors:
            if not any(self.route(place, memory) is not None for memory in self.of_kind("memory")):
                raise InvalidInput(f"{names[place]!r} reaches no memory", field=self.name)

    @cached_property
    def index_of(self) -> dict[str, int]:
        return {part.name: place for place, part in enumerate(self.parts)}

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """Parts next to each part, by ascending index."""
        near: list[set[int]] = [set() for _ in self.parts]
        for a, b in self.links:
            near[self.index_of[a]].add(self.index_of[b])
            near[self.index_of[b]].add(self.index_of[a])
        return tuple(tuple(sorted(one)) for one in near)

    @property
    def processors(self) -> tuple[int, ...]:
        """Parts that run tasks."""
        return self.of_kind(*PROCESSORS)

    def of_kind(self, *kinds: str) -> tuple[int, ...]:
        return tuple(place for place, part in enumerate(self.parts) if part.kind in kinds)

    def route(self, start: int, end: int) -> tuple[int, ...] | None:
        """Return the parts from one to the other, both included; a shortest way, ties by lower index.

        Traffic never passes through a processor on its way elsewhere.
        """
        came: dict[int, int] = {start: start}
        queue = deque([start])
        while queue:
            place = queue.popleft()
            if place == end:
                way = [end]
                while way[-1] != start:
                    way.append(came[way[-1]])
                return tuple(reversed(way))
            if place != start and self.parts[place].kind in PROCESSORS:
                continue
            for near in self.neighbours[place]:
                if near not in came:
                    came[near] = place
                    queue.append(near)
        return None

    def home(self, processor: int) -> int:
        """Return the memory node nearest to a processor."""
        ways = {memory: self.route(processor, memory) for memory in self.of_kind("memory")}
        return min((len(way), memory) for memory, way in ways.items() if way is not None)[1]


@dataclass(frozen=True, eq=False)
class Rack:
    """Machines under one scheduler; what joins them is not a bottleneck here, as in the paper (its section 4)."""

    name: str
    machines: tuple[Machine, ...]

    def __post_init__(self) -> None:
        if not self.machines:
            raise InvalidInput("the rack has no machines", field=self.name)
        names = [machine.name for machine in self.machines]
        if len(set(names)) != len(names):
            raise InvalidInput("two machines have one name", field=self.name)

    @property
    def num_processors(self) -> int:
        return sum(len(machine.processors) for machine in self.machines)


def rack_of(machines: Iterable[Machine], name: str = "rack") -> Rack:
    """Return a rack; machines that share a name are numbered."""
    listed = list(machines)
    names = [machine.name for machine in listed]
    seen: dict[str, int] = {}
    renamed = []
    for machine in listed:
        if names.count(machine.name) > 1:
            number = seen.setdefault(machine.name, 0)
            seen[machine.name] += 1
            machine = Machine(f"{machine.name}{number}", machine.parts, machine.links, machine.meta)
        renamed.append(machine)
    return Rack(name, tuple(renamed))

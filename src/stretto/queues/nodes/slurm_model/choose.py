"""The nodes that Slurm's ``cons_tres`` chooses: lowest weight, then the tightest group of neighbours.

Nodes with consecutive numbers and one weight form a group. The group of the lowest weight that holds the whole job
most tightly is taken; one node of it, where one is enough. Nodes are filled one after the other, with one processor
at least for each that the job must have.
"""

from __future__ import annotations

from dataclasses import dataclass

from stretto.queues.nodes.kernels.arrays import CPUS, UNLIMITED
from stretto.queues.nodes.reference.nodes import Room, TaskPlace
from stretto.queues.nodes.slurm_model.inputs import SlurmInputs
from stretto.queues.nodes.slurm_model.node_space import NodeMask


@dataclass
class Group:
    """Neighbours of one weight, with the processors that a job could use there."""

    nodes: list[int]
    weight: int
    cpus: int


@dataclass
class Need:
    """What a job still needs while its nodes are chosen."""

    cpus: int
    nodes: int
    fewest: int
    most: int

    def take(self, cpus: int) -> None:
        self.cpus -= cpus
        self.nodes -= 1
        self.fewest -= 1
        self.most -= 1

    @property
    def is_met(self) -> bool:
        return self.cpus <= 0 and self.nodes <= 0


class NodeChooser:
    """Chooses nodes for shapes of jobs."""

    def __init__(self, inputs: SlurmInputs) -> None:
        self.shapes = inputs.shapes
        self.capacity: Room = inputs.capacity
        self.weight, self.allowed = inputs.weight, inputs.allowed
        self.unit: Room = self.shapes.unit.tolist()
        self.base: Room = self.shapes.base.tolist()

    def cpus(self, shape: int, room: Room, node: int) -> int:
        """Return how many processors of a node a job could use if all its tasks may run there."""
        row, unit = room[node], self.unit[shape]
        if self.shapes.exclusive[shape] and row != self.capacity[node]:
            return 0
        left = [have - need for have, need in zip(row, self.base[shape], strict=True)]
        if min(left) < 0:
            return 0
        return int(min(UNLIMITED, *(have // need for have, need in zip(left, unit, strict=True) if need))) * unit[CPUS]

    def choose(self, shape: int, room: Room, nodes: NodeMask, wanted_nodes: int) -> list[TaskPlace] | None:
        """Return the nodes of a job out of a set; None where it does not fit."""
        mask = nodes & self.allowed[shape]
        size = {i: self.cpus(shape, room, i) for i in range(len(self.capacity)) if mask >> i & 1}
        # A job of one node sees only the nodes that hold all of it, which makes smaller groups.
        # So does one that needs the same number of tasks on each of its nodes.
        most_tasks = self.per_node(shape) * int(self.shapes.max_nodes[shape])
        is_even = most_tasks == self.shapes.tasks[shape] or self.shapes.max_nodes[shape] == 1
        enough = self.per_node(shape) * self.unit[shape][CPUS] if is_even else 1
        size = {node: cpus for node, cpus in size.items() if cpus >= enough}
        # Where the tightest groups fail, nodes with few processors are left out, fewest first.
        for least in [0, *sorted(set(size.values()))]:
            able = {node: cpus for node, cpus in size.items() if cpus > least}
            if len(able) < self.shapes.min_nodes[shape]:
                return None
            found = self.evaluate(shape, able, wanted_nodes)
            if found is not None:
                return self.deal(shape, dict(sorted(found.items())), size)
        return None

    def evaluate(self, shape: int, size: dict[int, int], wanted_nodes: int) -> dict[int, int] | None:
        """Accumulate groups until the job has enough; return the processors that are meant to be used by node."""
        each = self.unit[shape][CPUS]
        cpus = int(self.shapes.tasks[shape]) * each
        fewest = max(int(self.shapes.min_nodes[shape]), -(-int(self.shapes.tasks[shape]) // self.per_node(shape)))
        extra = max(0, wanted_nodes - fewest)
        need = Need(cpus, fewest + extra, fewest, int(self.shapes.max_nodes[shape]))
        groups = self.groups(size)
        found: dict[int, int] = {}
        while groups and need.most > 0:
            best = self.best_group(groups, need, extra)
            most = {node: min(size[node], self.per_node(shape) * each) for node in best.nodes}
            found |= self.take(best, (size, most), need, is_whole=bool(self.shapes.exclusive[shape]))
            if need.is_met:
                return found
            groups.remove(best)
        return found if need.cpus <= 0 and need.nodes <= extra else None

    def per_node(self, shape: int) -> int:
        return int(self.shapes.per_node[shape])

    def groups(self, size: dict[int, int]) -> list[Group]:
        found: list[Group] = []
        for node in sorted(size):
            last = found[-1] if found else None
            if last is not None and last.nodes[-1] == node - 1 and last.weight == self.weight[node]:
                last.nodes.append(node)
                last.cpus += size[node]
            else:
                found.append(Group([node], self.weight[node], size[node]))
        return found

    @staticmethod
    def best_group(groups: list[Group], need: Need, extra: int) -> Group:
        """Return the lightest group; among equals the tightest that is enough, or the largest if none is."""

        def is_enough(group: Group) -> bool:
            return group.cpus >= need.cpus and len(group.nodes) >= need.nodes - extra

        best = groups[0]
        for group in groups[1:]:
            if group.weight != best.weight:
                best = group if group.weight < best.weight else best
                continue
            enough, enough_before = is_enough(group), is_enough(best)
            is_better = group.cpus < best.cpus or not enough_before if enough else group.cpus > best.cpus
            # A set that is not enough replaces a smaller one even if that one is enough: Slurm compares sizes alone.
            best = group if is_better else best
        return best

    @staticmethod
    def take(
        group: Group, room: tuple[dict[int, int], dict[int, int]], need: Need, *, is_whole: bool
    ) -> dict[int, int]:
        """Take nodes of a group: the tightest one that is enough, or one after the other.

        ``room`` is the processors that are free on nodes, and how many of them the job may take.
        """
        size, most = room
        nodes = group.nodes
        if need.nodes <= 1:
            alone = [node for node in nodes if most[node] >= need.cpus]
            if alone:
                nodes = [min(alone, key=lambda node: (size[node], node))]
        found: dict[int, int] = {}
        for node in nodes:
            if need.most == 0 or need.is_met:
                break
            if need.most == 1 and most[node] < need.cpus:
                continue
            # One processor at least stays for each of the nodes that the job must still get.
            kept = max(0, need.fewest - 1)
            found[node] = most[node] if is_whole else min(most[node], max(need.cpus - kept, 0))
            need.take(found[node])
        return found

    def deal(self, shape: int, cpus: dict[int, int], size: dict[int, int]) -> list[TaskPlace]:
        """Turn processors into tasks: one for each node, then what its processors hold, then where there is room."""
        each, left = self.unit[shape][CPUS], int(self.shapes.tasks[shape])
        tasks = dict.fromkeys(cpus, 0)
        most = {node: min(size[node] // each, self.per_node(shape)) for node in cpus}
        meant = {node: cpus[node] // each for node in cpus}
        for bound in (dict.fromkeys(cpus, 1), meant, most):
            for node in cpus:
                more = min(left, max(0, min(bound[node], most[node]) - tasks[node]))
                tasks[node] += more
                left -= more
        return [TaskPlace(shape, node, count) for node, count in tasks.items() if count]

    def change(self, room: Room, places: list[TaskPlace], sign: int) -> None:
        """Free (1) or take (-1) what tasks use."""
        for place in places:
            row = room[place.node]
            for r, (unit, base) in enumerate(zip(self.unit[place.shape], self.base[place.shape], strict=True)):
                whole = self.capacity[place.node][r]
                row[r] += sign * (whole if self.shapes.exclusive[place.shape] else base + place.tasks * unit)

"""A plan as Slurm jobs: the node of each device, dependencies, the order of submission, and priorities."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stretto.core.cluster import Cluster, Device
from stretto.core.nodes.packing import CORES, GPUS, MEMORY
from stretto.core.plan import Discipline, Plan
from stretto.core.problem import Problem
from stretto.engines.driver.tables import ranks
from stretto.engines.slurm.client.jobs import SlurmNode
from stretto.engines.work import Work
from stretto.errors import Infeasible, InvalidInput

#: What sbatch calls a megabyte.
_MEGABYTE = 2**20


@dataclass(frozen=True)
class Slot:
    """What a task on a device asks Slurm for.

    Attributes
    ----------
    memory_mb
        Megabytes; 0 asks for none. On a node that packs, before its tasks are known: whether Slurm knows its memory.
    packs
        Whether tasks share the node, each with what it needs.
    """

    node: str
    num_cpus: int
    num_gpus: int
    is_whole_node: bool
    memory_mb: int = 0
    packs: bool = False

    def options(self) -> dict[str, str | int | bool]:
        """Return it as options of ``sbatch``."""
        found: dict[str, str | int | bool] = {"nodelist": self.node, "nodes": 1, "ntasks": 1}
        if self.is_whole_node:
            found["exclusive"] = True
        else:
            found["cpus-per-task"] = self.num_cpus
        if self.num_gpus:
            found["gres"] = f"gpu:{self.num_gpus}"
        if self.memory_mb:
            found["mem"] = f"{self.memory_mb}M"
        return found

    def narrowed(self, needs: Mapping[str, float]) -> Slot:
        """Return what one task asks of a node that packs, by its needs."""
        return replace(
            self,
            num_cpus=max(1, math.ceil(needs.get(CORES, 1.0))),
            num_gpus=math.ceil(needs.get(GPUS, 0.0)),
            memory_mb=math.ceil(needs.get(MEMORY, 0.0) / _MEGABYTE) if self.memory_mb else 0,
        )


def slots_of(cluster: Cluster, nodes: Sequence[SlurmNode]) -> list[Slot]:
    """Return the slot of each device.

    A cluster that names its machines (or its devices) as Slurm names its nodes means those. Otherwise devices get
    nodes of their own while there are enough, GPUs those that have some, and else share them evenly.
    """
    usable = {node.name: node for node in nodes if node.is_usable}
    if not usable:
        raise Infeasible("no node of this Slurm accepts jobs (see sinfo)")
    place = _named(cluster.devices, usable) or _spread(cluster.devices, list(usable.values()))
    num_on = Counter(place)
    pairs = list(zip(cluster.devices, place, strict=True))
    return [
        _node_slot(device, usable[name], num_on[name]) if device.packs else _slot(device, usable[name], num_on[name])
        for device, name in pairs
    ]


def _node_slot(device: Device, node: SlurmNode, num_sharing: int) -> Slot:
    """Return the slot of a node that packs, which must have a node of Slurm to itself that is large enough."""
    if num_sharing > 1:
        raise Infeasible(f"{num_sharing} nodes of the cluster would share {node.name!r} of Slurm: describe it as one")
    # A Slurm that was not told how much memory its nodes have says one megabyte, and refuses requests for more.
    has_memory, wants_memory = node.memory_bytes > 2 * _MEGABYTE, math.isfinite(device.memory_bytes)
    facts = [("cores", device.cores, float(node.num_cpus)), ("GPUs", device.gpus, float(node.num_gpus))]
    facts += [("bytes of memory", device.memory_bytes, node.memory_bytes)] if has_memory else []
    for what, stated, found in facts:
        if math.isfinite(stated) and stated > found:
            raise Infeasible(
                f"node {device.name!r} has {stated:,.0f} {what}, but {node.name!r} of Slurm only {found:,.0f}"
            )
    knows_memory = wants_memory and has_memory
    return Slot(node.name, math.floor(device.cores), 0, False, 1 if knows_memory else 0, True)


def _named(devices: Sequence[Device], nodes: dict[str, SlurmNode]) -> list[str] | None:
    for names in ([device.machine for device in devices], [device.name for device in devices]):
        if all(name in nodes for name in names):
            return names
    return None


def _spread(devices: Sequence[Device], nodes: list[SlurmNode]) -> list[str]:
    """Give the next node to each device, those that need GPUs first; begin again where nodes are fewer."""
    place: dict[int, str] = {}
    used: Counter[str] = Counter()
    for index in sorted(range(len(devices)), key=lambda index: (not _needs_gpu(devices[index]), index)):
        needs = _needs_gpu(devices[index])
        able = [node for node in nodes if not needs or node.num_gpus]
        if not able:
            raise Infeasible(f"device {devices[index].name!r} is a GPU, but no usable node of this Slurm has GPUs")
        best = min(able, key=lambda node: (used[node.name], node.num_gpus > 0 and not needs, nodes.index(node)))
        used[best.name] += 1
        place[index] = best.name
    return [place[index] for index in range(len(devices))]


def _slot(device: Device, node: SlurmNode, num_sharing: int) -> Slot:
    if num_sharing > node.num_cpus:
        raise Infeasible(f"{num_sharing} devices would share node {node.name!r}, which has only {node.num_cpus} CPUs")
    num_gpus = 0
    if _needs_gpu(device):
        num_gpus = max(1, node.num_gpus) if num_sharing == 1 else 1
    return Slot(node.name, node.num_cpus // num_sharing, num_gpus, num_sharing == 1)


def _needs_gpu(device: Device) -> bool:
    return device.kind.lower().startswith("gpu")


@dataclass(frozen=True, eq=False)
class JobPlan:
    """The jobs of a plan.

    Attributes
    ----------
    needs
        Per task, those that must have finished before it.
    after
        Per task, those that must have ended, successfully or not: under ``sequence`` its predecessor on the device.
    dependents
        Per task, those that name it in one of the above.
    order
        All tasks, each behind those that it waits for.
    priority
        Per task, 1 for the last; None where dependencies alone keep the order.
    """

    needs: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, ...], ...]
    dependents: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    priority: tuple[int, ...] | None
    seconds: tuple[float, ...]
    slots: tuple[Slot, ...]  # by task

    @staticmethod
    def of(work: Work, plan: Plan, problem: Problem, device_slots: list[Slot], discipline: Discipline) -> JobPlan:
        """Work out the jobs of a plan."""
        n = problem.num_tasks
        assignment = plan.assignment.tolist()
        slots = tuple(_task_slot(device_slots[device], problem, task) for task, device in enumerate(assignment))
        rank = ranks(problem, plan, discipline)
        after: list[tuple[int, ...]] = [()] * n
        if discipline == "sequence":
            last: dict[int, int] = {}
            # Slurm starts what fits a node by priority; chains would let its tasks follow each other.
            one_by_one = [task for task in range(n) if not slots[task].packs]
            for task in sorted(one_by_one, key=rank.__getitem__):
                before = last.get(assignment[task])
                after[task] = () if before is None or before in work.parents[task] else (before,)
                last[assignment[task]] = task
        elif not all(slot.is_whole_node or slot.packs for slot in slots):
            raise InvalidInput(
                "under work-conserving, Slurm cannot separate devices that share a node: "
                "use --discipline sequence, or one device per node",
                field="discipline",
            )
        dependents: list[list[int]] = [[] for _ in range(n)]
        for task in range(n):
            for other in (*work.parents[task], *after[task]):
                dependents[other].append(task)
        order = _order([len(work.parents[task]) + len(after[task]) for task in range(n)], dependents, rank)
        seconds = problem.device_duration[range(n), assignment].tolist()
        has_priorities = discipline == "work-conserving" or any(slot.packs for slot in slots)
        priority = tuple(n - position for position in rank) if has_priorities else None
        return JobPlan(
            work.parents, tuple(after), tuple(map(tuple, dependents)), tuple(order), priority, tuple(seconds), slots
        )


def _task_slot(slot: Slot, problem: Problem, task: int) -> Slot:
    """Return what a task asks for on its device: all of it, or of a node what it needs."""
    if not slot.packs:
        return slot
    assert problem.packing is not None, "only nodes have such slots"
    return slot.narrowed(problem.packing.needs_of(task))


def minutes(seconds: float) -> int:
    """Return the time limit of a job as ``sbatch`` counts it, rounded up."""
    return max(1, math.ceil(seconds / 60.0))


def _order(waits: list[int], dependents: list[list[int]], rank: list[int]) -> list[int]:
    """Return a topological order that follows the ranks where it is free to."""
    waits = list(waits)
    free = [(rank[task], task) for task, count in enumerate(waits) if count == 0]
    heapq.heapify(free)
    order = []
    while free:
        _, task = heapq.heappop(free)
        order.append(task)
        for other in dependents[task]:
            waits[other] -= 1
            if waits[other] == 0:
                heapq.heappush(free, (rank[other], other))
    assert len(order) == len(waits)  # ranks() has refused circles
    return order

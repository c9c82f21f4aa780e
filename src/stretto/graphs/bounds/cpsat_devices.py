"""The CP-SAT model of tasks on devices with transfers: one task at a time, or what fits a node; data must travel."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from ortools.sat.python import cp_model

from stretto.graphs.bounds.cpsat_instance import Instance


@dataclass(eq=False)
class DeviceModel:
    """Variables of the model: a start and an end per task, and a choice per task and device."""

    instance: Instance
    model: cp_model.CpModel = field(default_factory=cp_model.CpModel)
    start: list[cp_model.IntVar] = field(default_factory=list)
    end: list[cp_model.IntVar] = field(default_factory=list)
    choice: list[dict[int, cp_model.IntVar]] = field(default_factory=list)
    makespan: cp_model.IntVar = field(init=False)


def build(instance: Instance) -> DeviceModel:
    """Return the model, with the first schedule as hint and upper bound."""
    built = DeviceModel(instance)
    model = built.model
    built.makespan = model.new_int_var(instance.lower, instance.upper, "makespan")
    for task in range(instance.num_tasks):
        _add_task(built, task)
    _add_devices(built)
    for source, target, costs in instance.edges:
        _add_edge(built, source, target, costs)
    _break_symmetry(built)
    _add_hint(built)
    model.minimize(built.makespan)
    return built


def _add_task(built: DeviceModel, task: int) -> None:
    model, instance = built.model, built.instance
    fits = instance.devices_of(task)
    first = min(instance.head[task][d] for d in fits)
    last = max(instance.upper - instance.tail[task][d] - instance.length[task][d] for d in fits)
    ends = [instance.length[task][d] for d in fits]
    start = model.new_int_var(first, max(first, last), f"s{task}")
    end = model.new_int_var(first + min(ends), max(first, last) + max(ends), f"e{task}")
    choice = {d: model.new_bool_var(f"x{task}_{d}") for d in fits}
    model.add_exactly_one(choice.values())
    # Heads and tails depend on the device; loads of devices need no row, the model's lower bound has them.
    model.add(end == start + sum(instance.length[task][d] * x for d, x in choice.items()))
    model.add(start >= sum(instance.head[task][d] * x for d, x in choice.items()))
    model.add(end + sum(instance.tail[task][d] * x for d, x in choice.items()) <= built.makespan)
    built.start.append(start)
    built.end.append(end)
    built.choice.append(choice)


def _add_devices(built: DeviceModel) -> None:
    model, instance = built.model, built.instance
    lanes: list[dict[int, cp_model.IntervalVar]] = [{} for _ in range(instance.num_devices)]
    for task, choice in enumerate(built.choice):
        for d, x in choice.items():
            length = instance.length[task][d]
            lanes[d][task] = model.new_optional_fixed_size_interval_var(built.start[task], length, x, "")
    for d, lane in enumerate(lanes):
        if not instance.is_node[d]:
            model.add_no_overlap(lane.values())
    for pool in instance.pools:
        users = [task for task in lanes[pool.device] if pool.need[task] > 0]
        lane = lanes[pool.device]
        model.add_cumulative([lane[t] for t in users], [pool.need[t] for t in users], pool.capacity)
    for row in instance.resident:
        on_device = {task: choice[row.device] for task, choice in enumerate(built.choice) if row.device in choice}
        kept = sum(row.resident[task] * x for task, x in on_device.items())
        for task, x in on_device.items():
            model.add(kept + row.need[task] * x <= row.limit)


def _add_edge(built: DeviceModel, source: int, target: int, costs: list[list[int]] | None) -> None:
    """Data waits for its producer everywhere, and for its transfer where the devices differ."""
    model = built.model
    model.add(built.start[target] >= built.end[source])
    if costs is None:
        return
    for a, x in built.choice[source].items():
        transfer = sum(costs[a][b] * y for b, y in built.choice[target].items() if costs[a][b])
        model.add(built.start[target] >= built.end[source] + transfer).only_enforce_if(x)


def _break_symmetry(built: DeviceModel) -> None:
    """Among interchangeable devices, use the next one only after the one before it, by task index."""
    for group in built.instance.interchangeable:
        for before, device in pairwise(group):
            earlier: list[cp_model.IntVar] = []
            for choice in built.choice:
                if device in choice:
                    built.model.add(sum(earlier) >= choice[device])
                if before in choice:
                    earlier.append(choice[before])


def _add_hint(built: DeviceModel) -> None:
    device, start = built.instance.hint
    for task, choice in enumerate(built.choice):
        built.model.add_hint(built.start[task], start[task])
        for d, x in choice.items():
            built.model.add_hint(x, d == device[task])

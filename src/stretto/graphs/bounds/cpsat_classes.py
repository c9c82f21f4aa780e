"""The CP-SAT model when data moves for free: devices of a class are only counted."""

from __future__ import annotations

from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from stretto.graphs.bounds.cpsat_instance import Instance


@dataclass(eq=False)
class ClassModel:
    """Variables of the model: a start per task, and a choice per task and class."""

    instance: Instance
    groups: list[list[int]]
    model: cp_model.CpModel = field(default_factory=cp_model.CpModel)
    start: list[cp_model.IntVar] = field(default_factory=list)
    end: list[cp_model.IntVar] = field(default_factory=list)
    choice: list[dict[int, cp_model.IntVar]] = field(default_factory=list)
    makespan: cp_model.IntVar = field(init=False)


def build(instance: Instance, device_class: list[int]) -> ClassModel:
    """Return the model; ``device_class`` is the class of each device."""
    groups: dict[int, list[int]] = {}
    for device, which in enumerate(device_class):
        groups.setdefault(which, []).append(device)
    built = ClassModel(instance, list(groups.values()))
    built.makespan = built.model.new_int_var(instance.lower, instance.upper, "makespan")
    for task in range(instance.num_tasks):
        _add_task(built, task)
    for source, target, _ in instance.edges:
        built.model.add(built.start[target] >= built.end[source])
    _add_capacities(built)
    _add_hint(built)
    built.model.minimize(built.makespan)
    return built


def _add_task(built: ClassModel, task: int) -> None:
    model, instance = built.model, built.instance
    fits = instance.devices_of(task)
    choice = {c: model.new_bool_var(f"x{task}_{c}") for c, group in enumerate(built.groups) if group[0] in fits}
    one = {c: group[0] for c, group in enumerate(built.groups)}
    first = min(instance.head[task][d] for d in fits)
    last = max(instance.upper - instance.tail[task][d] - instance.length[task][d] for d in fits)
    start = model.new_int_var(first, max(first, last), f"s{task}")
    length = sum(instance.length[task][one[c]] * x for c, x in choice.items())
    model.add_exactly_one(choice.values())
    model.add(start >= sum(instance.head[task][one[c]] * x for c, x in choice.items()))
    model.add(start + length + sum(instance.tail[task][one[c]] * x for c, x in choice.items()) <= built.makespan)
    built.start.append(start)
    built.end.append(start + length)
    built.choice.append(choice)


def _add_capacities(built: ClassModel) -> None:
    """At no time do more tasks run in a class than it has devices."""
    model, instance = built.model, built.instance
    for c, group in enumerate(built.groups):
        inside = [task for task, choice in enumerate(built.choice) if c in choice]
        lengths = [instance.length[task][group[0]] for task in inside]
        intervals = [
            model.new_optional_fixed_size_interval_var(built.start[task], length, built.choice[task][c], "")
            for task, length in zip(inside, lengths, strict=True)
        ]
        if len(group) == 1:
            model.add_no_overlap(intervals)
        else:
            model.add_cumulative(intervals, [1] * len(intervals), len(group))
        load = sum(length * built.choice[task][c] for task, length in zip(inside, lengths, strict=True))
        model.add(load <= len(group) * built.makespan)


def _add_hint(built: ClassModel) -> None:
    device, start = built.instance.hint
    for task, choice in enumerate(built.choice):
        built.model.add_hint(built.start[task], start[task])
        for c, x in choice.items():
            built.model.add_hint(x, device[task] in built.groups[c])


def assign(built: ClassModel, chosen: list[int], start: list[int]) -> list[int]:
    """Give each task a device of its class, the one that has been free longest, in order of start."""
    free = dict.fromkeys((device for group in built.groups for device in group), -1)
    device = [0] * len(chosen)
    length = [built.instance.length[task][built.groups[c][0]] for task, c in enumerate(chosen)]
    for task in sorted(range(len(chosen)), key=lambda t: (start[t], start[t] + length[t], t)):
        pick = min(built.groups[chosen[task]], key=lambda d: (free[d], d))
        assert free[pick] <= start[task], "a class never runs more tasks than it has devices"
        device[task] = pick
        free[pick] = start[task] + length[task]
    return device

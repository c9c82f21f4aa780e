"""What a Gantt chart shows, before anyone draws it: rows, bars, colors, facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.metrics import shares_held
from stretto.core.nodes.packing import CORES
from stretto.core.nodes.words import size_of
from stretto.core.notes import verdict
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule, Transfers
from stretto.core.units import format_gap, format_seconds, is_zero_gap
from stretto.errors import InvalidInput
from stretto.reports.gantt.delays import Delays, delays_of
from stretto.reports.plots.colors import PALETTE, REST, by_frequency


@dataclass(frozen=True)
class GanttRow:
    """A device as a line of the chart, or one of its lanes where tasks overlap."""

    name: str
    utilization: float
    starts_group: bool


class Coloring(NamedTuple):
    """What colors stand for; the label is empty where it says nothing."""

    name: str
    color: Ints  # [n] index into legend
    legend: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class GanttChart:
    """Bars in rows. Rows are devices, by machine and kind; colors are categories, or jobs."""

    title: str
    facts: tuple[str, ...]
    rows: tuple[GanttRow, ...]
    row_of: Ints  # [m] first row of each device
    row: Ints  # [n]
    start_s: Floats  # [n]
    finish_s: Floats  # [n]
    color: Ints  # [n] index into legend
    legend: tuple[tuple[str, str], ...]  # label and color; the label is empty where it says nothing
    names: tuple[str, ...]
    makespan_s: float
    lower_bound_s: float | None
    transfers: Transfers | None
    transfer_names: tuple[str, ...]
    colored_by: str = ""
    by_job: Coloring | None = None  # another way to color, where there are categories and several jobs
    delays: Delays | None = None


def make_chart(
    problem: Problem, schedule: Schedule, *, title: str | None = None, lower_bound_s: float | None = None
) -> GanttChart:
    """Lay out a schedule of a problem."""
    n = problem.num_tasks
    _check(problem, schedule, lower_bound_s)
    lane = lanes(schedule)
    rows, row_of = _rows(problem, schedule, lane)
    colored, *others = colorings(problem)
    names = tuple(_bar_name(problem, task) for task in range(n))
    moved = schedule.transfers
    return GanttChart(
        title=title or f"{problem.graph.name} on {problem.cluster.name}",
        facts=_facts(problem, schedule, lower_bound_s),
        rows=rows,
        row_of=row_of,
        row=row_of[schedule.device] + lane,
        start_s=schedule.start_s,
        finish_s=schedule.finish_s,
        color=colored.color,
        legend=colored.legend,
        names=names,
        makespan_s=schedule.makespan_s,
        lower_bound_s=lower_bound_s,
        transfers=moved,
        transfer_names=tuple(names[task] for task in problem.graph.object_task[moved.object_index]) if moved else (),
        colored_by=colored.name,
        by_job=others[0] if others else None,
        delays=delays_of(problem, schedule.device, schedule.start_s, schedule.finish_s)
        if problem.graph.resources is None
        else None,
    )


def _bar_name(problem: Problem, task: int) -> str:
    """Return the name of a task, and on clusters with nodes the cores that it holds."""
    name = problem.graph.task_name(task)
    if problem.packing is None:
        return name
    cores = problem.packing.needs_of(task).get(CORES, 0.0)
    return f"{name} ({cores:g} core{'s' * (cores != 1)})"


def _check(problem: Problem, schedule: Schedule, lower_bound_s: float | None) -> None:
    n = problem.num_tasks
    if len(schedule.device) != n:
        raise InvalidInput(f"the schedule has {len(schedule.device)} tasks, the problem {n}", field="schedule")
    if not (np.isfinite(schedule.start_s).all() and np.isfinite(schedule.finish_s).all()):
        raise InvalidInput("the schedule has tasks that never start or end", field="schedule")
    if lower_bound_s is not None and not (lower_bound_s >= 0 and np.isfinite(lower_bound_s)):
        raise InvalidInput(f"{lower_bound_s} must be finite and not negative", field="lower_bound_s")


def lanes(schedule: Schedule) -> Ints:
    """Return the lane of each task on its device: 0 for all, unless tasks overlap.

    Devices run one task at a time, but nodes run what fits, and the tasks of a project (RCPSP) share one device and
    only its resources limit them. Each task takes the lowest lane that is free.
    """
    lane = np.zeros(len(schedule.device), dtype=np.int32)
    slack = 1e-9 * schedule.makespan_s
    order = np.lexsort((schedule.finish_s, schedule.start_s, schedule.device))
    device, start, finish = schedule.device[order], schedule.start_s[order], schedule.finish_s[order]
    if not np.any((device[1:] == device[:-1]) & (start[1:] < finish[:-1] - slack)):
        return lane
    free: dict[int, list[float]] = {}
    for task in order.tolist():
        ends = free.setdefault(int(schedule.device[task]), [])
        begin = schedule.start_s[task] + slack
        place = next((i for i, end in enumerate(ends) if end <= begin), len(ends))
        ends[place : place + 1] = [float(schedule.finish_s[task])]
        lane[task] = place
    return lane


def _rows(problem: Problem, schedule: Schedule, lane: Ints) -> tuple[tuple[GanttRow, ...], Ints]:
    """Return the rows, by machine, kind, device and lane, and the first row of each device."""
    devices = problem.cluster.devices
    machines = {name: i for i, name in enumerate(dict.fromkeys(device.machine for device in devices))}
    kinds = {name: i for i, name in enumerate(problem.cluster.kinds)}
    keys = [(machines[device.machine], kinds[device.kind]) for device in devices]
    order = sorted(range(len(devices)), key=lambda index: (keys[index], index))
    num_lanes = np.ones(len(devices), dtype=np.int32)
    np.maximum.at(num_lanes, schedule.device, lane + 1)
    row_of = np.zeros(len(devices), dtype=np.int32)
    row_of[order] = np.cumsum(num_lanes[order]) - num_lanes[order]
    share = (schedule.finish_s - schedule.start_s) / (schedule.makespan_s or 1.0)
    busy = np.bincount(row_of[schedule.device] + lane, weights=share, minlength=int(num_lanes.sum()))
    rows = []
    for place, index in enumerate(order):
        device = devices[index]
        told = len(machines) == 1 or device.name.startswith(device.machine)
        name = device.name if told else f"{device.machine}/{device.name}"
        first = place > 0 and keys[order[place - 1]] != keys[index]
        for k in range(num_lanes[index]):
            rows.append(GanttRow(name if k == 0 else "", float(busy[row_of[index] + k]), first and k == 0))
    return tuple(rows), row_of


def colorings(problem: Problem) -> list[Coloring]:
    """Return the ways to color the tasks: by category, and by job where there are several; at least one."""
    graph, num_jobs = problem.graph, len(problem.job_ptr) - 1
    found = []
    if graph.category is not None and any(graph.categories):
        found.append(_coloring("category", graph.category, [name or "(none)" for name in graph.categories]))
    if num_jobs > 1:
        codes = np.repeat(np.arange(num_jobs, dtype=np.int32), np.diff(problem.job_ptr))
        found.append(_coloring("job", codes, [f"job {job}" for job in range(num_jobs)]))
    return found or [Coloring("", np.zeros(graph.num_tasks, dtype=np.int32), (("", PALETTE[0]),))]


def _coloring(what: str, codes: Ints, names: list[str]) -> Coloring:
    color, kept = by_frequency(codes, len(names))
    legend = [(names[code], PALETTE[place]) for place, code in enumerate(kept)]
    if int(color.max()) == len(kept):
        legend.append(("other", REST))
    return Coloring(what, color, tuple(legend))


def _facts(problem: Problem, schedule: Schedule, lower_bound_s: float | None) -> tuple[str, ...]:
    n, m, makespan = problem.num_tasks, problem.num_devices, schedule.makespan_s
    took = (schedule.finish_s - schedule.start_s) * shares_held(problem, schedule)
    busy = float(took.sum()) / (m * makespan or 1.0)
    facts = [
        f"makespan {format_seconds(makespan)}",
        f"{n:,} task{'s' * (n != 1)} on {size_of(problem.cluster)}",
        f"mean utilization {100 * busy:.0f} %" if problem.graph.resources is None else f"{busy:.1f} tasks at a time",
        schedule.discipline,
        f"contention {schedule.contention}",
    ]
    if lower_bound_s is not None and lower_bound_s > 0:
        above = makespan / lower_bound_s - 1.0
        words = format_gap(above)
        if is_zero_gap(above) and verdict(problem, above) != words:
            words = "0 %"  # it hangs on something that was not checked, or assumed
        gap = words if words == format_gap(0.0) else f"gap {words}"
        facts.insert(1, f"lower bound {format_seconds(lower_bound_s)} ({gap})")
    return tuple(facts)

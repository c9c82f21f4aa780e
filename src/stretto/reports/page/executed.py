"""What was executed, as a page shows it: the chart, use of devices, placement, and what tasks waited for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.graphs.bounds.bound import bound
from stretto.reports.gantt.chart import colorings
from stretto.reports.gantt.delays import delays_of
from stretto.reports.gantt.html import delays_json
from stretto.reports.page.cost import device_costs
from stretto.reports.page.curves import device_use
from stretto.reports.page.events import DONE, RunEvents, bars_chart
from stretto.reports.page.layers import placement_drawing
from stretto.reports.page.view_types import GanttJson, JsonObject, RunView
from stretto.reports.racks.map import device_map

#: Tasks of an executed graph whose bound is computed for its page.
_MAX_BOUNDED = 20_000


def add_executed(
    view: RunView, events: RunEvents, devices: Mapping[str, tuple[str, str]], problem: Problem | None
) -> None:
    """Add chart, utilization and map of what has been executed so far."""
    latest = max(bar.start_s if bar.finish_s is None else bar.finish_s for bar in events.bars)
    chart = bars_chart(events.bars, list(devices), latest, **_known_of(problem, view))
    if problem is not None:
        _add_delays(chart, problem, events)
    names = [row[0] for row in chart["rows"]]
    start = np.array(chart["start"], dtype=np.float64)
    finish = start + np.array(chart["length"], dtype=np.float64)
    row = np.array(chart["row"], dtype=np.int32)
    kinds, machines = zip(*(devices.get(name) or ("device", "") for name in names), strict=True)
    view["gantt"] = chart
    view["use"] = device_use(row, start, finish, kinds)
    view["map"] = device_map(row, start, finish, names=names, kinds=kinds, machines=machines)


def _known_of(problem: Problem | None, view: RunView) -> JsonObject:
    """Return what the graph says of executed tasks: colors by category or job, and a bound where it gave durations."""
    if problem is None:
        return {}
    colored = colorings(problem)[0]
    color_of = {problem.graph.task_name(task): int(color) for task, color in enumerate(colored.color)}
    known: JsonObject = {"legend": colored.legend, "color_of": color_of}
    if problem.num_tasks <= _MAX_BOUNDED and view["settings"].get("is_timed"):  # real commands take their own time
        known["bound_s"] = bound(problem).value_s * float(view["settings"].get("scale", 1.0))
    return known


def _add_delays(chart: GanttJson, problem: Problem, events: RunEvents) -> None:
    """Add what tasks waited for, once every task of the graph has been executed."""
    found = _executed(problem, events)
    if found is None or problem.graph.resources is not None:
        return
    last = {bar.task: place for place, bar in enumerate(events.bars) if bar.state == DONE}
    place = {index: at for at, index in enumerate(chart["task"])}
    bars = [place[last[problem.graph.task_name(task)]] for task in range(problem.num_tasks)]
    delays = delays_of(problem, *found, with_transfers=False)
    told = delays_json(delays, np.arange(problem.num_tasks), chart["makespan"])
    waits = told["waits"]
    waits["bar"], waits["source"] = ([bars[task] for task in waits[key]] for key in ("bar", "source"))
    chart["waits"], chart["critical"] = waits, [bars[task] for task in told["critical"]]


def _executed(problem: Problem, events: RunEvents) -> tuple[Ints, Floats, Floats] | None:
    """Return device, start and finish of each task, None where some have not been executed."""
    place = {device.name: index for index, device in enumerate(problem.cluster.devices)}
    last = {bar.task: bar for bar in events.bars if bar.state == DONE and bar.device in place}
    bars = [last.get(problem.graph.task_name(task)) for task in range(problem.num_tasks)]
    known = [bar for bar in bars if bar is not None]
    if len(known) < problem.num_tasks:
        return None
    device = np.array([place[bar.device] for bar in known], dtype=np.int32)
    start = np.array([bar.start_s for bar in known])
    return device, start, np.array([bar.finish_s for bar in known], dtype=np.float64)


def add_placement(view: RunView, problem: Problem, events: RunEvents) -> None:
    """Add placement and costs of what was executed, once that is every task of the graph."""
    found = _executed(problem, events)
    if found is None:
        return
    device, start, finish = found
    view["graph"] = placement_drawing(problem, device)
    view["cost"] = device_costs(problem, Schedule(device, start, finish, "work-conserving"))

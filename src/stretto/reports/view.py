"""Everything that a page shows of one run, as JSON values: what the dashboard fetches and a report embeds."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np

from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.errors import InvalidInput, UnknownName
from stretto.files.document import Document
from stretto.reports.cost import device_costs, pool_costs
from stretto.reports.curves import device_use, queue_curves
from stretto.reports.events import DONE, Story, bars_chart, read_events
from stretto.reports.explain import explain_task, find_task
from stretto.reports.gantt.chart import make_chart
from stretto.reports.gantt.html import chart_json
from stretto.reports.layers import placement_drawing
from stretto.reports.problem import has_problem, plan_of, problem_of
from stretto.reports.racks.belief import belief_map
from stretto.reports.racks.map import device_map, pool_map
from stretto.reports.racks.topology import TOPOLOGY, processor_kinds
from stretto.reports.record import COMPARISON
from stretto.reports.replay import replay_of
from stretto.reports.strict_json import unpacked
from stretto.reports.tables import comparison_tables
from stretto.reports.training import training_json
from stretto.runlog import RunInfo, RunLog

#: What engines attach to their runs.
ENGINE_PLAN = "plan.json"
#: Rows of a training and points of a search that a page gets; more could not be seen.
_MAX_POINTS = 3000
_MAX_FAILURES = 50


def run_header(info: RunInfo) -> dict[str, Any]:
    """Return what lists show of a run."""
    return {
        "id": info.id,
        "kind": info.kind,
        "name": info.name,
        "status": info.status,
        "started_s": info.started_s,
        "ended_s": info.ended_s,
        "num_events": info.num_events,
        "settings": {**info.settings, "command": command_of(info)},
        "summary": dict(info.summary),
    }


def command_of(info: RunInfo) -> str | None:
    """Return the command that a run was, None where its input came with a request."""
    settings = info.settings
    if info.kind != "run" or "command" in settings or not isinstance(settings.get("workflow"), str):
        return settings.get("command")
    words = ["stretto", "run", settings["workflow"], "--cluster", str(settings.get("cluster"))]
    for name in ("engine", "policy", "scale", "seed"):
        if name in settings:
            words += [f"--{name}", str(settings[name])]
    return shlex.join(words)


def run_view(log: RunLog, run_id: str) -> dict[str, Any]:
    """Return the view of a run, as far as it has come."""
    info = log.run(run_id)
    story = read_events(log.events(info.id), info.started_s)
    view = run_header(info) | empty_view() | _of_story(info, story)
    problem = problem_of(log, info.id) if has_problem(log, info.id) else None
    if problem is not None:
        view["can_ask"] = True
        planned = plan_of(log, info.id, problem)
        if planned is not None:
            view |= plan_view(problem, planned[1], _number(info.summary.get("lower_bound_s")))
        view["is_planned"] = planned is not None and not story.bars
        view["can_explain"] = view["is_planned"] and problem.graph.resources is None
    view |= _executed(story, _devices(log, info.id, problem))
    believed = log.artifact(info.id, TOPOLOGY) if story.beliefs else None
    if believed is not None:
        view["belief"] = belief_map(unpacked(believed, TOPOLOGY), story.beliefs)
        view["can_ask"] |= info.kind == "rack" and info.status != "running"
    if problem is not None and story.bars:
        view |= _placed(problem, story)
    compared = log.artifact(info.id, COMPARISON)
    if compared is not None:
        tables = comparison_tables(unpacked(compared, COMPARISON), COMPARISON)
        view["tables"] = [table.to_json() for table in tables]
    result = replay_of(log, info.id)
    if result is not None:
        curves = queue_curves(result)
        view |= {"queue": curves, "cost": pool_costs(result), "can_ask": True}
        view["map"] = pool_map(result, curves) if len(result.pools) > 1 else None
    return view


def plan_view(problem: Problem, schedule: Schedule, lower_bound_s: float | None) -> dict[str, Any]:
    """Return the parts of a view that come from a plan: its chart, use of devices, placement and costs."""
    view: dict[str, Any] = {
        "gantt": chart_json(make_chart(problem, schedule, lower_bound_s=lower_bound_s)),
        "graph": placement_drawing(problem, schedule.device),
    }
    if problem.graph.resources is None:  # a project has one shop, which does many things at a time
        view["cost"] = device_costs(problem, schedule)
        devices = problem.cluster.devices
        kinds = [device.kind for device in devices]
        times = (schedule.device, schedule.start_s, schedule.finish_s)
        view["use"] = device_use(*times, kinds)
        names, machines = [device.name for device in devices], [device.machine for device in devices]
        view["map"] = device_map(*times, names=names, kinds=kinds, machines=machines)
    return view


def empty_view() -> dict[str, Any]:
    """Return a view in which nothing is known yet."""
    names = ("gantt", "map", "belief", "use", "queue", "training", "graph", "cost", "progress", "samples")
    return {
        **dict.fromkeys(names),
        "choices": [],
        "failures": [],
        "num_failures": 0,
        "failed": [],
        "tables": [],
        "can_ask": False,
        "is_planned": False,
        "can_explain": False,
    }


def _of_story(info: RunInfo, story: Story) -> dict[str, Any]:
    baselines = info.summary.get("opponents", info.settings.get("opponents", {}))
    rows = story.rows[:: max(1, len(story.rows) // _MAX_POINTS)]
    if story.rows and rows[-1] is not story.rows[-1]:
        rows.append(story.rows[-1])
    progress = story.progress[:: max(1, len(story.progress) // _MAX_POINTS)]
    samples = story.samples[:: max(1, len(story.samples) // _MAX_POINTS)]
    return {
        "training": training_json(rows, baselines if isinstance(baselines, Mapping) else {}),
        "progress": [list(pair) for pair in progress] or None,
        "choices": story.choices,
        "failures": story.failures[:_MAX_FAILURES],
        "num_failures": len(story.failures),
        "failed": story.failed_tasks()[:_MAX_FAILURES],
        "samples": [list(sample) for sample in samples] or None,
    }


def _devices(log: RunLog, run_id: str, problem: Problem | None) -> dict[str, tuple[str, str]]:
    """Return the devices that are known before anything has run on them, by name, with their kinds and machines."""
    if problem is not None:
        return {device.name: (device.kind, device.machine) for device in problem.cluster.devices}
    racks = log.artifact(run_id, TOPOLOGY)
    if racks is not None:
        return processor_kinds(unpacked(racks, TOPOLOGY))
    data = log.artifact(run_id, ENGINE_PLAN)
    names = Document(ENGINE_PLAN, data).json.get("devices", []) if data is not None else []
    return {str(name): (str(name).rstrip("0123456789"), "") for name in names}


def _executed(story: Story, devices: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """Return chart and use of what has really been executed so far."""
    if not story.bars:
        return {}
    latest = max(bar.start_s if bar.finish_s is None else bar.finish_s for bar in story.bars)
    chart = bars_chart(story.bars, list(devices), latest)
    names = [row[0] for row in chart["rows"]]
    start, length = np.array(chart["start"]), np.array(chart["length"])
    row = np.array(chart["row"], dtype=np.int32)
    kinds, machines = zip(*(devices.get(name) or ("device", "") for name in names), strict=True)
    use = device_use(row, start, start + length, kinds)
    return {
        "gantt": chart,
        "use": use,
        "map": device_map(row, start, start + length, names=names, kinds=kinds, machines=machines),
    }


def _placed(problem: Problem, story: Story) -> dict[str, Any]:
    """Return placement and costs of what was executed, once every task of the graph has been."""
    place = {device.name: index for index, device in enumerate(problem.cluster.devices)}
    last = {bar.task: bar for bar in story.bars if bar.state == DONE and bar.device in place}
    bars = [last.get(problem.graph.task_name(task)) for task in range(problem.num_tasks)]
    known = [bar for bar in bars if bar is not None]
    if len(known) < problem.num_tasks:
        return {}
    device = np.array([place[bar.device] for bar in known], dtype=np.int32)
    start = np.array([bar.start_s for bar in known])
    finish = np.array([bar.finish_s for bar in known], dtype=np.float64)
    schedule = Schedule(device, start, finish, "work-conserving")
    return {"graph": placement_drawing(problem, device), "cost": device_costs(problem, schedule)}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def explained(log: RunLog, run_id: str, what: str) -> dict[str, Any]:
    """Return why a task of a run is where it is, or why a strategy was followed at an epoch."""
    info = log.run(run_id)
    if has_problem(log, info.id):
        problem = problem_of(log, info.id)
        planned = plan_of(log, info.id, problem)
        if planned is None:
            raise InvalidInput("has no plan yet", field=f"run {info.id}")
        return {"run": info.id, **explain_task(problem, *planned, find_task(problem, what))}
    choices = read_events(log.events(info.id), info.started_s).choices
    if not choices:
        raise InvalidInput("keeps neither a plan nor choices that could be explained", field=f"run {info.id}")
    if not what.isdecimal() or len(what) > 9 or int(what) >= len(choices):
        raise UnknownName("epoch", what[:80], [f"0..{len(choices) - 1}"])
    return {"run": info.id, "epoch": int(what), "num_epochs": len(choices), **choices[int(what)]}

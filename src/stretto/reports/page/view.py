"""Everything that a page shows of one run, as JSON values: what the dashboard fetches and a report embeds."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence

from stretto.core.answers.logged import logged_answer
from stretto.core.answers.seen import live_answer
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.errors import InvalidInput, UnknownName
from stretto.files.document import Document
from stretto.reports.gantt.chart import make_chart
from stretto.reports.gantt.html import chart_json
from stretto.reports.page.cost import device_costs, pool_costs
from stretto.reports.page.curves import device_use, queue_curves
from stretto.reports.page.events import RunEvents, read_events
from stretto.reports.page.executed import add_executed, add_placement
from stretto.reports.page.explain import explain_task, find_task
from stretto.reports.page.layers import placement_drawing
from stretto.reports.page.live import live_progress
from stretto.reports.page.spreads import compared_answer, compared_runs, spreads
from stretto.reports.page.steered import steered_json
from stretto.reports.page.tables import comparison_tables, comparisons, runs_tables
from stretto.reports.page.training import training_json
from stretto.reports.page.view_types import JsonObject, RunHeader, RunView, new_view
from stretto.reports.page.waits import waits_json
from stretto.reports.problem import has_problem, plan_of, problem_of
from stretto.reports.racks.belief import belief_map
from stretto.reports.racks.map import device_map, pool_map
from stretto.reports.racks.topology import TOPOLOGY, processor_kinds
from stretto.reports.record import COMPARISON
from stretto.reports.replay import replay_of
from stretto.reports.strict_json import unpacked
from stretto.runlog import RunInfo, RunLog
from stretto.runlog.record import Json

#: What engines attach to their runs.
ENGINE_PLAN = "plan.json"
#: Rows of a training and points of a search that a page gets; more could not be seen.
_MAX_POINTS = 3000
_MAX_FAILURES = 50
#: Figures that older versions recorded under another name.
_RENAMED = {"utilisation": "utilization"}


def run_header(info: RunInfo) -> RunHeader:
    """Return what lists show of a run."""
    return {
        "id": info.id,
        "answer": logged_answer(info.status, info.summary),
        "kind": info.kind,
        "name": info.name,
        "status": info.status,
        "started_s": info.started_s,
        "ended_s": info.ended_s,
        "num_events": info.num_events,
        "settings": {**info.settings, "command": command_of(info)},
        "summary": {_RENAMED.get(name, name): value for name, value in info.summary.items()},
    }


def command_of(info: RunInfo) -> str | None:
    """Return the command that repeats a run, None where its input came with a request."""
    settings = info.settings
    if info.kind != "run" or "command" in settings or not isinstance(settings.get("workflow"), str):
        return settings.get("command")
    words = ["stretto", "run", settings["workflow"], "--cluster", str(settings.get("cluster"))]
    decider = "dispatch" if settings.get("dispatch") else "policy"  # they exclude each other
    for name in ("engine", decider, "scale", "seed"):
        if name in settings:
            words += [f"--{name}", str(settings[name])]
    return shlex.join(words)


def compare_view(log: RunLog, run_ids: Sequence[str]) -> JsonObject:
    """Return runs side by side: their headers, tables of their figures, and policies on each instance."""
    headers = [run_header(log.run(run_id)) for run_id in run_ids]
    kept = [log.artifact(header["id"], COMPARISON) for header in headers]
    compared = [one for data in kept if data is not None for one in comparisons(unpacked(data, COMPARISON), COMPARISON)]
    tables = [table.to_json() for table in runs_tables(headers)]
    sets = [*compared_runs(headers), *compared]
    return {"runs": headers, "answer": compared_answer(sets), "tables": tables, "spreads": spreads(sets)}


def run_view(log: RunLog, run_id: str) -> RunView:
    """Return the view of a run, as far as it has come."""
    info = log.run(run_id)
    events = read_events(log.events(info.id), info.started_s)
    view = new_view(run_header(info))
    _add_events(view, info, events)
    problem = problem_of(log, info.id) if has_problem(log, info.id) else None
    if problem is not None:
        view["can_ask"] = True
        planned = plan_of(log, info.id, problem)
        if planned is not None:
            add_plan(view, problem, planned[1], _number(info.summary.get("lower_bound_s")))
        view["is_planned"] = planned is not None and not events.bars
        view["can_explain"] = view["is_planned"] and problem.graph.resources is None
    view["has_output"] = problem is not None and bool(events.bars) and info.kind == "run"
    if events.bars:
        add_executed(view, events, _devices(log, info.id, problem), problem)
    topology = log.artifact(info.id, TOPOLOGY) if events.beliefs else None
    if topology is not None:
        view["belief"] = belief_map(unpacked(topology, TOPOLOGY), events.beliefs)
        view["can_ask"] |= info.kind == "rack" and info.status != "running"
    if problem is not None and events.bars:
        add_placement(view, problem, events)
    if info.status == "running" and not view["answer"]:
        progress = live_progress(log, info, time.time())
        view["answer"] = live_answer(progress["text"] if progress else None, view["steered"], view["belief"])
    compared = log.artifact(info.id, COMPARISON)
    if compared is not None:
        document = unpacked(compared, COMPARISON)
        view["tables"] = [table.to_json() for table in comparison_tables(document, COMPARISON)]
        view["spreads"] = spreads(comparisons(document, COMPARISON))
    result = replay_of(log, info.id)
    if result is not None:
        curves = queue_curves(result)
        view["queue"], view["cost"], view["can_ask"] = curves, pool_costs(result), True
        view["waits"] = waits_json(result, is_on_site=bool(info.settings.get("site")))
        view["map"] = pool_map(result, curves) if len(result.pools) > 1 else None
    return view


def add_plan(view: RunView, problem: Problem, schedule: Schedule, lower_bound_s: float | None) -> None:
    """Add the parts that come from a plan: its chart, utilization of devices, placement and costs."""
    view["gantt"] = chart_json(make_chart(problem, schedule, lower_bound_s=lower_bound_s))
    view["graph"] = placement_drawing(problem, schedule.device)
    if problem.graph.resources is None:  # the tasks of a project share one set of resources, several at a time
        view["cost"] = device_costs(problem, schedule)
        devices = problem.cluster.devices
        kinds = [device.kind for device in devices]
        times = (schedule.device, schedule.start_s, schedule.finish_s)
        view["use"] = device_use(*times, kinds)
        names, machines = [device.name for device in devices], [device.machine for device in devices]
        view["map"] = device_map(*times, names=names, kinds=kinds, machines=machines)


def _add_events(view: RunView, info: RunInfo, events: RunEvents) -> None:
    baselines = info.summary.get("opponents", info.settings.get("opponents", {}))
    rows = events.rows[:: max(1, len(events.rows) // _MAX_POINTS)]
    if events.rows and rows[-1] is not events.rows[-1]:
        rows.append(events.rows[-1])
    view["training"] = training_json(rows, baselines if isinstance(baselines, Mapping) else {})
    view["progress"] = events.progress[:: max(1, len(events.progress) // _MAX_POINTS)] or None
    view["samples"] = events.samples[:: max(1, len(events.samples) // _MAX_POINTS)] or None
    view["choices"] = events.choices
    view["steered"] = steered_json(events.steered)
    view["failures"], view["num_failures"] = events.failures[:_MAX_FAILURES], len(events.failures)
    view["failed"] = events.failed_tasks()[:_MAX_FAILURES]


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


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def explained(log: RunLog, run_id: str, what: str) -> JsonObject:
    """Return why a task of a run is placed where it is, or why a strategy was chosen at an epoch."""
    info = log.run(run_id)
    if has_problem(log, info.id):
        problem = problem_of(log, info.id)
        planned = plan_of(log, info.id, problem)
        if planned is None:
            raise InvalidInput("has no plan yet", field=f"run {info.id}")
        return {"run": info.id, **explain_task(problem, *planned, find_task(problem, what))}
    choices = read_events(log.events(info.id), info.started_s).choices
    if not choices:
        raise InvalidInput("has neither a plan nor choices of a strategy to explain", field=f"run {info.id}")
    if not what.isdecimal() or len(what) > 9 or int(what) >= len(choices):
        raise UnknownName("epoch", what[:80], [f"0..{len(choices) - 1}"])
    return {"run": info.id, "epoch": int(what), "num_epochs": len(choices), **choices[int(what)]}

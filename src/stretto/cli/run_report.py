"""What ``stretto run`` prints when a run is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stretto.cli.terminal.console import Output, facts, print_json, remark, stdout
from stretto.core.units import format_percent, format_seconds

if TYPE_CHECKING:
    from pathlib import Path

    from stretto.core.plan import Plan
    from stretto.core.problem import Problem
    from stretto.engines.session import Session

_TIMED = "timed: tasks only passed their planned time, so this says nothing about real machines"


def report(session: Session, problem: Problem, plan: Plan, output: Output) -> None:
    """Print the outcome of a run."""
    if output is Output.QUIET:
        print(repr(session.result.makespan_s))
    elif output is Output.JSON:
        print_json(_document(session, problem, plan))
    else:
        stdout().print(facts(f"{problem.graph.name} on {problem.cluster.name}", _rows(session, problem)))


def draw_run(session: Session, problem: Problem, path: Path) -> None:
    """Draw a run that is complete; what did not run, or ran before, has no times."""
    from stretto.reports.gantt.draw import draw_gantt

    if not bool(np.all(session.result.is_finished)):
        remark(f"{path} was not drawn: not all tasks have times in this run")
        return
    title = f"{problem.graph.name} on {problem.cluster.name}, run by {session.result.engine}"
    draw_gantt(problem, session.result.schedule(), path, title=title + (" (timed)" if session.result.is_timed else ""))


def _document(session: Session, problem: Problem, plan: Plan) -> dict[str, Any]:
    result = session.result
    return session.summary() | {
        "run_id": session.run_id,
        "graph": problem.graph.name,
        "cluster": problem.cluster.name,
        "discipline": result.discipline,
        "tasks": [problem.graph.task_name(task) for task in range(problem.num_tasks)],
        "devices": [device.name for device in problem.cluster.devices],
        "planned_device": plan.assignment,
        "device": result.device,
        "start_s": result.start_s,
        "end_s": result.end_s,
        "attempts": result.attempts,
        "digests": list(result.digests),
        "notes": list(_notes(session)),
        "failures": [
            {
                "task": problem.graph.task_name(failure.task),
                "device": problem.cluster.devices[failure.device].name,
                "attempt": failure.attempt,
                "blame": failure.blame,
                "reason": failure.reason,
            }
            for failure in result.failures
            if failure.blame != "cancelled"
        ],
        "cancelled": [problem.graph.task_name(f.task) for f in result.failures if f.blame == "cancelled"],
    }


def _notes(session: Session) -> tuple[str, ...]:
    """Return the engine's remarks; whichever engine it was, timed work is called so."""
    notes = session.result.notes
    return notes if notes or not session.result.is_timed else (_TIMED,)


def _rows(session: Session, problem: Problem) -> dict[str, str]:
    from stretto.core.provenance import duration_basis

    result = session.result
    now = int(np.sum(result.is_finished))
    before = f", {session.num_done_before:,} before" if session.num_done_before else ""
    rows = {
        "run": session.run_id,
        "engine": result.engine + "".join(f" ({note})" for note in _notes(session)),
        "status": result.status,
        "tasks": f"{now:,} of {problem.num_tasks:,}{before}",
    }
    is_whole = bool(now) and result.status == "done"  # a run that was cut short has no makespan
    if is_whole:
        rows["makespan"] = format_seconds(result.makespan_s)
    if now:
        rows["predicted"] = f"{format_seconds(session.predicted_s)} for the whole, by the simulator"
        if duration_basis(problem.graph).startswith("assumed") and not result.is_timed:
            rows["predicted"] += ", from assumed durations"
    if is_whole:
        busy_s = float(np.nansum(result.end_s - result.start_s))
        rows["utilisation"] = format_percent(busy_s / max(result.makespan_s * problem.num_devices, 1e-12))
    failures = [failure for failure in result.failures if failure.blame != "cancelled"]
    for failure in failures[:5]:
        name = problem.graph.task_name(failure.task)
        where = problem.cluster.devices[failure.device].name
        rows[f"failed: {name}"] = f"attempt {failure.attempt} on {where}, {failure.blame}: {failure.reason}"
    if len(failures) > 5:
        rows["and"] = f"{len(failures) - 5:,} more failed attempts, see the run log"
    cancelled = [problem.graph.task_name(f.task) for f in result.failures if f.blame == "cancelled"]
    if cancelled:
        more = f" and {len(cancelled) - 5:,} more" if len(cancelled) > 5 else ""
        rows["cancelled"] = f"{', '.join(cancelled[:5])}{more}: ended because the run was stopped"
    return rows

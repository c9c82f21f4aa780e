"""``stretto train ALGORITHM GRAPH``: learn to plan one graph, and keep the best plan and the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.cli.logged import kept, news
from stretto.cli.terminal.console import Output, facts, print_json, print_notes, stdout
from stretto.cli.terminal.interrupt import Patience
from stretto.cli.training.budget import TrainBudget
from stretto.cli.training.state import TrainState
from stretto.core.units import format_count, format_gap, format_percent, format_seconds, is_zero_gap

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from stretto.cli.training.request import TrainRequest
    from stretto.core.problem import Problem
    from stretto.graphs.evaluate import PlanResult
    from stretto.graphs.training import TrainingResult, TrainingRun
    from stretto.learning.trainer import TrainingRow
    from stretto.runlog import Run

#: Planners that the result is set against; they take no time.
_OPPONENTS = ("heft", "etf", "peft", "critical-path")


def train_graph(request: TrainRequest) -> bool:
    """Train, judge and report; return whether the user stopped it."""
    from stretto.cli.plan_file import describe, save_plan
    from stretto.cli.sources import load_problem
    from stretto.cli.training.engine import load_measured
    from stretto.graphs.training import TrainingRun, judged, trainer_named
    from stretto.learning.trainer import TrainingSpec

    budget = TrainBudget(request.seconds)
    source, cluster, engine = request.source, request.cluster, request.engine
    problem, executor = (
        (load_problem(source, cluster), None) if engine is None else load_measured(source, cluster, engine)
    )
    spec = TrainingSpec(request.seed, request.rounds, request.seconds, request.start, engine=executor)
    with TrainState(request) as state:
        trainer = trainer_named(request.algorithm, problem, spec)
        run = TrainingRun(trainer, problem, algorithm=request.algorithm, path=state.path)
        if state.is_going_on:
            run.resume()
        settings = {**request.settings(), "cluster": problem.cluster.name, "resume": request.is_resumed}
        wanted = request.is_logged or request.run_id is not None
        with kept(wanted, "train", problem.graph.name, settings, usual=True, resume=request.run_id) as record:
            state.run = record
            result = _train(run, request, problem, record, state, budget)
            outcome = judged(problem, request.algorithm, result, seed=request.seed)
            opponents = _opponents(problem)
            budget.mark("judging")
            if record is not None:
                from stretto.reports.record import record_training

                record_training(record, outcome, result, opponents)
    if request.save is not None:
        save_plan(request.save, describe(outcome, source, cluster, is_measured=executor is not None))
    if request.curves is not None:
        from stretto.reports.training_curves import draw_training

        title = f"{problem.graph.name} on {problem.cluster.name} by {request.algorithm}"
        draw_training(result.rows, request.curves, title=title, baselines=dict([min(opponents.items(), key=_value)]))
    written = [path for path in (request.checkpoint, request.save, request.curves) if path is not None]
    _report(outcome, result, opponents, request.output, written, record, budget)
    return result.is_interrupted


def _train(
    run: TrainingRun,
    request: TrainRequest,
    problem: Problem,
    record: Run | None,
    state: TrainState,
    budget: TrainBudget,
) -> TrainingResult:
    from stretto.cli.terminal.background import in_background
    from stretto.cli.training.bar import TrainingBar

    doing = f"training {request.algorithm} on {format_count(problem.num_tasks, 'task')}"
    bar = TrainingBar(doing, time_limit_s=request.seconds, episodes=request.rounds)
    with Patience() as patience, bar, news(record, "row") as rows:

        def on_row(row: TrainingRow) -> None:
            patience.has_result = True
            bar.show(row)
            if rows is not None:
                rows.add(**row._asdict())
            state.keep()

        budget.mark("reading")
        in_background(run.compile)
        budget.mark("compiling")
        found = run.train(time_limit_s=budget.left_s, on_row=on_row, is_stopped=lambda: patience.is_over)
    state.keep()
    budget.mark("training")
    return found


def _opponents(problem: Problem) -> dict[str, float]:
    from stretto.graphs.evaluate import evaluate

    return {name: evaluate(problem, name).makespan_s for name in _OPPONENTS}


def _value(item: tuple[str, float]) -> float:
    return item[1]


def _report(
    outcome: PlanResult,
    result: TrainingResult,
    opponents: dict[str, float],
    output: Output,
    written: list[Path],
    record: Run | None,
    budget: TrainBudget,
) -> None:
    if output is Output.JSON:
        document = outcome.to_json() | {
            "episodes": result.num_episodes,
            "train_seconds": result.seconds,
            "compile_seconds": result.compile_seconds,
            "interrupted": result.is_interrupted,
            "opponents": opponents,
            "run_id": record.id if record is not None else None,
            "history": [row._asdict() for row in result.rows],
        }
        print_json(document)
    elif output is Output.QUIET:
        print(repr(outcome.makespan_s))
    else:
        console = stdout()
        console.print(_table(outcome, result, opponents, record, budget))
        print_notes(outcome.notes)
        for path in written:
            console.print(f"  wrote {path}", soft_wrap=True)


def _table(
    outcome: PlanResult,
    result: TrainingResult,
    opponents: dict[str, float],
    record: Run | None,
    budget: TrainBudget,
) -> RenderableType:
    problem = outcome.problem
    name, value = min(opponents.items(), key=_value)
    change = outcome.makespan_s / value - 1
    better = f"{format_percent(abs(change))} {'shorter' if change < 0 else 'longer'}"
    rate = f", {result.num_episodes / result.seconds:,.0f}/s" if result.seconds > 0 else ""
    rows = {
        "graph": f"{format_count(problem.num_tasks, 'task')}, {format_count(problem.graph.num_edges, 'edge')}",
        "cluster": f"{problem.cluster.name} ({format_count(problem.num_devices, 'device')})",
        "trained": f"{format_count(result.num_episodes, 'episode')} in {format_seconds(result.seconds)}{rate}",
        "compiled in": format_seconds(result.compile_seconds),
        "makespan": format_seconds(outcome.makespan_s),
        f"best of {len(opponents)} heuristics": f"{format_seconds(value)} ({name}), so this is {better}",
        "lower bound": f"{format_seconds(outcome.lower_bound_s)} ({outcome.bound.method})",
        "gap": f"0 %, {outcome.verdict}" if is_zero_gap(outcome.gap) else format_gap(outcome.gap),
    }
    overrun = budget.overrun()
    if overrun is not None:
        rows["budget"] = overrun
    if record is not None:
        rows["run"] = record.id
    return facts(f"{problem.graph.name} by {outcome.policy}", rows)

"""``stretto demo``: the whole tool in about a minute, on built-in workloads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.cli.options import OutputOption, SeedOption
from stretto.cli.terminal.console import Output, new_table, print_json, remark, stdout
from stretto.cli.time_option import parse_time
from stretto.core.units import format_seconds_alike

if TYPE_CHECKING:
    from rich.table import Table

    from stretto.cli.demo_training import Lesson
    from stretto.graphs.compare import Comparison
    from stretto.graphs.evaluate import PlanResult

CLUSTER = "cpu:6x1.0,gpu:2x1.0@12GB/s"
GRAPHS = (
    "workload:cholesky?num_tiles=10",
    "workload:transformer",
    "workload:montage",
)
POLICIES = ("round-robin", "minmin", "heft", "peft", "annealing")
_PICTURE_OF = 0


def demo(
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where the pictures go.")] = Path("out"),
    time_limit: Annotated[
        float, typer.Option("--time-limit", metavar="TIME", parser=parse_time, help="For each search, per graph.")
    ] = 3.0,
    train_seconds: Annotated[
        float, typer.Option("--train-seconds", metavar="SECONDS", min=0, help="For the training; 0 leaves it out.")
    ] = 12.0,
    seed: SeedOption = 0,
    output: OutputOption = Output.TABLE,
) -> None:
    """See it work: built-in workloads, a few policies, a training, pictures."""
    from stretto.cli.commands.compare import run_comparison
    from stretto.cli.sources import load_cluster, load_graph
    from stretto.cli.terminal.interrupt import Interrupt

    _make_folder(out)
    cluster = load_cluster(CLUSTER)
    graphs = [load_graph(source) for source in GRAPHS]
    if output is Output.TABLE:
        _print_introduction(cluster.num_devices)
    with Interrupt() as interrupt:
        comparison = run_comparison(graphs, cluster, POLICIES, interrupt, seeds=[seed], time_limit_s=time_limit)
    is_interrupted = interrupt.pressed
    lesson = None
    if not is_interrupted:
        try:
            lesson = _learn(train_seconds, seed)
        except KeyboardInterrupt:  # before anything was learned: the comparison is still worth its table
            is_interrupted = True
    best = _best(comparison, graphs[_PICTURE_OF].name)
    pictures = _write(comparison, best, out) if best is not None else []
    _report(comparison, lesson, best, pictures, output)
    if is_interrupted or (lesson is not None and lesson.is_interrupted):
        remark("interrupted: the tables hold what was finished until then")
        raise typer.Exit(130)


def _learn(seconds: float, seed: int) -> Lesson | None:
    """Train for a while, or say what is missing for that."""
    from stretto.cli.demo_training import learn, missing_libraries

    if seconds == 0:
        return None
    missing = missing_libraries()
    if missing:
        remark(f"without {', '.join(missing)} nothing is trained: pip install 'stretto[learn]'")
        return None
    return learn(seconds, seed)


def _report(
    comparison: Comparison, lesson: Lesson | None, best: PlanResult | None, pictures: list[Path], output: Output
) -> None:
    if output is Output.JSON:
        document = comparison.to_json() | {"pictures": [str(path) for path in pictures]}
        print_json(document | {"training": lesson.to_json() if lesson is not None else None})
    elif output is Output.QUIET:
        for path in pictures:
            print(path)
    else:
        from stretto.cli.demo_training import lesson_table
        from stretto.cli.terminal.text_gantt import text_gantt

        console = stdout()
        if best is not None:
            console.print(f"{best.problem.graph.name} by {best.policy}", style="bold")
            console.print(text_gantt(best.problem, best.schedule))
            console.print()
        if lesson is not None:
            console.print(lesson_table(lesson))
            console.print()
        console.print(_table(comparison))
        _print_next_steps(pictures)


def _print_introduction(num_devices: int) -> None:
    console = stdout()
    console.print("Stretto demo", style="bold")
    console.print(
        f"{len(GRAPHS)} task graphs, {num_devices} devices ({CLUSTER}), {len(POLICIES)} policies.\n"
        "The gap says how far a plan is above a proven lower bound, so at most\n"
        "this far above the optimum. The first run compiles its kernels.\n"
    )


def _make_folder(out: Path) -> None:
    from stretto.errors import InvalidInput

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(error.strerror or str(error), source=str(out)) from None


def _table(comparison: Comparison) -> Table:
    """Return gaps, policies by workloads, and how long each policy thought."""
    graphs = list(dict.fromkeys(row.graph for row in comparison.rows))
    table = new_table("Gap to the lower bound")
    table.add_column("policy", no_wrap=True)
    for graph in graphs:
        table.add_column(graph, justify="right", no_wrap=True)
    table.add_column("planned in", justify="right", no_wrap=True)
    lines = comparison.summary()
    for line, time in zip(lines, format_seconds_alike([line.plan_seconds for line in lines]), strict=True):
        results = {row.graph: row.result for row in comparison.rows if row.policy == line.policy and row.result}
        cells = [_gap(results.get(graph), comparison.bound(graph), comparison.best(graph)) for graph in graphs]
        table.add_row(line.policy, *cells, time)
    table.caption = "* the best of its column; planning time over all graphs"
    return table


def _gap(result: PlanResult | None, bound_s: float, best_s: float) -> str:
    if result is None:
        return "-"
    from stretto.core.units import format_gap

    star = "*" if result.makespan_s <= best_s * (1 + 1e-9) else " "
    return f"{format_gap(result.makespan_s / bound_s - 1)}{star}"


def _best(comparison: Comparison, graph: str) -> PlanResult | None:
    results = [result for result in comparison.results if result.problem.graph.name == graph]
    return min(results, key=lambda result: result.makespan_s, default=None)


def _write(comparison: Comparison, best: PlanResult, out: Path) -> list[Path]:
    """Write a plan, its picture, and a report on it and on the comparison."""
    from stretto.cli.plan_file import describe, save_plan
    from stretto.cli.terminal.progress import ProgressLine
    from stretto.files.load import write_atomically
    from stretto.reports.gantt.draw import draw_gantt
    from stretto.reports.sources import Report

    problem, graph = best.problem, best.problem.graph.name
    plan, picture, page = out / "plan.json", out / f"{graph}.png", out / "report.html"
    document = describe(best, GRAPHS[_PICTURE_OF], CLUSTER)
    save_plan(plan, document)
    report = Report()
    with ProgressLine("writing the report"):
        title = f"{graph} by {best.policy}"
        draw_gantt(problem, best.schedule, picture, title=title, lower_bound_s=best.lower_bound_s)
        command = f"stretto plan '{GRAPHS[_PICTURE_OF]}' -c {CLUSTER} --policy {best.policy} --save {plan}"
        report.add_plan(str(plan), problem, best.plan, best.schedule, document, command)
        report.add_comparison(comparison.to_json(), "demo")
        write_atomically(page, report.page("Stretto demo"))
    return [plan, picture, page]


def _print_next_steps(pictures: list[Path]) -> None:
    console = stdout()
    console.print()
    for path in pictures:
        place = path.absolute().as_uri() if path.suffix == ".html" else path
        console.print(f"wrote {place}", soft_wrap=True)
    console.print("\nWhat to try next", style="bold")
    console.print(
        f"{_how_to_call()}"
        "  stretto doctor\n"
        "  stretto list policies\n"
        "  stretto plan 'workload:cholesky?num_tiles=12' -c cpu:8,gpu:2 \\\n"
        "      --policy annealing --time-limit 10s --save plan.json --gantt plan.html\n"
        "  stretto simulate plan.json --contention fair --noise 0.2\n"
        "  stretto serve\n"
        "  stretto compare 'trace:lublin?num_jobs=3000&num_procs=128&load=0.95' --windows 10 --window-size 1000\n"
        "  stretto plan YOUR_WORKFLOW.json -c YOUR_CLUSTER.toml"
        f"{_files_to_look_at()}",
        soft_wrap=True,
    )


def _how_to_call() -> str:
    """Return the line that lets the shell find us, where it does not yet."""
    import shlex
    import shutil
    import sys

    ours = Path(sys.prefix) / "bin"
    if shutil.which("stretto") is not None or not (ours / "activate").is_file():
        return ""
    folder = os.path.relpath(ours)
    activate = shlex.quote(os.path.join(folder, "activate"))
    return f"  source {activate}    # so that this shell finds stretto (or type {shlex.quote(folder)}/stretto)\n"


def _files_to_look_at() -> str:
    """Name the examples of such files, where we run in the folder of the repository."""
    files = (Path("examples/workflow.json"), Path("examples/lab.toml"))
    return f"    # such as {' and '.join(map(str, files))}" if all(path.is_file() for path in files) else ""

"""``stretto demo``: the whole tool in about a minute, on built-in workloads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.cli.console import Output, new_table, print_answer, print_json, remark, stdout
from stretto.cli.options import OutputOption, SeedOption, parse_time
from stretto.core.units import format_count, format_gap, format_seconds, format_seconds_alike

if TYPE_CHECKING:
    from rich.table import Table

    from stretto.api.demo import DemoTraining
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
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Folder for the pictures.")] = Path("out"),
    time_limit: Annotated[
        float,
        typer.Option("--time-limit", metavar="TIME", parser=parse_time, help="Time limit of each search, per graph."),
    ] = 3.0,
    train_seconds: Annotated[
        float, typer.Option("--train-seconds", metavar="SECONDS", min=0, help="Length of the training; 0 skips it.")
    ] = 12.0,
    seed: SeedOption = 0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what Stretto does: built-in workloads, a few policies, a training, pictures."""
    from stretto.api.demo import write_files
    from stretto.api.inputs import load_cluster
    from stretto.cli.commands.compare import GraphPlanning, run_comparison
    from stretto.cli.interrupt import Interrupt
    from stretto.cli.progress import ProgressLine
    from stretto.cli.sources import load_graph

    _make_folder(out)
    cluster = load_cluster(CLUSTER)
    graphs = [load_graph(source) for source in GRAPHS]
    if output is Output.TABLE:
        _print_introduction(cluster.num_devices)
    with Interrupt() as interrupt:
        how = GraphPlanning(time_limit=time_limit)
        comparison = run_comparison(graphs, cluster, POLICIES, interrupt, seeds=[seed], planning=how)
    is_interrupted = interrupt.pressed
    training = None
    if not is_interrupted:
        try:
            training = _learn(train_seconds, seed)
        except KeyboardInterrupt:  # before anything was learned: the comparison is still worth its table
            is_interrupted = True
    best = _best(comparison, graphs[_PICTURE_OF].name)
    pictures = []
    if best is not None:
        with ProgressLine("writing the report"):
            pictures = write_files(comparison, best, GRAPHS[_PICTURE_OF], CLUSTER, out)
    _report(comparison, training, best, pictures, output)
    if is_interrupted or (training is not None and training.is_interrupted):
        remark("interrupted: the tables hold what was finished until then")
        raise typer.Exit(130)


def _learn(seconds: float, seed: int) -> DemoTraining | None:
    """Train for a while, or say what is missing for that."""
    from stretto.api.demo import learn, missing_libraries
    from stretto.cli.training import TrainingBar

    if seconds == 0:
        return None
    missing = missing_libraries()
    if missing:
        remark(f"without {', '.join(missing)} nothing is trained: pip install 'stretto[learn]'")
        return None
    with TrainingBar("training doppler", time_limit_s=seconds, episodes=None) as bar:
        return learn(seconds, seed, bar)


def _report(
    comparison: Comparison, training: DemoTraining | None, best: PlanResult | None, pictures: list[Path], output: Output
) -> None:
    if output is Output.JSON:
        document = comparison.to_json() | {"pictures": [str(path) for path in pictures]}
        print_json(document | {"training": training.to_json() if training is not None else None})
    elif output is Output.QUIET:
        for path in pictures:
            print(path)
    else:
        from stretto.cli.text_gantt import text_gantt

        console = stdout()
        print_answer(comparison.answer)
        if best is not None:
            console.print(f"{best.problem.graph.name} by {best.policy}", style="bold")
            console.print(text_gantt(best.problem, best.schedule))
            console.print()
        if training is not None:
            console.print(_training_table(training))
            console.print()
        console.print(_table(comparison))
        _print_next_steps(pictures)


def _print_introduction(num_devices: int) -> None:
    console = stdout()
    console.print("Stretto demo", style="bold")
    console.print(
        f"{len(GRAPHS)} task graphs, {num_devices} devices ({CLUSTER}), {len(POLICIES)} policies.\n"
        "The gap says how far a plan is above a proven lower bound, so at most\n"
        "this far above optimal. The first run compiles its kernels.\n"
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
    star = "*" if result.makespan_s <= best_s * (1 + 1e-9) else " "
    return f"{format_gap(result.makespan_s / bound_s - 1)}{star}"


def _best(comparison: Comparison, graph: str) -> PlanResult | None:
    results = [result for result in comparison.results if result.problem.graph.name == graph]
    return min(results, key=lambda result: result.makespan_s, default=None)


def _training_table(done: DemoTraining) -> Table:
    """Return the training for people."""
    table = new_table(f"Training and search: {done.graph} ({format_count(done.num_tasks, 'task')}), {done.cluster}")
    table.add_column("policy", no_wrap=True)
    for column in ("makespan", "gap", "thought for"):
        table.add_column(column, justify="right", no_wrap=True)
    names, makespans, gaps, seconds = zip(*done.rows, strict=True)
    cells = zip(
        names, format_seconds_alike(makespans), map(format_gap, gaps), format_seconds_alike(seconds), strict=True
    )
    for place, row in enumerate(cells):
        table.add_row(*row, style="bold" if place == 0 else None)
    table.caption = "\n".join(moral(done))
    return table


def moral(done: DemoTraining) -> list[str]:
    """Say what training brought, as the rows have it: on smaller graphs, and in the time that search had too."""
    from stretto.api.demo import SEARCH, SHIPPED, TRAINED

    rows = {row[0]: row for row in done.rows}
    shipped, trained, episodes = rows[SHIPPED], rows[TRAINED], format_count(done.num_episodes, "episode")
    quick, long = (format_seconds(round(row[3], digits)) for row, digits in ((shipped, 2), (trained, 1)))
    if SEARCH not in rows:
        return [f"Interrupted before {SEARCH} had the same time: nothing is compared."]
    search = rows[SEARCH]
    said = [
        f"Trained on smaller graphs, doppler plans in {quick}: {_against(shipped[1], search[1])} {SEARCH} after {long}."
    ]
    said.append(f"In the same {long}, with {episodes} here and search: {_against(trained[1], search[1])} {SEARCH}.")
    if shipped[1] < search[1] * (1 - 1e-9):
        return [*said, "So training beforehand pays here: the search had more time."]
    if min(shipped[1], trained[1]) > search[1] * (1 + 1e-9):
        return [*said, "So search alone is better here."]
    return [*said, f"So on this graph training alone does not replace search: {SEARCH} caught up in its time."]


def _against(ours_s: float, theirs_s: float) -> str:
    """Say how a makespan compares with another one."""
    change = ours_s / theirs_s - 1
    if abs(change) < 1e-9:
        return "as short as"
    return f"{abs(change) * 100:.1f} % {'shorter' if change < 0 else 'longer'} than"


def _print_next_steps(pictures: list[Path]) -> None:
    console = stdout()
    console.print()
    for path in pictures:
        place = path.absolute().as_uri() if path.suffix == ".html" else path
        console.print(f"wrote {place}", soft_wrap=True)
    console.print("\nWhat to try next", style="bold")
    console.print(_how_to_call(), soft_wrap=True, end="")
    for line in next_steps():
        console.print(f"  {line}", soft_wrap=True)


def next_steps() -> list[str]:
    """Return commands that work when pasted, in this order."""
    workflow, cluster = "workload:montage", "cpu:4x1.0,gpu:2x3.0@1GB/s"
    if all(Path("examples", name).is_file() for name in ("workflow.json", "lab.toml")):  # in a clone of the repository
        workflow, cluster = "examples/workflow.json", "examples/lab.toml    # put your own files here"
    return [
        "stretto doctor",
        "stretto list policies",
        "stretto plan 'workload:cholesky?num_tiles=12' -c cpu:8,gpu:2 --policy tabu --time-limit 10s --save plan.json",
        "stretto simulate plan.json --contention fair --noise 0.2",
        "stretto gantt plan.json -o plan.html",
        "stretto compare 'trace:lublin?num_jobs=3000&num_procs=128&load=0.95' --windows 10 --window-size 1000",
        f"stretto plan {workflow} -c {cluster}",
        "stretto serve",
    ]


def _how_to_call() -> str:
    """Return the line that puts ``stretto`` on the PATH, where it is not there yet."""
    import shlex
    import shutil
    import sys

    ours = Path(sys.prefix) / "bin"
    if shutil.which("stretto") is not None or not (ours / "activate").is_file():
        return ""
    folder = os.path.relpath(ours)
    activate = shlex.quote(os.path.join(folder, "activate"))
    return f"  source {activate}    # puts stretto on the PATH of this shell (or type {shlex.quote(folder)}/stretto)\n"

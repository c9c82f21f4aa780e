"""``stretto demo``: the whole tool in under a minute, on built-in workloads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.cli.console import Output, print_json, remark, stdout
from stretto.cli.options import OutputOption, SeedOption

if TYPE_CHECKING:
    from stretto.experiments.compare import Comparison
    from stretto.experiments.evaluate import PlanResult

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
        float, typer.Option("--time-limit", metavar="SECONDS", help="For each search, per graph.")
    ] = 3.0,
    seed: SeedOption = 0,
    output: OutputOption = Output.TABLE,
) -> None:
    """See it work: built-in workloads, a few policies, two pictures."""
    from stretto.cli.compare import report, run_comparison
    from stretto.cli.interrupt import Interrupt
    from stretto.cli.sources import load_cluster, load_graph

    _make_folder(out)
    cluster = load_cluster(CLUSTER)
    graphs = [load_graph(source) for source in GRAPHS]
    if output is Output.TABLE:
        _print_introduction(cluster.num_devices)
    with Interrupt() as interrupt:
        comparison = run_comparison(graphs, cluster, POLICIES, interrupt, seeds=[seed], time_limit_s=time_limit)
    pictures = _draw(comparison, graphs[_PICTURE_OF].name, out)
    if output is Output.JSON:
        print_json(comparison.to_json() | {"pictures": [str(path) for path in pictures]})
    else:
        report(comparison, output)
    if output is Output.TABLE:
        _print_next_steps(pictures)
    if interrupt.pressed:
        remark("interrupted: the tables hold what was finished until then")
        raise typer.Exit(130)


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


def _draw(comparison: Comparison, graph: str, out: Path) -> list[Path]:
    """Draw the best schedule of one graph as a still picture and as a page."""
    from stretto.experiments.gantt import draw_gantt

    results: list[PlanResult] = [r for r in comparison.results if r.problem.graph.name == graph]
    if not results:
        return []
    best = min(results, key=lambda result: result.makespan_s)
    paths = [out / f"{graph}.png", out / f"{graph}.html"]
    for path in paths:
        draw_gantt(
            best.problem, best.schedule, path, title=f"{graph} by {best.policy}", lower_bound_s=best.lower_bound_s
        )
    return paths


def _print_next_steps(pictures: list[Path]) -> None:
    console = stdout()
    console.print()
    for path in pictures:
        console.print(f"wrote {path}", soft_wrap=True)
    console.print("\nWhat to try next", style="bold")
    console.print(
        "  stretto list policies\n"
        "  stretto show workload:montage\n"
        "  stretto plan 'workload:cholesky?num_tiles=12' -c cpu:8,gpu:2 \\\n"
        "      --policy annealing --time-limit 10 --save plan.json --gantt plan.html\n"
        "  stretto simulate plan.json --contention fair --noise 0.2\n"
        "  stretto plan YOUR_WORKFLOW.json -c YOUR_CLUSTER.toml",
        soft_wrap=True,
    )

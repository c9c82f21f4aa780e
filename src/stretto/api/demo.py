"""What ``stretto demo`` does: a short training beside its opponents, and files to look at."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.api.documents import cluster_in
from stretto.api.inputs import problem as make_problem
from stretto.api.plan import PlanResult, plan, plan_document
from stretto.api.plan_file import save_plan
from stretto.api.train import TrainWatch
from stretto.core.problem import Problem
from stretto.core.units import format_count
from stretto.files.load import write_atomically
from stretto.graphs.compare import Comparison

if TYPE_CHECKING:
    from stretto.graphs.doppler.run import DopplerRun
    from stretto.learning.loop import LoopResult
    from stretto.learning.trainer import TrainingRow

GRAPH = "workload:llama-block"
#: Where bandwidth is scarce between machines, heuristics that look one step ahead do badly.
CLUSTER = """
name = "2 machines with 2 GPUs each"
network = { bandwidth = "10Gbit/s", latency = "50us" }
machine = [{ name = "node", count = 2, bandwidth = "16GB/s", device = [{ kind = "gpu", count = 2 }] }]
"""
TRAINED = "doppler, trained"
_HEURISTICS = ("heft", "peft", "etf", "critical-path")


@dataclass(frozen=True)
class DemoTraining:
    """What a short training came to, beside its opponents.

    Attributes
    ----------
    rows
        Name, makespan, gap and seconds of thought, the best first.
    """

    graph: str
    cluster: str
    num_tasks: int
    num_episodes: int
    compile_seconds: float
    is_interrupted: bool
    rows: tuple[tuple[str, float, float, float], ...]

    def to_json(self) -> dict[str, object]:
        """Return the training with the names of its columns."""
        names = ("policy", "makespan_s", "gap", "seconds")
        return asdict(self) | {"rows": [dict(zip(names, row, strict=True)) for row in self.rows]}


def missing_libraries() -> list[str]:
    """Return what is not installed of the things that training needs."""
    from importlib.util import find_spec

    return [name for name in ("jax", "optax") if find_spec(name) is None]


def learn(seconds: float, seed: int, watch: TrainWatch) -> DemoTraining:
    """Train Doppler on one graph for some seconds, and compare it with heuristics and annealing of the same length."""
    problem = make_problem(GRAPH, cluster_in(CLUSTER))
    result, trainer = _train(problem, seconds, seed, watch)
    trained = trainer.result("doppler", result.seconds)
    best = min((plan(problem, policy=name) for name in _HEURISTICS), key=lambda outcome: outcome.makespan_s)
    before = plan(problem, policy="doppler-zero", seed=seed)
    rows = [(one.policy, one.makespan_s, one.gap, one.plan_seconds) for one in (best, before)]
    rows.append((TRAINED, trained.makespan_s, trained.gap, result.seconds))
    if not result.is_interrupted:
        watch.phase("annealing for comparison")
        other = plan(problem, policy="annealing", seed=seed, time_limit_s=max(0.2, result.seconds))
        rows.append(("annealing", other.makespan_s, other.gap, other.plan_seconds))
    return DemoTraining(
        problem.graph.name,
        problem.cluster.name,
        problem.num_tasks,
        result.num_episodes,
        result.compile_seconds,
        result.is_interrupted,
        tuple(sorted(rows, key=lambda row: row[1])),
    )


def _train(
    problem: Problem, seconds: float, seed: int, watch: TrainWatch
) -> tuple[LoopResult[TrainingRow], DopplerRun]:
    """Train for some seconds, without those of compiling."""
    from stretto.graphs.doppler.run import DopplerRun
    from stretto.learning.loop import TrainingRun
    from stretto.learning.trainer import TrainingSpec

    trainer = DopplerRun(problem, TrainingSpec(seed, None, seconds))
    run = TrainingRun(trainer, algorithm="doppler")
    watch.phase(f"training doppler on {format_count(problem.num_tasks, 'task')}")
    watch.phase("compiling")
    watch.run_long(run.compile)
    return run.train(time_limit_s=seconds, on_row=watch.row, is_stopped=watch.is_stopped), trainer


def write_files(comparison: Comparison, best: PlanResult, graph: str, cluster: str, out: Path) -> list[Path]:
    """Write a plan, its picture, and a report on it and on the comparison."""
    from stretto.reports.gantt.draw import draw_gantt
    from stretto.reports.page.report import RunReport

    problem, name = best.problem, best.problem.graph.name
    saved, picture, page = out / "plan.json", out / f"{name}.png", out / "report.html"
    document = plan_document(best, graph, cluster)
    save_plan(saved, document)
    title = f"{name} by {best.policy}"
    draw_gantt(problem, best.schedule, picture, title=title, lower_bound_s=best.lower_bound_s)
    report = RunReport()
    command = f"stretto plan '{graph}' -c {cluster} --policy {best.policy} --save {saved}"
    report.add_plan(str(saved), problem, best.plan, best.schedule, document, command)
    report.add_comparison(comparison.to_json(), "demo")
    write_atomically(page, report.page("Stretto demo"))
    return [saved, picture, page]

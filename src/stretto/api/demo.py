"""What ``stretto demo`` does: a short training beside a search of the same length, and files to look at."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path

from stretto.api.documents import cluster_in
from stretto.api.inputs import problem as make_problem
from stretto.api.plan import PlanResult, plan, plan_document
from stretto.api.plan_file import save_plan
from stretto.api.train import TrainWatch
from stretto.core.planner import Progress
from stretto.core.problem import Problem
from stretto.core.units import format_count, format_seconds
from stretto.files.load import write_atomically
from stretto.graphs.compare import Comparison

GRAPH = "workload:llama-block"
#: Where bandwidth is scarce between machines, heuristics that look one step ahead do badly.
CLUSTER = """
name = "2 machines with 4 GPUs each"
network = { bandwidth = "10Gbit/s", latency = "50us" }
machine = [{ name = "node", count = 2, bandwidth = "16GB/s", device = [{ kind = "gpu", count = 4 }] }]
"""
#: Doppler as it comes, trained on smaller graphs, of this family among others; with training on this graph and search
#: in turns; and a search alone.
SHIPPED, TRAINED, SEARCH = "doppler, as shipped", "doppler, with search", "annealing"
_HEURISTICS = ("heft", "peft", "etf", "critical-path")


@dataclass(frozen=True)
class DemoTraining:
    """What a short training came to, beside heuristics and a search of the same length.

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
    """Let Doppler train and search on one graph for some seconds, and a search alone for as long."""
    problem = make_problem(GRAPH, cluster_in(CLUSTER))
    best = min((plan(problem, policy=name) for name in _HEURISTICS), key=lambda outcome: outcome.makespan_s)
    before = plan(problem, policy="doppler-zero", seed=seed)
    rows = [(best.policy, best.makespan_s, best.gap, best.plan_seconds)]
    rows.append((SHIPPED, before.makespan_s, before.gap, before.plan_seconds))
    watch.phase(f"training doppler on {format_count(problem.num_tasks, 'task')}")
    watch.phase("compiling")
    begin = time.perf_counter()
    trained = _timed_plan(problem, "doppler", seconds, seed, watch)
    compile_seconds = max(0.0, time.perf_counter() - begin - trained.plan_seconds)
    rows.append((TRAINED, trained.makespan_s, trained.gap, trained.plan_seconds))
    is_interrupted = watch.is_stopped()
    if not is_interrupted:
        watch.phase(f"{SEARCH} for comparison")
        other = _timed_plan(problem, SEARCH, max(0.2, trained.plan_seconds), seed, watch)
        rows.append((SEARCH, other.makespan_s, other.gap, other.plan_seconds))
    return DemoTraining(
        problem.graph.name,
        problem.cluster.name,
        problem.num_tasks,
        int(trained.plan.info.get("episodes", 0)),
        compile_seconds,
        is_interrupted,
        tuple(sorted(rows, key=lambda row: row[1])),
    )


def _timed_plan(problem: Problem, policy: str, seconds: float, seed: int, watch: TrainWatch) -> PlanResult:
    """Plan for some seconds; Ctrl-C ends it with the best plan so far."""

    def on_progress(progress: Progress) -> None:
        watch.phase(f"best {format_seconds(progress.best_makespan_s)}")
        if watch.is_stopped():
            raise KeyboardInterrupt

    return watch.run_long(
        lambda: plan(problem, policy=policy, seed=seed, time_limit_s=seconds, on_progress=on_progress)
    )


def write_files(comparison: Comparison, best: PlanResult, graph: str, cluster: str, out: Path) -> list[Path]:
    """Write a plan, its picture, and a report on it and on the comparison."""
    from stretto.reports.gantt.draw import draw_gantt
    from stretto.reports.page.report import RunReport

    problem, name = best.problem, best.problem.graph.name
    saved, picture, page = out / "plan.json", out / f"{name}.png", out / "report.html"
    document = plan_document(best, graph, cluster)
    save_plan(saved, document)
    title = f"{name} by {best.policy}"
    draw_gantt(problem, best.schedule, picture, title=title, lower_bound_s=best.lower_bound_s, answer=best.answer)
    report = RunReport()
    command = f"stretto plan '{graph}' -c {cluster} --policy {best.policy} --save {saved}"
    report.add_plan(str(saved), problem, best.plan, best.schedule, document, command)
    report.add_comparison(comparison.to_json(), "demo")
    write_atomically(page, report.page("Stretto demo"))
    return [saved, picture, page]

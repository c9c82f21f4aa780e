"""The part of ``stretto demo`` that learns before your eyes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from stretto.cli.terminal.console import new_table
from stretto.core.units import format_count, format_gap, format_seconds, format_seconds_alike

if TYPE_CHECKING:
    from rich.table import Table

    from stretto.cli.terminal.interrupt import Patience
    from stretto.core.problem import Problem
    from stretto.learning.trainer import TrainingRow

GRAPH = "workload:llama-block"
#: Where bandwidth is scarce between machines, heuristics that look one step ahead do badly.
CLUSTER = b"""
name = "2 machines with 2 GPUs each"
network = { bandwidth = "10Gbit/s", latency = "50us" }
machine = [{ name = "node", count = 2, bandwidth = "16GB/s", device = [{ kind = "gpu", count = 2 }] }]
"""
TRAINED = "doppler, trained"
_HEURISTICS = ("heft", "peft", "etf", "critical-path")


@dataclass(frozen=True)
class Lesson:
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

    def to_json(self) -> dict[str, Any]:
        """Return the lesson with the names of its columns."""
        names = ("policy", "makespan_s", "gap", "seconds")
        return asdict(self) | {"rows": [dict(zip(names, row, strict=True)) for row in self.rows]}


def missing_libraries() -> list[str]:
    """Return what is not installed of the things that training needs."""
    from importlib.util import find_spec

    return [name for name in ("jax", "equinox", "optax") if find_spec(name) is None]


def learn(seconds: float, seed: int) -> Lesson:
    """Train Doppler on one graph for some seconds, and set it against heuristics and annealing of the same length."""
    from stretto.cli.sources import load_graph
    from stretto.cli.terminal.interrupt import Patience
    from stretto.cli.terminal.progress import ProgressLine
    from stretto.core.planner import Budget
    from stretto.core.problem import Problem
    from stretto.files.clusters.cluster_toml import read_cluster
    from stretto.files.document import Document
    from stretto.graphs.evaluate import evaluate
    from stretto.graphs.training import judged

    problem = Problem.of(load_graph(GRAPH), read_cluster(Document("demo", CLUSTER)))
    with Patience() as patience:
        result = _train(problem, seconds, seed, patience)
    trained = judged(problem, "doppler", result, seed=seed)
    outcomes = {name: evaluate(problem, name) for name in _HEURISTICS}
    best = min(outcomes.values(), key=lambda outcome: outcome.makespan_s)
    before = evaluate(problem, "doppler-zero", budget=Budget(seed))
    rows = [(one.policy, one.makespan_s, one.gap, one.plan_seconds) for one in (best, before)]
    rows.append((TRAINED, trained.makespan_s, trained.gap, result.seconds))
    if not result.is_interrupted:
        with ProgressLine("annealing for comparison"):
            other = evaluate(problem, "annealing", budget=Budget(seed, max(0.2, result.seconds)))
        rows.append(("annealing", other.makespan_s, other.gap, other.plan_seconds))
    return Lesson(
        problem.graph.name,
        problem.cluster.name,
        problem.num_tasks,
        result.num_episodes,
        result.compile_seconds,
        result.is_interrupted,
        tuple(sorted(rows, key=lambda row: row[1])),
    )


def _train(problem: Problem, seconds: float, seed: int, patience: Patience) -> Any:
    from stretto.cli.terminal.background import in_background
    from stretto.cli.training.bar import TrainingBar
    from stretto.graphs.training import TrainingRun, trainer_named
    from stretto.learning.trainer import TrainingSpec

    spec = TrainingSpec(seed, None, seconds)
    run = TrainingRun(trainer_named("doppler", problem, spec), problem, algorithm="doppler")
    doing = f"training doppler on {format_count(problem.num_tasks, 'task')}"
    with TrainingBar(doing, time_limit_s=seconds, episodes=None) as bar:

        def on_row(row: TrainingRow) -> None:
            patience.has_result = True
            bar.show(row)

        in_background(run.compile)
        return run.train(time_limit_s=seconds, on_row=on_row, is_stopped=lambda: patience.is_over)


def lesson_table(lesson: Lesson) -> Table:
    """Return the lesson for people."""
    table = new_table(
        f"Learned just now: {lesson.graph} ({format_count(lesson.num_tasks, 'task')}) on {lesson.cluster}"
    )
    table.add_column("policy", no_wrap=True)
    for column in ("makespan", "gap", "thought for"):
        table.add_column(column, justify="right", no_wrap=True)
    names, makespans, gaps, seconds = zip(*lesson.rows, strict=True)
    cells = zip(
        names, format_seconds_alike(makespans), map(format_gap, gaps), format_seconds_alike(seconds), strict=True
    )
    for place, row in enumerate(cells):
        table.add_row(*row, style="bold" if place == 0 else None)
    compiled = format_seconds(lesson.compile_seconds)
    episodes = format_count(lesson.num_episodes, "episode")
    caption = f"{episodes} from the weights that come with Stretto; compiled in {compiled}"
    table.caption = "\n".join([caption, *behind(lesson)])
    return table


def behind(lesson: Lesson) -> list[str]:
    """Say why the trained policy is not the best, where it is not; nothing where it is."""
    (trained,) = (row for row in lesson.rows if row[0] == TRAINED)
    better = [name for name, makespan_s, _, _ in lesson.rows if makespan_s < trained[1] * (1 - 1e-9)]
    if not better:
        return []
    time = format_seconds(round(trained[3], 1))
    return [
        f"The trained policy is behind {' and '.join(better)}: {time} of training are few.",
        "stretto demo --train-seconds 120 trains longer; stretto plan --policy doppler trains and searches in turns.",
    ]

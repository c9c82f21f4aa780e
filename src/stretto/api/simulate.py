"""``stretto.simulate``: execute a plan in the simulator, perhaps under harder conditions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stretto.api.inputs import ClusterLike, GraphLike, problem
from stretto.api.plan_file import load_plan, recorded_contention
from stretto.core.answers.plan import simulated_answer
from stretto.core.metrics import Metrics, measure
from stretto.core.plan import Discipline, Plan
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.errors import InvalidInput
from stretto.graphs.conditions import Contention
from stretto.graphs.evaluate import PlanResult, Setting


@dataclass(frozen=True, eq=False)
class SimulatedPlan:
    """A plan file, executed."""

    problem: Problem
    schedule: Schedule
    policy: object
    planned_makespan_s: float | None
    noise: float
    seed: int

    @property
    def metrics(self) -> Metrics:
        return measure(self.problem, self.schedule)

    @property
    def answer(self) -> str:
        """The result in one sentence."""
        return simulated_answer(self)

    def to_json(self) -> dict[str, object]:
        """Return what ``stretto simulate --output json`` prints."""
        problem, schedule, metrics = self.problem, self.schedule, self.metrics
        planned = self.planned_makespan_s
        return {
            "answer": self.answer,
            "graph": problem.graph.name,
            "cluster": problem.cluster.name,
            "policy": self.policy,
            "num_tasks": problem.num_tasks,
            "num_devices": problem.num_devices,
            "makespan_s": schedule.makespan_s,
            "planned_makespan_s": planned,
            "stretch": schedule.makespan_s / planned if planned is not None else None,
            "discipline": schedule.discipline,
            "contention": schedule.contention,
            "utilization": metrics.utilization,
            "utilisation": metrics.utilization,  # the old spelling, for one version
            "cost_usd": metrics.cost_usd,
            "start_s": schedule.start_s,
            "finish_s": schedule.finish_s,
            "device": schedule.device,
            "noise": self.noise,
            "seed": self.seed,
        }


def simulate(
    graph: GraphLike | Problem | PlanResult,
    cluster: ClusterLike | None = None,
    plan: Plan | None = None,
    *,
    discipline: Discipline | None = None,
    contention: Contention = "none",
    noise: float = 0.0,
    seed: int = 0,
    record_transfers: bool = False,
) -> Schedule:
    """Execute a plan in the simulator; a :class:`PlanResult` brings graph, cluster and plan with it.

    Examples
    --------
    >>> import stretto
    >>> result = stretto.plan("workload:cholesky?num_tiles=4", "cpu:2,gpu:1@1GB/s")
    >>> stretto.simulate(result, contention="fair").makespan_s >= result.lower_bound_s
    True
    """
    if isinstance(graph, PlanResult):
        work, chosen = graph.problem, plan or graph.plan
    else:
        if plan is None:
            raise TypeError("simulate needs a plan")
        work, chosen = problem(graph, cluster), plan
    return Setting(discipline, contention, noise, seed).run(work, chosen, record_transfers=record_transfers)


def simulate_file(
    plan_file: str | Path,
    graph: GraphLike | None = None,
    cluster: ClusterLike | None = None,
    *,
    discipline: Discipline | None = None,
    contention: Contention | None = None,
    noise: float = 0.0,
    seed: int = 0,
    trace: Path | None = None,
) -> SimulatedPlan:
    """Execute a saved plan, by default as it was planned.

    Parameters
    ----------
    graph, cluster
        Replace those that the file names.
    trace
        Write what happened here: a Chrome trace (Perfetto), or Pajé's if the name ends in ``.paje``.
    """
    if not 0 <= noise < float("inf"):
        raise InvalidInput(f"{noise} must be finite and not negative", field="noise")
    if seed < 0:
        raise InvalidInput(f"{seed} must not be negative", field="seed")
    work, plan, recorded = load_plan(Path(plan_file), graph, cluster)
    setting = Setting(discipline, contention or recorded_contention(recorded), noise, seed)
    schedule = setting.run(work, plan, record_transfers=trace is not None)
    if trace is not None:
        _write_trace(trace, work, schedule)
    planned = recorded.get("makespan_s")
    is_known = isinstance(planned, (int, float)) and not isinstance(planned, bool) and planned > 0
    return SimulatedPlan(work, schedule, recorded.get("policy"), planned if is_known else None, noise, seed)


def _write_trace(path: Path, work: Problem, schedule: Schedule) -> None:
    from stretto.files.chrome_trace import write_trace
    from stretto.files.load import write_atomically
    from stretto.files.paje import write_paje

    write = write_paje if path.suffix.lower() in (".paje", ".trace") else write_trace
    write_atomically(path, write(work, schedule))

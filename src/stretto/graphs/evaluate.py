"""Plan a problem with one policy and judge the plan: simulated makespan, bound, gap, cost."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from stretto import catalog, registry
from stretto.core.answers.plan import plan_answer
from stretto.core.cluster import Cluster
from stretto.core.graph import Resources, TaskGraph
from stretto.core.metrics import Metrics, gap, gap_or_none, is_proven_optimal, measure
from stretto.core.notes import has_memory_limit, problem_notes, verdict
from stretto.core.plan import Discipline, Plan
from stretto.core.planner import Budget, Planner
from stretto.core.problem import Problem
from stretto.core.provenance import duration_basis
from stretto.core.schedule import Schedule
from stretto.errors import Infeasible, InvalidInput, InvalidPlan
from stretto.graphs.bounds.bound import Bound, bound
from stretto.graphs.conditions import Contention, checked_indices
from stretto.graphs.memory.execution import progress
from stretto.graphs.memory.peak import peak_memory
from stretto.graphs.memory.repair import REPAIR, TRIED, fit_memory
from stretto.graphs.plan_document import head_fields, task_fields
from stretto.graphs.search.anytime import OPTIMAL
from stretto.graphs.simulator import simulate

#: A planner as a plain function: it returns a plan, or only the device of each task.
PlanFunction = Callable[[Problem, Budget], Plan | ArrayLike]
#: What may be given as a policy: a name of the catalog, an object with the methods of a planner, or a function.
PolicyLike = str | Planner | PlanFunction


@dataclass(frozen=True)
class Setting:
    """How plans are executed when they are judged.

    Attributes
    ----------
    discipline
        None keeps what each planner meant.
    noise
        Coefficient of variation of the run times, drawn by ``seed``.
    """

    discipline: Discipline | None = None
    contention: Contention = "none"
    noise: float = 0.0
    seed: int = 0

    def run(self, problem: Problem, plan: Plan, *, record_transfers: bool = False) -> Schedule:
        """Execute the plan in the simulator under this setting."""
        return simulate(
            problem,
            plan,
            discipline=self.discipline,
            contention=self.contention,
            noise=self.noise,
            seed=self.seed,
            record_transfers=record_transfers,
        )


def within_memory(problem: Problem, plan: Plan, setting: Setting | None = None, *, seed: int = 0) -> Plan:
    """Return the plan itself where it runs within the memory of all devices, else one that does.

    Raises
    ------
    Infeasible
        None was found; the message says what was tried, or why there is none.
    """
    setting = setting or Setting()
    if not has_memory_limit(problem):
        return plan

    def execute(tried: Plan) -> tuple[int, float]:
        return progress(problem, tried, discipline=setting.discipline, contention=setting.contention)

    waiting, end_s = execute(plan)
    if waiting == 0:
        if not plan.info.get("optimal"):
            return plan
        free_s = simulate(problem, plan, discipline=setting.discipline, memory_limits=False).makespan_s
        return plan if end_s <= free_s * OPTIMAL else _unproven(plan)
    # A plan that could not be executed with endless memory either is another mistake, and raises its own error.
    simulate(problem, plan, discipline=setting.discipline, memory_limits=False)
    fitted = fit_memory(problem, plan, execute, discipline=setting.discipline, seed=seed)
    return _unproven(fitted)


def _unproven(plan: Plan) -> Plan:
    """Return the plan without the word of a policy that did not see it wait for memory."""
    return replace(plan, info={key: value for key, value in plan.info.items() if key != "optimal"})


@dataclass(frozen=True, eq=False)
class PlanResult:
    """A plan, its schedule, and how far it is from a lower bound.

    Attributes
    ----------
    gap
        ``makespan_s / lower_bound_s - 1``; how far from perfect at most. Infinite where the bound says nothing.
    plan_seconds
        Wall time of the planner alone, compiled.
    """

    policy: str
    params: Mapping[str, Any]
    problem: Problem
    plan: Plan
    schedule: Schedule
    metrics: Metrics
    bound: Bound
    plan_seconds: float
    seed: int = 0
    setting: Setting = field(default_factory=Setting)

    @property
    def makespan_s(self) -> float:
        return self.schedule.makespan_s

    @property
    def lower_bound_s(self) -> float:
        return self.bound.value_s

    @property
    def gap(self) -> float:
        return gap(self.makespan_s, self.lower_bound_s)

    @property
    def is_proven_optimal(self) -> bool:
        """Whether no schedule of this problem is shorter; a run with noise proves nothing."""
        return self.setting.noise == 0 and is_proven_optimal(self.makespan_s, self.lower_bound_s)

    def _peaks(self) -> list[float] | None:
        """Return peak memory where devices hold tasks and data: not on nodes that pack, nor of projects."""
        is_on_devices = self.problem.packing is None and self.problem.graph.resources is None
        return list(self.peak_memory_bytes) if is_on_devices else None

    @cached_property
    def peak_memory_bytes(self) -> tuple[float, ...]:
        """The most bytes that each device holds at one moment: residents, running tasks and live objects."""
        executed = self.setting.run(self.problem, self.plan, record_transfers=True)
        return tuple(peak_memory(self.problem, executed).tolist())

    @property
    def cost_usd(self) -> float:
        return self.metrics.cost_usd

    @property
    def notes(self) -> tuple[str, ...]:
        """What the plan takes for granted: what is not modeled, and which numbers of the input are assumed."""
        notes = problem_notes(self.problem)
        repair = self.plan.info.get(REPAIR)
        if repair is None:
            return notes
        told = (
            f"The policy's own plan does not fit the memory of the devices. This one does: a packing ({repair}), "
            f"improved by search; {self.plan.info[TRIED]:,} plans were tried."
        )
        return (*notes, told)

    @property
    def verdict(self) -> str:
        """How good the plan is, in words, and under which condition where one was not checked."""
        return verdict(self.problem, self.gap)

    @property
    def answer(self) -> str:
        """The result in one sentence."""
        return plan_answer(self)

    def to_json(self) -> dict[str, Any]:
        """Return what ``stretto plan --output json`` prints; ``stretto simulate`` reads it back."""
        graph = self.problem.graph
        return {
            **head_fields(self.problem, self.policy, self.params, self.seed),
            "answer": self.answer,
            "makespan_s": self.makespan_s,
            "lower_bound_s": self.lower_bound_s,
            "bound_method": self.bound.method,
            "gap": gap_or_none(self.makespan_s, self.lower_bound_s),
            "verdict": self.verdict,
            "notes": list(self.notes),
            "durations": duration_basis(graph),
            "cost_usd": self.cost_usd,
            "plan_seconds": self.plan_seconds,
            "num_tasks": graph.num_tasks,
            "num_devices": self.problem.num_devices,
            "discipline": self.schedule.discipline,
            "contention": self.schedule.contention,
            "utilization": self.metrics.utilization,
            "utilisation": self.metrics.utilization,  # the old spelling, for one version
            "peak_memory_bytes": self._peaks(),
            **task_fields(self.problem, self.plan, self.schedule),
            "info": dict(self.plan.info),
        }


def planner_named(name: str, params: Mapping[str, Any] | None = None) -> Planner:
    """Build a planner from the catalog."""
    planner: Planner = registry.construct("policy", name, catalog.PLANNERS, params or {})
    return planner


@dataclass(frozen=True)
class FunctionPlanner:
    """A function as a planner; where it returns only devices, tasks run by arrival, in topological order."""

    function: PlanFunction

    def supports(self, problem: Problem) -> str | None:
        return None

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        found = self.function(problem, budget)
        if isinstance(found, Plan):
            return found
        if np.shape(found) != (problem.num_tasks,):
            raise InvalidPlan(_no_plan(policy_name(self.function), found, problem))
        topo = problem.arrays.topo
        return Plan(np.asarray(found), topo[np.argsort(problem.arrays.release[topo], kind="stable")])


def policy_name(policy: PolicyLike) -> str:
    """Return how results call a policy: its name in the catalog, or that of its function or class."""
    return policy if isinstance(policy, str) else str(getattr(policy, "__name__", type(policy).__name__))


def planner_of(policy: PolicyLike, params: Mapping[str, Any] | None = None) -> Planner:
    """Return the planner of a name, an object or a function; only names take parameters."""
    if isinstance(policy, str):
        return planner_named(policy, params)
    if params:
        raise InvalidInput(
            f"{', '.join(params)} cannot be given to {policy_name(policy)!r}, which is an object: set them on it",
            field="params",
        )
    if isinstance(policy, type):
        raise InvalidInput(f"{policy.__name__} is a class: pass an instance, {policy.__name__}()", field="policy")
    if callable(getattr(policy, "plan", None)):
        return cast(Planner, policy)
    if callable(policy):
        return FunctionPlanner(policy)
    raise InvalidInput(
        f"{policy!r} is not a policy: pass a name such as 'heft', an object with plan(problem, budget), "
        "or a function of problem and budget that returns a Plan or the device of each task",
        field="policy",
    )


def _checked_plan(problem: Problem, policy: PolicyLike, plan: object) -> Plan:
    """Return the plan that a policy made, with arrays as kernels want them; raise where it is none."""
    if not isinstance(plan, Plan):
        raise InvalidPlan(_no_plan(policy_name(policy), plan, problem))
    if isinstance(policy, str):
        return plan
    assignment, order = checked_indices(problem, plan)
    return replace(plan, assignment=assignment, order=order)


def _no_plan(name: str, found: object, problem: Problem) -> str:
    return (
        f"policy {name!r} returned {type(found).__name__}, "
        f"expected a Plan(assignment, order) or {problem.num_tasks} device numbers"
    )


def _reason_against(planner: Planner, problem: Problem) -> str | None:
    supports = getattr(planner, "supports", None)
    return supports(problem) if supports is not None else None


@cache
def _compile(policy: str, params: str, is_project: bool, packs: bool) -> None:
    """Plan a tiny problem, so that compiling does not count as thinking, nor against a time limit."""
    planner = planner_named(policy, json.loads(params))
    resources = Resources(("r",), np.ones(1, dtype=np.int32), np.zeros((2, 1), dtype=np.int32)) if is_project else None
    graph = TaskGraph.from_edges([1.0, 1.0], [0], [1], 1.0, resources=resources)
    machines = "shop:1" if is_project else "node:2*1c" if packs else "cpu:2"
    planner.plan(Problem.of(graph, Cluster.parse(machines)), Budget(time_limit_s=0.01))


def evaluate(
    problem: Problem,
    policy: PolicyLike,
    *,
    params: Mapping[str, Any] | None = None,
    budget: Budget | None = None,
    setting: Setting | None = None,
    lower_bound: Bound | None = None,
) -> PlanResult:
    """Plan with one policy, execute the plan in the simulator, and judge it.

    A planner that has proved a better bound on the way (CP-SAT) has it used, but only where it
    speaks of the same setting: no contention and no noise.

    Parameters
    ----------
    policy
        A name of the catalog, an object with the methods of :class:`~stretto.core.planner.Planner`, or a function
        ``(problem, budget)`` that returns a plan or the device of each task.

    Examples
    --------
    >>> import stretto
    >>> def all_on_first(problem, budget):
    ...     return [0] * problem.num_tasks
    >>> problem = stretto.problem(stretto.workloads.random_dag(num_tasks=20, seed=1), "cpu:2")
    >>> result = evaluate(problem, all_on_first)
    >>> result.policy, result.makespan_s >= evaluate(problem, "heft").makespan_s
    ('all_on_first', True)
    """
    planner, name = planner_of(policy, params), policy_name(policy)
    reason = _reason_against(planner, problem)
    if reason is not None:
        raise Infeasible(f"policy {name!r} cannot plan {problem.graph.name!r}: {reason}")
    budget = budget or Budget()
    setting = setting or Setting()
    if isinstance(policy, str):
        is_project, packs = problem.graph.resources is not None, problem.packing is not None
        _compile(policy, json.dumps(dict(params or {})), is_project, packs)
    begin = time.perf_counter()
    made = planner.plan(problem, budget)
    try:
        plan = within_memory(problem, _checked_plan(problem, policy, made), setting, seed=budget.seed)
        seconds = time.perf_counter() - begin
        schedule = setting.run(problem, plan)
    except InvalidPlan as error:
        if isinstance(policy, str) or not isinstance(made, Plan):
            raise
        raise InvalidPlan(f"the plan of policy {name!r} cannot be executed: {error}") from error
    limit = _better_bound(lower_bound or bound(problem), name, plan, schedule, setting)
    return PlanResult(
        name,
        dict(params or {}),
        problem,
        plan,
        schedule,
        measure(problem, schedule),
        limit,
        seconds,
        budget.seed,
        setting,
    )


def _better_bound(limit: Bound, name: str, plan: Plan, schedule: Schedule, setting: Setting) -> Bound:
    """Return the bound that the planner has proved where it is higher."""
    proved = plan.info.get("lower_bound_s")
    if proved is None or not proved > limit.value_s:
        return limit
    if setting.noise == 0 and proved > schedule.makespan_s * (1 + 1e-6):
        raise InvalidPlan(
            f"policy {name!r} says that no schedule is shorter than {proved:.6g} s, "
            f"but its own takes {schedule.makespan_s:.6g} s: check info['lower_bound_s']"
        )
    return Bound(float(proved), {**limit.parts, name: float(proved)}, name)

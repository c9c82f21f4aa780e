"""One suite for all engines: placement, order, exactly once, data, failures, resumption."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import DISCIPLINES, Plan
from stretto.core.problem import Problem
from stretto.engines.driver.events import Event, TaskFinished
from stretto.engines.engine import Engine, RunOptions, RunResult
from stretto.engines.outputs import digest
from stretto.engines.work import Call, Timed, Work, timed_output
from stretto.testing.faults import need
from stretto.testing.order_checks import need_order


@dataclass(frozen=True)
class EngineTrial:
    """What an engine is tried with.

    Attributes
    ----------
    cluster
        Its devices must be there for the engine to use.
    scale
        Real seconds per second of the random graphs, whose tasks take about one.
    latency_s
        How far apart the engine's clocks may be, and how long its news may travel.
    """

    num_tasks: int = 200
    num_graphs: int = 1
    cluster: str | Cluster = "cpu:2x1.0,gpu:2x2.0@1GB/s"
    scale: float = 0.001
    seed: int = 0
    latency_s: float = 0.05
    has_calls: bool = True
    passed: list[str] = field(default_factory=list)

    @property
    def machines(self) -> Cluster:
        return self.cluster if isinstance(self.cluster, Cluster) else Cluster.parse(self.cluster)


def check_engine(engine: Engine, trial: EngineTrial | None = None) -> list[str]:
    """Run the whole suite and return the names of what was checked; raise NotConforming at the first fault."""
    chosen = trial or EngineTrial()
    reason = engine.available()
    need(reason is None, f"the engine is not available here: {reason}")
    for number in range(chosen.num_graphs):
        rng = np.random.default_rng(chosen.seed + number)
        graph = random_graph(rng, chosen.num_tasks)
        for discipline in DISCIPLINES:
            plan = random_plan(rng, graph, chosen.machines)
            work = Work.timed(graph, chosen.scale)
            check_run(engine, work, plan, chosen.machines, RunOptions(discipline=discipline), chosen.latency_s)
            chosen.passed.append(f"{discipline}: {chosen.num_tasks} tasks, graph {number}")
    _check_resumption(engine, chosen)
    if chosen.has_calls:
        _check_calls(engine, chosen)
        _check_failure(engine, chosen)
    return chosen.passed


def check_run(
    engine: Engine, work: Work, plan: Plan, cluster: Cluster, options: RunOptions, latency_s: float = 0.05
) -> RunResult:
    """Run timed work and check everything that a result can tell."""
    events: list[Event] = []
    from dataclasses import replace

    found = engine.run(work, plan, cluster, replace(options, on_event=events.append, keep="sinks"))
    names = work.graph.task_name
    need(found.status == "done", f"the run ended as {found.status!r}: {[f.reason for f in found.failures[:3]]}")
    need(found.is_timed == work.is_timed, "a result must say whether its tasks were timed")
    wrong = np.flatnonzero(found.device != plan.assignment)
    need(not len(wrong), f"{len(wrong)} tasks ran on another device than planned, such as {_name(work, wrong)}")
    again = np.flatnonzero(found.attempts != 1)
    need(not len(again), f"{len(again)} tasks have another number of attempts than one, such as {_name(work, again)}")
    ends = [event.task for event in events if isinstance(event, TaskFinished)]
    need(sorted(ends) == list(range(work.graph.num_tasks)), "on_event must hear of every end, and of each once")
    source, target, _ = work.graph.edges
    early = np.flatnonzero(found.start_s[target] < found.end_s[source] - latency_s)
    need(not len(early), f"{len(early)} tasks began before a parent had ended, such as {_name(work, target[early])}")
    need_order(Problem.of(work.graph, cluster), plan, found, options.discipline or plan.discipline, latency_s)
    expected = expected_outputs(work)
    for task in range(work.graph.num_tasks):
        need(found.digests[task] == digest(expected[task]), f"the output of {names(task)!r} has another digest")
    for task, value in found.outputs.items():
        need(value == expected[task], f"the output of {names(task)!r} is not what it computed")
    return found


def expected_outputs(work: Work) -> dict[int, bytes]:
    """Return what timed tasks output."""
    outputs: dict[int, bytes] = {}
    for task in work.graph.topo.tolist():
        outputs[task] = timed_output(task, [outputs[parent] for parent in work.inputs(task)])
    return outputs


def _check_resumption(engine: Engine, trial: EngineTrial) -> None:
    rng = np.random.default_rng(trial.seed + 1000)
    graph = random_graph(rng, max(10, trial.num_tasks // 5))
    plan, work = random_plan(rng, graph, trial.machines), Work.timed(graph, trial.scale)
    expected = expected_outputs(work)
    before = set(graph.topo[: graph.num_tasks // 2].tolist())
    done = {task: expected[task] for task in before}
    found = engine.run(work, plan, trial.machines, RunOptions(done=done)).check()
    ran = {task for task in range(graph.num_tasks) if found.attempts[task] > 0}
    need(ran == set(range(graph.num_tasks)) - before, "exactly the tasks that were not done must run")
    need(all(found.digests[t] == digest(expected[t]) for t in ran), "a resumed run must read the outputs given to it")
    trial.passed.append("resumption")


def _add(*values: object) -> np.ndarray:
    """Add numbers and arrays; a kernel that any engine can import."""
    total = np.zeros(64)
    for value in values:
        total = total + np.asarray(value)
    return total


def _fail(*values: object) -> None:
    raise ValueError("told to fail")


def _check_calls(engine: Engine, trial: EngineTrial) -> None:
    rng = np.random.default_rng(trial.seed + 2000)
    graph = random_graph(rng, max(10, trial.num_tasks // 5))
    work = Work(graph, tuple(Call(_add, (float(task),)) for task in range(graph.num_tasks)))
    found = engine.run(work, random_plan(rng, graph, trial.machines), trial.machines, RunOptions(keep="all")).check()
    need(not found.is_timed, "calls are not timed")
    outputs: dict[int, np.ndarray] = {}
    for task in graph.topo.tolist():
        outputs[task] = _add(*(outputs[parent] for parent in work.inputs(task)), float(task))
        need(np.array_equal(found.outputs[task], outputs[task]), f"call {task} gave another array")
    trial.passed.append("calls and their arrays")


def _check_failure(engine: Engine, trial: EngineTrial) -> None:
    graph = TaskGraph.from_edges(np.ones(4), [0, 1], [1, 2], 8.0)
    work = Work(graph, (Timed(0.0), Call(_fail), Timed(0.0), Timed(0.0)))
    devices = trial.machines.num_devices
    plan = Plan(np.arange(4, dtype=np.int32) % devices, np.arange(4, dtype=np.int32))
    found = engine.run(work, plan, trial.machines, RunOptions(max_attempts=2, keep_going=True))
    need(found.status == "failed", "a run with a task that always fails must be 'failed'")
    need([f.task for f in found.failures] == [1, 1], "the failing task must be tried max_attempts times, and no other")
    need(all(f.blame == "task" for f in found.failures), "a task that raises is itself to blame")
    need("told to fail" in found.failures[0].reason, "the reason must hold the error's own words")
    need(
        found.is_finished.tolist() == [True, False, False, True],
        "what depends on a failure must not run; the rest must",
    )
    trial.passed.append("a failing task")


def _name(work: Work, tasks: np.ndarray) -> str:
    return repr(work.graph.task_name(int(tasks[0]))) if len(tasks) else ""


def random_graph(rng: np.random.Generator, num_tasks: int) -> TaskGraph:
    """Make a random graph whose tasks have a few parents among the twenty before them."""
    edges = {
        (int(parent), task)
        for task in range(1, num_tasks)
        for parent in rng.integers(max(0, task - 20), task, size=rng.integers(0, 4))
    }
    source, target = (np.array([edge[i] for edge in sorted(edges)], dtype=np.int64) for i in (0, 1))
    size = rng.integers(0, 3, len(source)) * 1000.0
    return TaskGraph.from_edges(rng.uniform(0.2, 2.0, num_tasks), source, target, size, name="random")


def random_plan(rng: np.random.Generator, graph: TaskGraph, cluster: Cluster) -> Plan:
    """Make a plan with random devices and a random topological order."""
    n = graph.num_tasks
    problem = Problem.of(graph, cluster)
    able = np.isfinite(problem.device_duration)
    assignment = np.array([rng.choice(np.flatnonzero(row)) for row in able], dtype=np.int32)
    source, target, _ = graph.edges
    waits = np.bincount(target, minlength=n)
    free, order = [t for t in range(n) if waits[t] == 0], []
    while free:
        task = free.pop(int(rng.integers(len(free))))
        order.append(task)
        for child in target[source == task].tolist():
            waits[child] -= 1
            if waits[child] == 0:
                free.append(child)
    return Plan(assignment, np.array(order, dtype=np.int32))

"""``stretto.run``: plan some work and run it on an engine, on record and resumable where that is wanted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, overload

from stretto import catalog, registry
from stretto.api.inputs import (
    COMMANDS_PREFIX,
    KERNELS_PREFIX,
    ClusterLike,
    GraphLike,
    cluster_of,
    graph_of,
    lasting,
    split_query,
    with_dims,
)
from stretto.api.options import Record
from stretto.api.plan_file import is_plan_file, recorded_sources
from stretto.core.graph import TaskGraph
from stretto.core.magnitudes import SCALE
from stretto.core.plan import Discipline, Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.core.provenance import DURATIONS
from stretto.engines.driver.dispatch import Dispatcher
from stretto.engines.driver.events import Event, TaskFinished
from stretto.engines.engine import RunOptions, RunResult, make_engine
from stretto.engines.event_writer import finished_before
from stretto.engines.host.dispatcher import HostDispatcher
from stretto.engines.host.learned import learned_before
from stretto.engines.host.named import new_dispatcher, run_dispatch, run_dispatched
from stretto.engines.rented_nodes import RentedNodes
from stretto.engines.session import Session, run_recorded, saved_plan
from stretto.engines.up_to_date import OutputRecord
from stretto.engines.wfformat_work import has_commands, load_wfformat_work
from stretto.engines.work import Work
from stretto.engines.workflow_file import is_workflow, load_workflow
from stretto.errors import Infeasible, InvalidInput
from stretto.files.document import read_document
from stretto.files.plan_json import read_plan
from stretto.graphs.evaluate import PolicyLike, planner_of, within_memory
from stretto.graphs.rental.billing import Rental
from stretto.runlog import RunLog

__all__ = [
    "Event",
    "Record",
    "RecordedRun",
    "RunOptions",
    "RunRequest",
    "Session",
    "TaskFinished",
    "has_commands",
    "is_workflow",
    "run",
]


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """A run that is on record, with what was run.

    Attributes
    ----------
    dispatch
        What placed the tasks while they ran; the plan then only served the prediction.
    """

    session: Session
    problem: Problem
    plan: Plan
    time_scale: float = 1.0
    rented: RentedNodes | None = None
    dispatch: str | None = None

    @property
    def rentals(self) -> tuple[Rental, ...]:
        """The rented nodes of the plan, by the times of this run."""
        return self.rented.actual(self.result, self.time_scale) if self.rented is not None else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the run is simulated, besides the remarks of the engine."""
        if self.rented is None:
            return ()
        return self.rented.notes(self.result.engine, is_timed=self.result.is_timed)

    @property
    def result(self) -> RunResult:
        return self.session.result


@dataclass(frozen=True)
class RunRequest:
    """One run, in words that mean the same in another directory and at another time.

    Attributes
    ----------
    plan_file
        A saved plan, in place of a decision by the policy.
    dispatch
        Places the tasks while they run; the policy's plan then only serves the prediction.
    """

    workflow: str
    cluster: str
    engine: str = "local"
    policy: str = "heft"
    scale: float = 1.0
    seed: int = 0
    time_limit_s: float | None = None
    discipline: Discipline | None = None
    max_attempts: int = 3
    keep_going: bool = False
    params: dict[str, Any] = field(default_factory=dict)
    engine_params: dict[str, Any] = field(default_factory=dict)
    plan_file: str | None = None
    dispatch: str | None = None

    @staticmethod
    def from_settings(settings: Mapping[str, Any], run_id: str) -> RunRequest:
        """Return the request of an earlier run."""
        known = {item.name for item in fields(RunRequest)}
        try:
            return RunRequest(**{key: value for key, value in settings.items() if key in known})
        except TypeError as error:
            raise InvalidInput(f"cannot be resumed: {error}", field=f"run {run_id}") from None


@overload
def run(
    work: Work | GraphLike,
    cluster: ClusterLike | None = None,
    policy: PolicyLike | Plan = "heft",
    *,
    engine: str = "local",
    engine_params: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    scale: float = 1.0,
    seed: int = 0,
    time_limit_s: float | None = None,
    options: RunOptions | None = None,
    dims: Mapping[str, int] | None = None,
    record: None = None,
) -> RunResult: ...


@overload
def run(
    work: str | Path | None = None,
    cluster: str | Path | None = None,
    policy: str = "heft",
    *,
    engine: str = "local",
    engine_params: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    scale: float = 1.0,
    seed: int = 0,
    time_limit_s: float | None = None,
    options: RunOptions | None = None,
    dims: Mapping[str, int] | None = None,
    record: Record,
) -> RecordedRun: ...


def run(
    work: Work | GraphLike | None = None,
    cluster: ClusterLike | None = None,
    policy: PolicyLike | Plan = "heft",
    *,
    engine: str = "local",
    engine_params: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    scale: float = 1.0,
    seed: int = 0,
    time_limit_s: float | None = None,
    options: RunOptions | None = None,
    dims: Mapping[str, int] | None = None,
    record: Record | None = None,
) -> RunResult | RecordedRun:
    """Plan some work and run it; the tasks of a mere graph pass their planned seconds times ``scale``.

    Parameters
    ----------
    work
        A workflow of commands (TOML), ``commands:FILE`` for those that a WfFormat file records,
        ``kernels:NAME?key=value``, a graph, or a saved plan.
    policy, params
        Plans the work, as for :func:`plan`; or a plan, as an object or as a saved file.
    engine, engine_params
        Runs it: a name of ``stretto engines``, and its parameters.
    options
        Attempts, discipline, a dispatcher in place of a plan, and whether to ``rerun`` tasks that are up to date.
    record
        Keep the run in the run log, which needs work and cluster by name; the result is then a :class:`RecordedRun`.

    Examples
    --------
    >>> import stretto
    >>> graph = stretto.workloads.random_dag(num_tasks=20, seed=1)
    >>> result = stretto.run(graph, "cpu:2", scale=0.0001)
    >>> result.status, result.is_timed
    ('done', True)
    """
    how = options or RunOptions()
    if record is not None and record.resume is not None:
        return _resumed(record, how)
    work, cluster, policy, plan_file = _planned_sources(work, cluster, policy)
    if work is None or cluster is None:
        raise InvalidInput("name a workflow and the machines, such as flow.toml -c cpu:2, or a run to --resume")
    if dims and isinstance(work, (str, Path)):
        work = with_dims(str(work), [f"{name}={size}" for name, size in dims.items()])
    _check_numbers(scale, how.max_attempts)
    _check_dispatch(how.dispatch, plan_file is not None or isinstance(policy, Plan))
    chosen = make_engine(engine, **(engine_params or {}))  # a misspelt name is found before anything is read
    if record is not None:
        request = RunRequest(
            workflow=lasting(_word(work, "work")),
            cluster=lasting(_word(cluster, "cluster")),
            engine=engine,
            policy=_word(policy, "policy"),
            scale=scale,
            seed=seed,
            time_limit_s=time_limit_s,
            discipline=how.discipline,
            max_attempts=how.max_attempts,
            keep_going=how.keep_going,
            params=dict(params or {}),
            engine_params=dict(engine_params or {}),
            plan_file=plan_file,
            dispatch=how.dispatch,
        )
        with RunLog.open(record.runs) as log:
            return _execute(log, request, record, how)
    given = work if isinstance(work, Work) else work_of(work, scale)
    problem = Problem.of(given.graph, cluster_of(cluster))
    if plan_file is not None:
        policy = read_plan(read_document(plan_file), problem)
    if not isinstance(policy, Plan) and how.dispatch is None:
        policy = _planned(problem, policy, params, Budget(seed, time_limit_s))
    with ExitStack() as stack:
        how = _skipping(stack, work, given, how)
        if isinstance(policy, Plan):
            return chosen.run(given, policy, problem.cluster, how)
        return run_dispatched(chosen, problem, new_dispatcher(str(how.dispatch), problem), given, how)


def _check_dispatch(dispatch: str | None, has_plan: bool) -> None:
    """Raise where a dispatcher has no such name, or would have nothing to decide."""
    if dispatch is not None:
        run_dispatch(dispatch)
        if has_plan:
            raise InvalidInput("cannot be combined with a saved plan: it places every task itself", field="dispatch")


def _planned_sources(
    work: Work | GraphLike | None, cluster: ClusterLike | None, policy: PolicyLike | Plan
) -> tuple[Work | GraphLike | None, ClusterLike | None, PolicyLike | Plan, str | None]:
    """Return work, machines and policy, and the file of a saved plan that was given as the work or as the policy."""
    if isinstance(work, (str, Path)):
        prefix = COMMANDS_PREFIX if str(work).startswith(COMMANDS_PREFIX) else ""
        path = str(work).removeprefix(prefix)
        if is_plan_file(path):
            source, recorded, planned_by = recorded_sources(Path(path))
            return prefix + source, cluster or recorded, planned_by, lasting(path)
    if isinstance(policy, (str, Path)) and is_plan_file(str(policy)):
        _, recorded, planned_by = recorded_sources(Path(policy))
        return work, cluster or recorded, planned_by, lasting(str(policy))
    return work, cluster, policy, None


def _skipping(
    stack: ExitStack, source: object, work: Work, options: RunOptions, *, is_resumed: bool = False
) -> RunOptions:
    """Return the options with the tasks of a workflow file that are up to date, and with what remembers the others."""
    if not isinstance(source, (str, Path)) or not is_workflow(str(source)):
        return options
    record = stack.enter_context(OutputRecord(work, Path(source).resolve().parent))

    def on_event(event: Event) -> None:
        record.on_event(event)
        if options.on_event is not None:
            options.on_event(event)

    fresh = {} if options.rerun or is_resumed else record.up_to_date()
    return replace(options, done={**fresh, **options.done}, on_event=on_event)


def work_of(source: GraphLike, scale: float = 1.0) -> Work:
    """Read a workflow of commands, make work with real kernels, or make timed work of a graph."""
    if isinstance(source, (str, Path)):
        if is_workflow(str(source)):
            return load_workflow(source)
        if str(source).startswith(COMMANDS_PREFIX):
            return load_wfformat_work(str(source).removeprefix(COMMANDS_PREFIX))
        if str(source).startswith(KERNELS_PREFIX):
            return kernel_work(str(source))
    graph = graph_of(source)
    if not isinstance(graph, TaskGraph):
        name = str(source) if isinstance(source, (str, Path)) else graph.name
        raise InvalidInput("holds several graphs; name one of them with FILE#MEMBER", source=name)
    return Work.timed(graph, scale)


def kernel_work(source: str) -> Work:
    """Make work with real kernels from ``kernels:NAME?key=value``."""
    name, params = split_query(source, KERNELS_PREFIX)
    make = registry.lookup("kernels", name, catalog.KERNELS)
    try:
        work: Work = make(**params)
    except TypeError as error:
        raise InvalidInput(str(error), field=KERNELS_PREFIX + name) from None
    basis = work.graph.meta.get(DURATIONS, "assumed (nominal rates of the kernels)")
    return replace(work, graph=work.graph.with_meta(**{DURATIONS: basis}))


def is_timed(workflow: str) -> bool:
    """Say whether the tasks of a workflow only pass time: those of a graph do, commands and kernels do not."""
    return not (is_workflow(workflow) or workflow.startswith((KERNELS_PREFIX, COMMANDS_PREFIX)))


def _check_numbers(scale: float, max_attempts: int) -> None:
    if not (scale >= 0 and scale < float("inf")):
        raise InvalidInput(f"{scale} must not be negative", field="scale")
    SCALE.check(scale, "scale", field="scale")
    if max_attempts < 1:
        raise InvalidInput(f"{max_attempts} must be at least 1", field="attempts")


def _word(value: object, name: str) -> str:
    if not isinstance(value, (str, Path)):
        raise InvalidInput("must be given by name or as a file: the run log keeps what is needed to resume", field=name)
    return str(value)


def _planned(problem: Problem, policy: PolicyLike, params: Mapping[str, Any] | None, budget: Budget) -> Plan:
    planner = planner_of(policy, params)
    reason = planner.supports(problem)
    if reason is not None:
        raise InvalidInput(f"cannot plan this: {reason}", field=f"policy {policy}")
    plan = planner.plan(problem, budget)
    try:
        return within_memory(problem, plan, seed=budget.seed)
    except Infeasible:
        return plan  # the engine keeps memory by the sizes that it sees, and says what does not fit


def _resumed(record: Record, options: RunOptions) -> RecordedRun:
    assert record.resume is not None
    with RunLog.open(record.runs) as log:
        info = log.run(record.resume)
        if info.kind != "run":
            raise InvalidInput(f"is a {info.kind!r}, not a run of a workflow", field=f"run {info.id}")
        request = RunRequest.from_settings(info.settings, info.id)
        return _execute(log, request, replace(record, resume=info.id), options)


def _execute(log: RunLog, request: RunRequest, record: Record, options: RunOptions) -> RecordedRun:
    """Run what is asked for with everything in the run log."""
    engine = make_engine(request.engine, **request.engine_params)
    work, cluster = work_of(request.workflow, request.scale), cluster_of(request.cluster)
    problem = Problem.of(work.graph, cluster)
    if record.resume is not None:
        plan = saved_plan(log, record.resume, problem)
    elif request.plan_file is not None:
        plan = read_plan(read_document(request.plan_file), problem)
    else:
        budget = Budget(request.seed, request.time_limit_s, on_progress=record.on_progress)
        plan = _planned(problem, request.policy, request.params, budget)
    dispatcher = _dispatcher(log, request, problem)
    if record.on_plan is not None:
        record.on_plan(problem)
    how = replace(
        options,
        discipline=request.discipline,
        max_attempts=request.max_attempts,
        keep_going=request.keep_going,
        keep="none",
    )
    with _host_watch(log, record.telemetry, dispatcher) as watch, ExitStack() as stack:
        how = _skipping(stack, request.workflow, work, how, is_resumed=record.resume is not None)
        rented = _rented_nodes(request.plan_file, problem, plan)
        if rented is not None:
            rented = rented.begin(how.done)
            how = replace(how, follow=rented.follow, ready_s=rented.ready_s if work.is_timed else ())

        def on_begin(run_id: str, num_done: int) -> None:
            if rented is not None and record.resume is not None:
                rented.skip({*how.done, *finished_before(log, run_id, work)})
            if watch is not None:
                watch.begin(run_id)
            if record.on_begin is not None:
                record.on_begin(run_id, num_done)

        session = run_recorded(
            log,
            engine,
            work,
            plan,
            cluster,
            how,
            settings=asdict(request),
            resume=record.resume,
            force=record.force,
            dispatcher=dispatcher,
            on_begin=on_begin,
            on_notice=record.on_notice,
        )
    return RecordedRun(session, problem, plan, work.time_scale, rented, request.dispatch)


def _rented_nodes(plan_file: str | None, problem: Problem, plan: Plan) -> RentedNodes | None:
    """Return what a saved plan rents, where its nodes are those of the run."""
    if plan_file is None or not os.path.isfile(plan_file):
        return None
    content = read_document(plan_file).json
    if content.get("devices") != [device.name for device in problem.cluster.devices]:
        return None
    return RentedNodes.of(content, problem, plan)


def _dispatcher(log: RunLog, request: RunRequest, problem: Problem) -> Dispatcher | None:
    """Return the dispatcher of a request, with what earlier runs of this log have learned."""
    if request.dispatch is None:
        return None
    watches_host = run_dispatch(request.dispatch).watches_host
    return new_dispatcher(request.dispatch, problem, learned_before(log, problem) if watches_host else None)


def _host_watch(log: RunLog, is_wanted: bool, dispatcher: Dispatcher | None) -> Any:
    """Return a context with what watches the host beside a run, or with None."""
    if isinstance(dispatcher, HostDispatcher):
        from stretto.reports.racks.dispatched import DispatchWatch

        return DispatchWatch(log.path, dispatcher)
    if not is_wanted:
        return nullcontext()
    from stretto.reports.racks.host import HostWatch

    return HostWatch(log.path)

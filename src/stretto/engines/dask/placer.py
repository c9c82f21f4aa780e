"""The plugin in Dask's scheduler that places and orders the graphs of one client."""

from __future__ import annotations

import time
from asyncio import Future
from collections.abc import Mapping
from functools import partial

import numpy as np
from distributed import SchedulerPlugin

from stretto import catalog, registry
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.planner import Budget, Planner
from stretto.core.problem import Problem
from stretto.engines.dask.dask_types import Key, Scheduler, TaskRecord
from stretto.engines.dask.held_tasks import GraphTasks, HeldTasks, pin
from stretto.engines.dask.settings import DaskReport, PlacementSettings
from stretto.engines.dask.survey import Binding, Surroundings, Survey, bind, from_states, survey
from stretto.engines.driver.dispatch import Dispatcher
from stretto.engines.host.dispatcher import HostDispatcher
from stretto.errors import Infeasible, InvalidInput

#: Joining and leaving workers come in bursts; they are answered once per burst.
_SETTLE_S = 0.05


class Placer(SchedulerPlugin):  # type: ignore[misc]
    """Plans each graph as it arrives, before Dask moves any of its tasks.

    A graph that cannot be planned is left to Dask as it is, and the report says why: this plugin fails no computation.
    """

    def __init__(self, name: str, settings: PlacementSettings) -> None:
        self.name = name
        self.settings = settings
        self.report = DaskReport()
        self.scheduler: Scheduler = None
        self.is_retired = False
        self._owner: dict[Key, GraphTasks] = {}
        self._gate: dict[Key, HeldTasks] = {}
        self._batches: dict[GraphTasks, None] = {}  # those with tasks that have not ended, in order of arrival
        self._woken: set[int] = set()
        self._bound: tuple[tuple[str, ...], Binding] | None = None
        self._is_replan_due = False

    # Called by Dask ----------------------------------------------------------------------------

    async def start(self, scheduler: Scheduler) -> None:
        """Compile the planner before the first graph waits for it."""
        self.scheduler = scheduler
        others = [plugin for plugin in scheduler.plugins.values() if isinstance(plugin, Placer)]
        for other in others:
            if other.settings.client_id == self.settings.client_id and not other.is_retired:
                raise InvalidInput(
                    "is already inside stretto.dask.schedule or dispatch; end that context first", field="client"
                )
        await scheduler.loop.run_in_executor(None, warm_up, self.settings)

    def update_graph(self, scheduler: Scheduler, *, client: str, tasks: list[Key], **_: object) -> None:
        """Plan a graph that just arrived; nothing of it has moved yet."""
        if client != self.settings.client_id or self.is_retired:
            return
        begin_s = time.perf_counter()
        states = [state for state in map(scheduler.tasks.__getitem__, tasks) if self._is_ours(state)]
        if states:
            self._take(GraphTasks(states))
            self.report.num_graphs += 1
            self.report.num_tasks += len(states)
        self.report.hook_s += time.perf_counter() - begin_s

    def transition(self, key: Key, start: str, finish: str, *_: object, **__: object) -> None:
        """Note the end of a task of ours, good or bad."""
        if finish not in ("memory", "erred", "forgotten"):
            return
        batch = self._owner.pop(key, None)
        if batch is None:
            return
        self.report.num_ended += finish == "memory"
        batch.ended(key)
        gate = self._gate.pop(key, None)
        if gate is not None:
            gate.ended(key, finish == "memory")
            self._wake(gate)
        batch.num_left -= 1
        if batch.num_left == 0:
            self._batches.pop(batch, None)
            self._leave_if_retired()

    def remove_worker(self, scheduler: Scheduler, worker: str, **_: object) -> None:
        self._plan_anew_soon()

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        self._plan_anew_soon()

    # Planning ----------------------------------------------------------------------------------

    def _take(self, batch: GraphTasks) -> None:
        """Plan a batch, at once or, where that takes its time, beside the scheduler while the tasks are held back."""
        try:
            seen = survey(batch.states, self._binding(), self.settings.estimates, self._around())
            if is_slow(self.settings):
                batch.hold()
                self._own(batch)
                later = self.scheduler.loop.run_in_executor(None, decide, self.settings, seen)
                self.scheduler.loop.add_future(later, partial(self._planned, batch, seen))
                return
            decider, seconds = decide(self.settings, seen)
        except Exception as error:  # whatever it was, the user's graph must run
            self._leave_to_dask(batch, error)
            return
        self.report.plan_s += seconds
        self._place(batch, seen, decider)

    def _planned(self, batch: GraphTasks, seen: Survey, done: Future[tuple[Plan | Dispatcher, float]]) -> None:
        """Take the plan that was made beside the scheduler, unless workers have come or gone in the meantime."""
        if batch not in self._batches:
            return
        del self._batches[batch]
        try:
            decider, seconds = done.result()
        except Exception as error:  # as above
            self._leave_to_dask(batch, error)
        else:
            self.report.plan_s += seconds
            self._place(batch, seen, decider)
        self._let_go([state.key for state in batch.states])

    def _leave_to_dask(self, batch: GraphTasks, error: Exception) -> None:
        batch.restore()
        self._disown(batch)
        self.report.errors.append(str(error) or type(error).__name__)

    def _place(self, batch: GraphTasks, seen: Survey, decider: Plan | Dispatcher) -> None:
        """Put the tasks of a batch where they belong, or behind a gate."""
        gate = None
        if self.settings.is_held_back:
            batch.hold()
            gate = HeldTasks(seen, decider, self.settings.discipline, _num_queued(seen, decider), self._let_go)
            self._wake(gate)
        else:
            assert isinstance(decider, Plan)
            later = pin(seen, decider)
            if later:
                self.scheduler.loop.add_callback(self._send_later, later)
        self._own(batch, gate)

    def _own(self, batch: GraphTasks, gate: HeldTasks | None = None) -> None:
        self._batches[batch] = None
        for state in batch.states:
            self._owner[state.key] = batch
            if gate is not None:
                self._gate[state.key] = gate

    def _disown(self, batch: GraphTasks) -> None:
        for state in batch.states:
            self._owner.pop(state.key, None)
            gate = self._gate.pop(state.key, None)
            if gate is not None:
                gate.is_closed = True  # its other tasks are with their workers already

    def _around(self) -> Surroundings:
        """Return the user's restrictions, and what each worker has still to do, as Dask reckons."""
        workers = self.scheduler.workers.values()
        busy_s = {worker.address: worker.occupancy / worker.nthreads for worker in workers if worker.processing}
        return Surroundings(self._allowed, busy_s)

    def _allowed(self, state: TaskRecord) -> set[str] | None:
        """Return the workers that the user's restrictions leave for a task; None means all."""
        if not (state.worker_restrictions or state.host_restrictions or state.resource_restrictions):
            return None
        found = {worker.address for worker in self.scheduler.valid_workers(state) or ()}
        return found or (None if state.loose_restrictions else found)

    def _is_ours(self, state: TaskRecord) -> bool:
        """Say whether a task is ours to place: neither an actor, nor under way, nor restricted to who is not there."""
        if state.state != "released" or state.actor:
            return False
        if self.settings.fixed is not None and str(state.key) not in self.settings.fixed:
            return False
        return self._allowed(state) != set()

    def _binding(self) -> Binding:
        states = self.scheduler.workers
        signature = tuple(states)
        if self._bound is None or self._bound[0] != signature:
            found = bind(from_states(states.values()), self.settings.cluster, float(self.scheduler.bandwidth))
            self._bound = (signature, found)
        return self._bound[1]

    def _plan_anew_soon(self) -> None:
        if self._owner and not self._is_replan_due:
            self._is_replan_due = True
            self.scheduler.loop.call_later(_SETTLE_S, self._plan_anew)

    def _plan_anew(self) -> None:
        """Plan what has not been sent to a worker yet on the workers that are there now."""
        self._is_replan_due = False
        freed: list[Key] = []
        for old in list(self._batches):
            batch = old.split_unsent(self._owner)
            if old.num_left == 0:
                del self._batches[old]
            if not batch.states:
                continue
            batch.restore()
            self._disown(batch)
            if not self.scheduler.workers:
                self._own(batch)  # until a worker joins
                continue
            self._take(batch)
            freed += [state.key for state in batch.states]
        self.report.num_replans += bool(freed)
        self._let_go(freed)

    # Letting go --------------------------------------------------------------------------------

    def _wake(self, gate: HeldTasks) -> None:
        """Step a gate once after the present transitions; they must not be nested."""
        if id(gate) not in self._woken:
            self._woken.add(id(gate))
            self.scheduler.loop.add_callback(self._step, gate)

    def _step(self, gate: HeldTasks) -> None:
        self._woken.discard(id(gate))
        gate.step()

    def _send_later(self, later: list[tuple[TaskRecord, set[str]]]) -> None:
        for state, place in later:
            state.worker_restrictions = place
        self._let_go([state.key for state, _ in reversed(later)])  # Dask takes the last one first

    def _let_go(self, keys: list[Key]) -> None:
        """Have Dask look again at tasks that found no worker; others find theirs when they are ready."""
        tasks = self.scheduler.tasks
        ready = {key: "processing" for key in keys if key in tasks and tasks[key].state == "no-worker"}
        if ready:
            self.scheduler.transitions(ready, f"stretto-{time.time()}")

    # The end -----------------------------------------------------------------------------------

    def retire(self) -> DaskReport:
        """Take no more graphs; leave the scheduler when the present ones have ended."""
        self.is_retired = True
        self._leave_if_retired()
        return self.report

    def _leave_if_retired(self) -> None:
        if self.is_retired and not self._owner and self.scheduler.plugins.get(self.name) is self:
            self.scheduler.remove_plugin(name=self.name)
            if isinstance(self.settings.policy, HostDispatcher):
                self.settings.policy.close()


def _num_queued(seen: Survey, decider: Plan | Dispatcher) -> int:
    """Return how many tasks may wait behind the one that runs: with several threads, a second one would run at once."""
    is_single = all(worker.num_threads == 1 for worker in seen.binding.workers)
    return 1 if is_single or not isinstance(decider, Plan) else 0


#: Planners from elsewhere search, and may take seconds.
_QUICK = "stretto.graphs.planners."


def is_slow(settings: PlacementSettings) -> bool:
    """Say whether deciding may take longer than Dask's scheduler should stand still."""
    if settings.fixed is not None or not isinstance(settings.policy, str):
        return False
    return not catalog.PLANNERS[settings.policy].startswith(_QUICK)


def warm_up(settings: PlacementSettings) -> None:
    """Plan a tiny problem, so that compiling does not delay the first graph."""
    if settings.fixed is None and isinstance(settings.policy, str):
        tiny = TaskGraph.from_edges([1.0, 1.0], [0], [1], 1.0)
        _planner(settings).plan(Problem.of(tiny, Cluster.parse("cpu:2")), Budget(time_limit_s=0.01))


def decide(settings: PlacementSettings, seen: Survey) -> tuple[Plan | Dispatcher, float]:
    """Return who or what says where the tasks go, and the seconds that a planner took."""
    if settings.fixed is not None:
        return _fixed_plan(seen, settings.fixed), 0.0
    if not isinstance(settings.policy, str):
        return settings.policy, 0.0
    begin_s = time.perf_counter()
    planner = _planner(settings)
    reason = planner.supports(seen.problem)
    if reason is not None:
        raise Infeasible(f"policy {settings.policy!r} cannot plan this graph: {reason}")
    plan = planner.plan(seen.problem, settings.budget)
    return plan, time.perf_counter() - begin_s


def _planner(settings: PlacementSettings) -> Planner:
    found: Planner = registry.construct("policy", str(settings.policy), catalog.PLANNERS, settings.params)
    return found


def _fixed_plan(seen: Survey, fixed: Mapping[str, tuple[str, int]]) -> Plan:
    """Return a plan made before as one of this problem, or raise where it names a worker that is not there."""
    devices = {device.name: number for number, device in enumerate(seen.binding.cluster.devices)}
    entries = [fixed[str(state.key)] for state in seen.states]
    num_inputs = seen.problem.num_tasks - len(entries)
    assignment = np.zeros(seen.problem.num_tasks, dtype=np.int32)
    for task, (device, _) in enumerate(entries):
        if device not in devices:
            raise InvalidInput(f"assigns tasks to {device!r}, but no worker has this name", field="plan")
        assignment[task] = devices[device]
    for task in range(len(entries), len(entries) + num_inputs):
        assignment[task] = int(np.argmin(seen.problem.device_duration[task]))
    position = np.array([at for _, at in entries] + [-1] * num_inputs)
    return Plan(assignment, np.argsort(position, kind="stable").astype(np.int32))

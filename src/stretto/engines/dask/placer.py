"""The plugin in Dask's scheduler that places and orders the graphs of one client."""

from __future__ import annotations

import time
from asyncio import Future
from functools import partial
from typing import Any

from distributed import SchedulerPlugin

from stretto.core.plan import Plan
from stretto.engines.dask.batch import Batch, pin
from stretto.engines.dask.decide import decide, is_slow, warm_up
from stretto.engines.dask.gate import Gate
from stretto.engines.dask.settings import Report, Settings
from stretto.engines.dask.survey import Surroundings, Survey, survey
from stretto.engines.dask.workers import Binding, bind, from_states
from stretto.engines.online import Dispatcher
from stretto.errors import InvalidInput

#: Joining and leaving workers come in bursts; they are answered once per burst.
_SETTLE_S = 0.05


class Placer(SchedulerPlugin):  # type: ignore[misc]
    """Plans each graph as it arrives, before Dask moves any of its tasks.

    A graph that cannot be planned is left to Dask as it is, and the report says why: this plugin fails no computation.
    """

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self.settings = settings
        self.report = Report()
        self.scheduler: Any = None
        self.is_retired = False
        self._owner: dict[Any, Batch] = {}
        self._gate: dict[Any, Gate] = {}
        self._batches: dict[Batch, None] = {}  # those with tasks that have not ended, in order of arrival
        self._woken: set[int] = set()
        self._bound: tuple[tuple[Any, ...], Binding] | None = None
        self._is_replan_due = False

    # Called by Dask ----------------------------------------------------------------------------

    async def start(self, scheduler: Any) -> None:
        """Compile the planner before the first graph waits for it."""
        self.scheduler = scheduler
        others = [plugin for plugin in scheduler.plugins.values() if isinstance(plugin, Placer)]
        for other in others:
            if other.settings.client_id == self.settings.client_id and not other.is_retired:
                raise InvalidInput("this client's graphs are already under a schedule", field="client")
        await scheduler.loop.run_in_executor(None, warm_up, self.settings)

    def update_graph(self, scheduler: Any, *, client: str, tasks: list[Any], **_: Any) -> None:
        """Plan a graph that just arrived; nothing of it has moved yet."""
        if client != self.settings.client_id or self.is_retired:
            return
        begin_s = time.perf_counter()
        states = [state for state in map(scheduler.tasks.__getitem__, tasks) if self._is_ours(state)]
        if states:
            self._take(Batch(states))
            self.report.num_graphs += 1
            self.report.num_tasks += len(states)
        self.report.hook_s += time.perf_counter() - begin_s

    def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:
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

    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        self._plan_anew_soon()

    def add_worker(self, scheduler: Any, worker: str) -> None:
        self._plan_anew_soon()

    # Planning ----------------------------------------------------------------------------------

    def _take(self, batch: Batch) -> None:
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

    def _planned(self, batch: Batch, seen: Survey, done: Future[tuple[Plan | Dispatcher, float]]) -> None:
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

    def _leave_to_dask(self, batch: Batch, error: Exception) -> None:
        batch.restore()
        self._disown(batch)
        self.report.errors.append(str(error) or type(error).__name__)

    def _place(self, batch: Batch, seen: Survey, decider: Plan | Dispatcher) -> None:
        """Put the tasks of a batch where they belong, or behind a gate."""
        gate = None
        if self.settings.is_held_back:
            batch.hold()
            gate = Gate(seen, decider, self.settings.discipline, _num_queued(seen, decider), self._let_go)
            self._wake(gate)
        else:
            assert isinstance(decider, Plan)
            later = pin(seen, decider)
            if later:
                self.scheduler.loop.add_callback(self._send_later, later)
        self._own(batch, gate)

    def _own(self, batch: Batch, gate: Gate | None = None) -> None:
        self._batches[batch] = None
        for state in batch.states:
            self._owner[state.key] = batch
            if gate is not None:
                self._gate[state.key] = gate

    def _disown(self, batch: Batch) -> None:
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

    def _allowed(self, state: Any) -> set[str] | None:
        """Return the workers that the user's restrictions leave for a task; None means all."""
        if not (state.worker_restrictions or state.host_restrictions or state.resource_restrictions):
            return None
        found = {worker.address for worker in self.scheduler.valid_workers(state) or ()}
        return found or (None if state.loose_restrictions else found)

    def _is_ours(self, state: Any) -> bool:
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
        freed: list[Any] = []
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

    def _wake(self, gate: Gate) -> None:
        """Step a gate once after the present transitions; they must not be nested."""
        if id(gate) not in self._woken:
            self._woken.add(id(gate))
            self.scheduler.loop.add_callback(self._step, gate)

    def _step(self, gate: Gate) -> None:
        self._woken.discard(id(gate))
        gate.step()

    def _send_later(self, later: list[tuple[Any, set[str]]]) -> None:
        for state, place in later:
            state.worker_restrictions = place
        self._let_go([state.key for state, _ in reversed(later)])  # Dask takes the last one first

    def _let_go(self, keys: list[Any]) -> None:
        """Have Dask look again at tasks that found no worker; others find theirs when they are ready."""
        tasks = self.scheduler.tasks
        ready = {key: "processing" for key in keys if key in tasks and tasks[key].state == "no-worker"}
        if ready:
            self.scheduler.transitions(ready, f"stretto-{time.time()}")

    # The end -----------------------------------------------------------------------------------

    def retire(self) -> Report:
        """Take no more graphs; leave the scheduler when the present ones have ended."""
        self.is_retired = True
        self._leave_if_retired()
        return self.report

    def _leave_if_retired(self) -> None:
        if self.is_retired and not self._owner and self.scheduler.plugins.get(self.name) is self:
            self.scheduler.remove_plugin(name=self.name)


def _num_queued(seen: Survey, decider: Plan | Dispatcher) -> int:
    """Return how many tasks may wait behind the one that runs: with several threads, a second one would run at once."""
    is_single = all(worker.num_threads == 1 for worker in seen.binding.workers)
    return 1 if is_single or not isinstance(decider, Plan) else 0

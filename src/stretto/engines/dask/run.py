"""One run on a Dask cluster: the driver's orders go out as futures, the workers' reports come back as events."""

from __future__ import annotations

import math
import queue
import time
import uuid
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from stretto.core.problem import Problem
from stretto.engines.dask.dask_types import Client, DaskProcess, Future, Scheduler
from stretto.engines.dask.engine import WorkerSupply
from stretto.engines.dask.remote import run_remote
from stretto.engines.dask.survey import bind, check_names, from_client
from stretto.engines.driver.events import (
    Cancel,
    DeviceJoined,
    DeviceLost,
    Event,
    Instruction,
    Scale,
    Start,
    TaskFailed,
    TaskFinished,
    TaskStarted,
    Tick,
)
from stretto.engines.recorder import Recorder
from stretto.engines.work import Command, OpenReads, Work
from stretto.errors import EngineFailure

#: How long to wait for a message before checking deadlines and lost connections.
_PATIENCE_S = 0.2
#: After so long without a message, tasks that wait in Dask are checked.
_QUIET_S = 5.0
#: States, in Dask's scheduler, of a finished task whose output is gone.
_LOST = frozenset({None, "released", "waiting", "no-worker", "forgotten"})
Message = dict[str, Any]  # an operation, and what it is about


class DaskRun:
    """Executes the driver's instructions on Dask.

    An attempt is one key in Dask, pinned to one worker. A worker is sent its next task when the one before has begun,
    so that the order is exact though data of later tasks may arrive first; that of a node gets all that fit at once.

    Parameters
    ----------
    sends_needs
        Whether workers have the capacities of their nodes as resources of Dask, so that tasks can ask for theirs.
    """

    def __init__(
        self, client: Client, recorder: Recorder, supply: WorkerSupply | None = None, *, sends_needs: bool = False
    ) -> None:
        self.client, self.recorder, self.supply = client, recorder, supply
        self.work, self.driver, self.options = recorder.work, recorder.driver, recorder.options
        problem = self.driver.problem
        self.attempts = Attempts(self.work, problem.num_devices)
        self.is_node = [device.packs for device in problem.cluster.devices]
        self.packing = problem.packing if sends_needs else None
        self.kinds = [device.kind for device in problem.cluster.devices]
        self.worker_name: list[str]
        self.address: list[str | None]
        self.has_one_thread: list[bool]
        if supply is None:
            self._bind(problem)
        else:
            present = {worker.name: worker.address for worker in from_client(client)}
            self.worker_name = [device.name for device in problem.cluster.devices]
            self.address = [present.get(name) for name in self.worker_name]
            self.has_one_thread = [True] * problem.num_devices
        self.topic = f"stretto-run-{uuid.uuid4().hex[:12]}"
        self.inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.begin = time.time()  # of the workers' reports; what we decide by goes by a clock that cannot jump
        self.began_s = time.monotonic()
        self.num_sent = 0
        self.heard_s = 0.0  # when the last message came
        self.is_restarting: set[int] = set()  # devices whose workers we ended ourselves
        self.asked_for: set[int] = set()  # devices whose workers are to come
        self.given_back: set[int] = set()  # devices whose workers bring their data elsewhere and go

    def _bind(self, problem: Problem) -> None:
        """Find the worker of each device; all of them must be there."""
        workers = from_client(self.client)
        check_names(workers, problem.cluster)
        binding = bind(workers, problem.cluster)
        self.worker_name = [workers[place].name for place in binding.worker_of]
        self.address = [binding.address(device) for device in range(problem.num_devices)]
        self.has_one_thread = [workers[place].num_threads == 1 for place in binding.worker_of]

    def run(self) -> bool:
        """Run to the end; return whether the user interrupted."""
        self.client.subscribe_topic(self.topic, lambda event: self.inbox.put(event[1]))
        self.client.subscribe_topic("all", lambda event: self.inbox.put(_about_workers(event[1])))
        try:
            self.recorder.drive(self._next_events, self._execute)
            return False
        except KeyboardInterrupt:
            self._execute(self.driver.stop())
            return True
        finally:
            self.client.unsubscribe_topic(self.topic)
            self.client.unsubscribe_topic("all")
            self.attempts.close()

    # Orders ------------------------------------------------------------------------------------

    def _execute(self, orders: Iterable[Instruction]) -> None:
        for order in orders:
            if isinstance(order, Start):
                self.attempts.outbox[order.device].append(order)
            elif isinstance(order, Cancel):
                self.attempts.drop(order.task, order.attempt)
            elif isinstance(order, Scale) and self.supply is not None:
                self._scale(order, self.supply)
        for device, waiting in enumerate(self.attempts.outbox):
            while waiting and self._has_room(device):
                self._send(waiting.popleft())

    def _scale(self, order: Scale, supply: WorkerSupply) -> None:
        for device, (name, address) in enumerate(zip(self.worker_name, self.address, strict=True)):
            if self.kinds[device] != order.kind:
                continue
            if device in order.devices and address is None and device not in self.asked_for:
                self.asked_for.add(device)
                supply.grow(name)
            elif device not in order.devices and address is not None and device not in self.given_back:
                self.given_back.add(device)
                supply.shrink(name, address)

    def _has_room(self, device: int) -> bool:
        sent = self.attempts.sent[device]
        if self.address[device] is None or not sent or self.is_node[device]:  # the driver sends a node what fits
            return self.address[device] is not None
        last = (sent[-1].task, sent[-1].attempt)
        return len(sent) == 1 and self.has_one_thread[device] and last in self.attempts.begun

    def _send(self, order: Start) -> None:
        task, attempt, output, done = order.task, order.attempt, self.attempts.output, self.options.done
        self.attempts.sent[order.device].append(order)
        needed = self.work.inputs(task)
        gone = tuple(parent for parent in needed if parent not in output and parent not in done)
        if gone:
            self.inbox.put({"op": "inputs-lost", "task": task, "attempt": attempt, "lost": gone})
            return
        action = self.work.actions[task]
        seconds = self.recorder.timed_s(task, order.device)
        inputs = [output[parent] if parent in output else done[parent] for parent in needed]
        self.num_sent += 1
        future = self.client.submit(
            *(run_remote, self.topic, task, attempt, action, seconds, self.options.digests, *inputs),
            key=f"{self.topic}-{task}-{attempt}",
            workers=[self.address[order.device]],
            allow_other_workers=False,
            resources=self.packing.needs_of(task) if self.packing is not None and self.is_node[order.device] else None,
            priority=-self.num_sent,  # first sent, first run
            pure=False,
        )
        self.attempts.future[task, attempt] = future
        future.add_done_callback(lambda done: self._watch(done, task, attempt))

    def _watch(self, future: Future, task: int, attempt: int) -> None:
        """Tell of ends that the task itself could not report, such as arguments that Dask cannot send."""
        if future.status == "error":
            self.inbox.put({"op": "broken", "task": task, "attempt": attempt, "reason": repr(future.exception())})

    # News --------------------------------------------------------------------------------------

    def _next_events(self) -> Iterator[Event]:
        """Wait for a message or for time to pass, and yield what it means."""
        wait_s = min(_PATIENCE_S, max(0.0, self.driver.next_release_s - self._now()))
        try:
            message = self.inbox.get(timeout=wait_s)
        except queue.Empty:
            yield from self._late()
            yield from self._missed()
            yield from self._lost_inputs()
            yield Tick(self._now())
            return
        self.heard_s = self._now()
        if message["op"] == "left":
            yield from self._left(message["worker"])
        elif message["op"] == "joined":
            yield from self._joined()
        elif message["op"] != "other":
            yield from self._report_events(message)

    def _now(self) -> float:
        return time.monotonic() - self.began_s

    def _report_events(self, message: Message) -> Iterator[Event]:
        """Yield what a report about an attempt means; reports about attempts that are over mean nothing."""
        task, attempt, what = message["task"], message["attempt"], message["op"]
        if what == "started":
            order = self.attempts.find(task, attempt)
            if order is not None:
                self.attempts.begun[task, attempt] = self._now()
                yield TaskStarted(task, order.device, attempt, message["start"] - self.begin)
            return
        order, future = self.attempts.end(task, attempt)
        if order is None:
            return
        about = (task, order.device, attempt)
        if what == "finished":
            yield self._finished(order, future, message)
        elif what == "failed":
            yield TaskFailed(*about, message["end"] - self.begin, message["blame"], message["reason"])
        elif what == "inputs-lost":
            yield TaskFailed(*about, self._now(), "input", "its inputs are lost", lost=message["lost"])
        else:
            yield TaskFailed(*about, self._now(), "task", message["reason"])

    def _finished(self, order: Start, future: Future, message: Message) -> Event:
        task = order.task
        self.attempts.output[task] = future
        if not self._bring_home(task, order.device, future):
            return TaskFailed(task, order.device, order.attempt, self._now(), "device", "its output was lost")
        self.attempts.has_read(task)
        start_s, end_s = message["start"] - self.begin, message["end"] - self.begin
        return TaskFinished(task, order.device, order.attempt, start_s, end_s, message["digest"])

    def _bring_home(self, task: int, device: int, future: Future) -> bool:
        """Fetch an output that somebody here wants; False when it was lost on the way."""

        def fetch() -> object:
            while True:
                try:
                    return future.result(timeout=1.0)
                except TimeoutError:
                    if self.address[device] not in {worker.address for worker in from_client(self.client)}:
                        raise

        try:
            self.recorder.deliver(task, fetch)
        except TimeoutError:
            return False
        return True

    # Losses ------------------------------------------------------------------------------------

    def _left(self, worker: str) -> Iterator[Event]:
        for device, address in enumerate(self.address):
            if address == worker:
                yield from self._lose(device)

    def _joined(self) -> Iterator[Event]:
        names = {worker.name: worker.address for worker in from_client(self.client)}
        for device, name in enumerate(self.worker_name):
            if self.address[device] is None and name in names:
                self.address[device] = names[name]
                self.asked_for.discard(device)
                yield DeviceJoined(device, self._now())

    def _lose(self, device: int) -> Iterator[Event]:
        """A worker is gone, with what it ran, what waited there, and the outputs it held."""
        self.address[device] = None
        if device in self.given_back:
            yield from self._leave(device)
            return
        lost = self.attempts.lose(task for task, where in enumerate(self.driver.device) if where == device)
        for place, order in enumerate(list(self.attempts.sent[device])):
            self.attempts.drop(order.task, order.attempt)
            # It ran, or was about to: whoever ends workers quickly must not do so for ever.
            if place == 0 and device not in self.is_restarting:
                yield TaskFailed(order.task, device, order.attempt, self._now(), "worker", "its worker died")
        self.is_restarting.discard(device)
        self.attempts.outbox[device].clear()
        # Dask would wait for inputs that only we can make again: these attempts are over as well.
        for order, read in self.attempts.readers_of(lost):
            self.attempts.drop(order.task, order.attempt)
            reason = "the worker that held its inputs died"
            yield TaskFailed(order.task, order.device, order.attempt, self._now(), "input", reason, lost=read)
        yield DeviceLost(device, self._now(), f"the worker {self.worker_name[device]!r} left")

    def _leave(self, device: int) -> Iterator[Event]:
        """A worker went because we said so, and Dask has its data elsewhere."""
        self.given_back.discard(device)
        for order in [*self.attempts.sent[device], *self.attempts.outbox[device]]:  # sent while it was going
            self.attempts.drop(order.task, order.attempt)
        yield DeviceLost(device, self._now(), "released", is_data_safe=True)
        if self.supply is not None and self.driver.pool is not None and device in self.driver.pool.wanted:
            self.asked_for.add(device)  # meanwhile there is work for it again
            self.supply.grow(self.worker_name[device])

    def _missed(self) -> Iterator[Event]:
        """Catch up with workers that came or went without our hearing of it."""
        if self.client.status != "running":
            raise EngineFailure("lost the connection to the Dask scheduler")
        present = {worker.address for worker in from_client(self.client)}
        for device, address in enumerate(self.address):
            if address is not None and address not in present:
                yield from self._lose(device)
        if None in self.address:
            yield from self._joined()

    def _lost_inputs(self) -> Iterator[Event]:
        """Give up attempts that wait in Dask for data it has lost: it knows no worker that may make it again."""
        waiting = [order for sent in self.attempts.sent for order in sent]
        waiting = [order for order in waiting if (order.task, order.attempt) not in self.attempts.begun]
        if not waiting or self._now() - self.heard_s < _QUIET_S:
            return
        self.heard_s = self._now()
        known = self.client.run_on_scheduler(task_states, prefix=self.topic)
        for order in waiting:
            outputs = {task: self.attempts.output.get(task) for task in self.work.inputs(order.task)}
            lost = tuple(t for t, future in outputs.items() if future is not None and known.get(future.key) in _LOST)
            if lost:
                self.attempts.lose(lost)
                self.attempts.drop(order.task, order.attempt)
                reason = "Dask has lost its inputs"
                yield TaskFailed(order.task, order.device, order.attempt, self._now(), "input", reason, lost=lost)

    def _late(self) -> Iterator[Event]:
        """Give up attempts that take too long; a worker's thread cannot be stopped, so the worker is restarted."""
        for (task, attempt), begun_s in list(self.attempts.begun.items()):
            action = self.work.actions[task]
            limit_s = action.timeout_s or math.inf
            order = self.attempts.find(task, attempt)
            # Commands are stopped where they run.
            if order is None or isinstance(action, Command) or self._now() - begun_s < limit_s:
                continue
            self.attempts.drop(task, attempt)
            yield TaskFailed(task, order.device, attempt, self._now(), "timeout", f"took longer than {limit_s:g} s")
            address = self.address[order.device]
            if address is not None:
                self.is_restarting.add(order.device)
                self.client.restart_workers([address], raise_for_error=False)


def task_states(dask_scheduler: Scheduler, prefix: str) -> dict[str, str]:
    """Return the states of the tasks of a run; runs in Dask's scheduler."""
    return {key: state.state for key, state in dask_scheduler.tasks.items() if str(key).startswith(prefix)}


def _about_workers(event: DaskProcess) -> Message:
    """Return an entry of Dask's own log as a message, if it is about a worker that came or went."""
    action = event.get("action") if isinstance(event, dict) else None
    if action == "remove-worker":
        return {"op": "left", "worker": event["worker"]}
    return {"op": "joined"} if action == "add-worker" else {"op": "other"}


Attempt = tuple[int, int]  # a task and the number of the attempt


class Attempts:
    """Attempts from their order to their end.

    Attributes
    ----------
    outbox, sent
        By device: orders that wait here, and those that its worker has, in order.
    begun
        When the attempts that run have begun.
    future
        What Dask calls the attempts under way.
    output
        By task: the future of its output, as long as somebody may still read it.
    """

    def __init__(self, work: Work, num_devices: int) -> None:
        self.work = work
        self.outbox: list[deque[Start]] = [deque() for _ in range(num_devices)]
        self.sent: list[list[Start]] = [[] for _ in range(num_devices)]
        self.begun: dict[Attempt, float] = {}
        self.future: dict[Attempt, Future] = {}
        self.output: dict[int, Future] = {}
        self._open_reads = OpenReads(work)

    def find(self, task: int, attempt: int) -> Start | None:
        """Return the order of an attempt that its worker has, or None."""
        orders = (order for sent in self.sent for order in sent)
        return next((order for order in orders if (order.task, order.attempt) == (task, attempt)), None)

    def end(self, task: int, attempt: int) -> tuple[Start | None, Future]:
        """Remove an attempt; return its instruction and its future, where they exist."""
        order = self.find(task, attempt)
        self.begun.pop((task, attempt), None)
        if order is not None:
            self.sent[order.device].remove(order)
        return order, self.future.pop((task, attempt), None)

    def drop(self, task: int, attempt: int) -> None:
        """Forget an attempt, sent or not."""
        for waiting in self.outbox:
            for order in [order for order in waiting if (order.task, order.attempt) == (task, attempt)]:
                waiting.remove(order)
        _, future = self.end(task, attempt)
        if future is not None:
            future.release()  # nobody else wants it: Dask takes it back

    def lose(self, tasks: Iterable[int]) -> set[int]:
        """Strike out outputs that are gone; return those that were still wanted."""
        return {task for task in tasks if self.output.pop(task, None) is not None}

    def readers_of(self, lost: set[int]) -> list[tuple[Start, tuple[int, ...]]]:
        """Return the attempts under way that read any of these outputs, and which."""
        found = []
        for order in [order for sent in self.sent for order in sent]:
            read = tuple(parent for parent in self.work.inputs(order.task) if parent in lost)
            if read:
                found.append((order, read))
        return found

    def has_read(self, task: int) -> None:
        """Let Dask forget outputs that all their readers have had; should one run again, they are made again."""
        for unread in self._open_reads.finish(task):
            if unread != task:
                self.output.pop(unread, None)

    def close(self) -> None:
        """Release all futures."""
        for future in (*self.future.values(), *self.output.values()):
            future.release()

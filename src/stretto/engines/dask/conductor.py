"""One run on a Dask cluster: the driver's orders go out as futures, the workers' reports come back as events."""

from __future__ import annotations

import math
import queue
import time
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from stretto.core.problem import Problem
from stretto.engines.dask.crew import Crew
from stretto.engines.dask.ledger import Ledger
from stretto.engines.dask.remote import run_remote
from stretto.engines.dask.workers import bind, check_names, from_client
from stretto.engines.driver import Driver
from stretto.engines.engine import RunOptions
from stretto.engines.events import (
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
from stretto.engines.work import Command, Timed, Work
from stretto.errors import EngineFailure

#: How long to wait for news before looking after deadlines and lost connections.
_PATIENCE_S = 0.2
#: After so long without any news, what waits in Dask is looked at.
_STARVED_S = 5.0
#: States, in Dask's scheduler, of a finished task whose output is gone.
_LOST = frozenset({None, "released", "waiting", "no-worker", "forgotten"})
Message = dict[str, Any]


class Conductor:
    """Talks to Dask for the driver.

    An attempt is one key in Dask, pinned to one worker. A worker is sent its next task when the one before has begun,
    so that the order is exact though data of later tasks may arrive first.
    """

    def __init__(
        self,
        client: Any,
        problem: Problem,
        work: Work,
        driver: Driver,
        recorder: Recorder,
        options: RunOptions,
        crew: Crew | None = None,
    ) -> None:
        self.client, self.work, self.driver, self.crew = client, work, driver, crew
        self.recorder, self.options = recorder, options
        self.ledger = Ledger(work, problem.num_devices)
        self.kinds = [device.kind for device in problem.cluster.devices]
        self.worker_name: list[str]
        self.address: list[str | None]
        self.has_one_thread: list[bool]
        if crew is None:
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

    def conduct(self) -> bool:
        """Run to the end; return whether the user interrupted."""
        self.client.subscribe_topic(self.topic, lambda event: self.inbox.put(event[1]))
        self.client.subscribe_topic("all", lambda event: self.inbox.put(_about_workers(event[1])))
        try:
            self._obey(self.driver.begin())
            while not self.driver.is_over:
                events = list(self._news())
                for event in events:
                    self.recorder.note(event)
                self._obey(self.driver.handle(events))
            return False
        except KeyboardInterrupt:
            self._obey(self.driver.stop())
            return True
        finally:
            self.client.unsubscribe_topic(self.topic)
            self.client.unsubscribe_topic("all")
            self.ledger.close()

    # Orders ------------------------------------------------------------------------------------

    def _obey(self, orders: Iterable[Instruction]) -> None:
        for order in orders:
            if isinstance(order, Start):
                self.ledger.outbox[order.device].append(order)
            elif isinstance(order, Cancel):
                self.ledger.drop(order.task, order.attempt)
            elif isinstance(order, Scale) and self.crew is not None:
                self._scale(order, self.crew)
        for device, waiting in enumerate(self.ledger.outbox):
            while waiting and self._has_room(device):
                self._send(waiting.popleft())

    def _scale(self, order: Scale, crew: Crew) -> None:
        for device, (name, address) in enumerate(zip(self.worker_name, self.address, strict=True)):
            if self.kinds[device] != order.kind:
                continue
            if device in order.devices and address is None and device not in self.asked_for:
                self.asked_for.add(device)
                crew.grow(name)
            elif device not in order.devices and address is not None and device not in self.given_back:
                self.given_back.add(device)
                crew.shrink(name, address)

    def _has_room(self, device: int) -> bool:
        sent = self.ledger.sent[device]
        if self.address[device] is None or not sent:
            return self.address[device] is not None
        last = (sent[-1].task, sent[-1].attempt)
        return len(sent) == 1 and self.has_one_thread[device] and last in self.ledger.begun

    def _send(self, order: Start) -> None:
        task, attempt, output, done = order.task, order.attempt, self.ledger.output, self.options.done
        self.ledger.sent[order.device].append(order)
        needed = self.work.inputs(task)
        gone = tuple(parent for parent in needed if parent not in output and parent not in done)
        if gone:
            self.inbox.put({"op": "bereft", "task": task, "attempt": attempt, "lost": gone})
            return
        action = self.work.actions[task]
        seconds = 0.0
        if isinstance(action, Timed):
            seconds = action.scale * self.driver.tables.seconds(task, order.device)
        inputs = [output[parent] if parent in output else done[parent] for parent in needed]
        self.num_sent += 1
        future = self.client.submit(
            *(run_remote, self.topic, task, attempt, action, seconds, self.options.digests, *inputs),
            key=f"{self.topic}-{task}-{attempt}",
            workers=[self.address[order.device]],
            allow_other_workers=False,
            priority=-self.num_sent,  # first sent, first run
            pure=False,
        )
        self.ledger.future[task, attempt] = future
        future.add_done_callback(lambda done: self._watch(done, task, attempt))

    def _watch(self, future: Any, task: int, attempt: int) -> None:
        """Tell of ends that the task itself could not report, such as arguments that Dask cannot send."""
        if future.status == "error":
            self.inbox.put({"op": "broken", "task": task, "attempt": attempt, "reason": repr(future.exception())})

    # News --------------------------------------------------------------------------------------

    def _news(self) -> Iterator[Event]:
        """Wait for a message or for time to pass, and yield what it means."""
        wait_s = min(_PATIENCE_S, max(0.0, self.driver.next_release_s - self._now()))
        try:
            message = self.inbox.get(timeout=wait_s)
        except queue.Empty:
            yield from self._late()
            yield from self._missed()
            yield from self._starving()
            yield Tick(self._now())
            return
        self.heard_s = self._now()
        if message["op"] == "left":
            yield from self._left(message["worker"])
        elif message["op"] == "joined":
            yield from self._joined()
        elif message["op"] != "other":
            yield from self._told(message)

    def _now(self) -> float:
        return time.monotonic() - self.began_s

    def _told(self, message: Message) -> Iterator[Event]:
        """Yield what a report about an attempt means; reports about attempts that are over mean nothing."""
        task, attempt, what = message["task"], message["attempt"], message["op"]
        if what == "started":
            order = self.ledger.find(task, attempt)
            if order is not None:
                self.ledger.begun[task, attempt] = self._now()
                yield TaskStarted(task, order.device, attempt, message["start"] - self.begin)
            return
        order, future = self.ledger.end(task, attempt)
        if order is None:
            return
        about = (task, order.device, attempt)
        if what == "finished":
            yield self._finished(order, future, message)
        elif what == "failed":
            yield TaskFailed(*about, message["end"] - self.begin, message["blame"], message["reason"])
        elif what == "bereft":
            yield TaskFailed(*about, self._now(), "input", "what it reads is gone", lost=message["lost"])
        else:
            yield TaskFailed(*about, self._now(), "task", message["reason"])

    def _finished(self, order: Start, future: Any, message: Message) -> Event:
        task = order.task
        self.ledger.output[task] = future
        if not self._bring_home(task, order.device, future):
            return TaskFailed(task, order.device, order.attempt, self._now(), "device", "its output was lost")
        self.ledger.has_read(task)
        start_s, end_s = message["start"] - self.begin, message["end"] - self.begin
        return TaskFinished(task, order.device, order.attempt, start_s, end_s, message["digest"])

    def _bring_home(self, task: int, device: int, future: Any) -> bool:
        """Fetch an output that somebody here wants; False when it was lost on the way."""
        wants = self.recorder.wants_output(task)
        if not wants and self.options.on_output is None:
            return True
        while True:
            try:
                output = future.result(timeout=1.0)
                break
            except TimeoutError:
                if self.address[device] not in {worker.address for worker in from_client(self.client)}:
                    return False
        if wants:
            self.recorder.outputs[task] = output
        if self.options.on_output is not None:
            self.options.on_output(task, output)
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
        lost = self.ledger.lose(task for task, where in enumerate(self.driver.device) if where == device)
        for place, order in enumerate(list(self.ledger.sent[device])):
            self.ledger.drop(order.task, order.attempt)
            # It ran, or was about to: whoever ends workers quickly must not do so for ever.
            if place == 0 and device not in self.is_restarting:
                yield TaskFailed(order.task, device, order.attempt, self._now(), "worker", "its worker died under it")
        self.is_restarting.discard(device)
        self.ledger.outbox[device].clear()
        # Dask would wait for inputs that only we can make again: these attempts are over as well.
        for order, read in self.ledger.readers_of(lost):
            self.ledger.drop(order.task, order.attempt)
            reason = "a worker died with what it reads"
            yield TaskFailed(order.task, order.device, order.attempt, self._now(), "input", reason, lost=read)
        yield DeviceLost(device, self._now(), f"the worker {self.worker_name[device]!r} left")

    def _leave(self, device: int) -> Iterator[Event]:
        """A worker went because we said so, and Dask has its data elsewhere."""
        self.given_back.discard(device)
        for order in [*self.ledger.sent[device], *self.ledger.outbox[device]]:  # sent while it was going
            self.ledger.drop(order.task, order.attempt)
        yield DeviceLost(device, self._now(), "given back", is_data_safe=True)
        if self.crew is not None and self.driver.pool is not None and device in self.driver.pool.wanted:
            self.asked_for.add(device)  # meanwhile there is work for it again
            self.crew.grow(self.worker_name[device])

    def _missed(self) -> Iterator[Event]:
        """Catch up with workers that came or went without our hearing of it."""
        if self.client.status != "running":
            raise EngineFailure("the connection to the Dask scheduler is gone")
        present = {worker.address for worker in from_client(self.client)}
        for device, address in enumerate(self.address):
            if address is not None and address not in present:
                yield from self._lose(device)
        if None in self.address:
            yield from self._joined()

    def _starving(self) -> Iterator[Event]:
        """Give up attempts that wait in Dask for data it has lost: it knows no worker that may make it again."""
        waiting = [order for sent in self.ledger.sent for order in sent]
        waiting = [order for order in waiting if (order.task, order.attempt) not in self.ledger.begun]
        if not waiting or self._now() - self.heard_s < _STARVED_S:
            return
        self.heard_s = self._now()
        known = self.client.run_on_scheduler(task_states, prefix=self.topic)
        for order in waiting:
            outputs = {task: self.ledger.output.get(task) for task in self.work.inputs(order.task)}
            lost = tuple(t for t, future in outputs.items() if future is not None and known.get(future.key) in _LOST)
            if lost:
                self.ledger.lose(lost)
                self.ledger.drop(order.task, order.attempt)
                reason = "Dask has lost what it reads"
                yield TaskFailed(order.task, order.device, order.attempt, self._now(), "input", reason, lost=lost)

    def _late(self) -> Iterator[Event]:
        """Give up attempts that take too long; a worker's thread cannot be stopped, so the worker is restarted."""
        for (task, attempt), begun_s in list(self.ledger.begun.items()):
            action = self.work.actions[task]
            limit_s = action.timeout_s or math.inf
            order = self.ledger.find(task, attempt)
            # Commands are stopped where they run.
            if order is None or isinstance(action, Command) or self._now() - begun_s < limit_s:
                continue
            self.ledger.drop(task, attempt)
            yield TaskFailed(task, order.device, attempt, self._now(), "timeout", f"took longer than {limit_s:g} s")
            address = self.address[order.device]
            if address is not None:
                self.is_restarting.add(order.device)
                self.client.restart_workers([address], raise_for_error=False)


def task_states(dask_scheduler: Any, prefix: str) -> dict[str, str]:
    """Return the states of the tasks of a run; runs in Dask's scheduler."""
    return {key: state.state for key, state in dask_scheduler.tasks.items() if str(key).startswith(prefix)}


def _about_workers(event: Any) -> Message:
    """Return an entry of Dask's own log as a message, if it is about a worker that came or went."""
    action = event.get("action") if isinstance(event, dict) else None
    if action == "remove-worker":
        return {"op": "left", "worker": event["worker"]}
    return {"op": "joined"} if action == "add-worker" else {"op": "other"}

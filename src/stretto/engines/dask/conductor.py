"""One run on a Dask cluster: the driver's orders go out as futures, the workers' reports come back as events."""

from __future__ import annotations

import math
import queue
import time
import uuid
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from stretto.domain.problem import Problem
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
    Start,
    TaskFailed,
    TaskFinished,
    TaskStarted,
    Tick,
)
from stretto.engines.recorder import Recorder
from stretto.engines.work import Timed, Work
from stretto.errors import EngineFailure

#: How long to wait for news before looking after deadlines and lost connections.
_PATIENCE_S = 0.2
Message = dict[str, Any]


class Conductor:
    """Keeps the books of one run.

    An attempt is one key in Dask, pinned to one worker. A worker is sent its next task when the one before has begun,
    so that the order is exact though data of later tasks may arrive first.
    """

    def __init__(
        self, client: Any, problem: Problem, work: Work, driver: Driver, recorder: Recorder, options: RunOptions
    ) -> None:
        self.client, self.problem, self.work = client, problem, work
        self.driver, self.recorder, self.options = driver, recorder, options
        workers = from_client(client)
        check_names(workers, problem.cluster)
        binding = bind(workers, problem.cluster)
        self.worker_name = [workers[place].name for place in binding.worker_of]
        self.address: list[str | None] = [binding.address(device) for device in range(problem.num_devices)]
        self.is_alone = [workers[place].num_threads == 1 for place in binding.worker_of]
        self.topic = f"stretto-run-{uuid.uuid4().hex[:12]}"
        self.inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.outbox: list[deque[Start]] = [deque() for _ in range(problem.num_devices)]
        self.sent: list[list[Start]] = [[] for _ in range(problem.num_devices)]
        self.begun: dict[tuple[int, int], float] = {}
        self.future: dict[tuple[int, int], Any] = {}
        self.output: dict[int, Any] = {}  # by task: the future of its output
        self.num_readers = list(work.num_children)
        self.begin = time.time()
        self.num_sent = 0

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
            for future in (*self.future.values(), *self.output.values()):
                future.release()

    # Orders ------------------------------------------------------------------------------------

    def _obey(self, orders: Iterable[Instruction]) -> None:
        for order in orders:
            if isinstance(order, Start):
                self.outbox[order.device].append(order)
            elif isinstance(order, Cancel):
                self._drop(order.task, order.attempt)
        for device, waiting in enumerate(self.outbox):
            while waiting and self._has_room(device):
                self._send(waiting.popleft())

    def _has_room(self, device: int) -> bool:
        sent = self.sent[device]
        if self.address[device] is None or not sent:
            return self.address[device] is not None
        last = sent[-1]
        return len(sent) == 1 and self.is_alone[device] and (last.task, last.attempt) in self.begun

    def _send(self, order: Start) -> None:
        task, attempt = order.task, order.attempt
        needed = self.work.inputs(task)
        gone = [parent for parent in needed if parent not in self.output and parent not in self.options.done]
        if gone:
            self.inbox.put({"op": "bereft", "task": task, "attempt": attempt, "lost": tuple(gone)})
            self.sent[order.device].append(order)
            return
        action = self.work.actions[task]
        seconds = 0.0
        if isinstance(action, Timed):
            seconds = action.scale * self.driver.tables.seconds(task, order.device)
        inputs = [self.output[parent] if parent in self.output else self.options.done[parent] for parent in needed]
        self.num_sent += 1
        future = self.client.submit(
            *(run_remote, self.topic, task, attempt, action, seconds, self.options.digests, *inputs),
            key=f"{self.topic}-{task}-{attempt}",
            workers=[self.address[order.device]],
            allow_other_workers=False,
            priority=-self.num_sent,  # first sent, first run
            pure=False,
        )
        self.sent[order.device].append(order)
        self.future[task, attempt] = future
        future.add_done_callback(lambda done: self._watch(done, task, attempt))

    def _watch(self, future: Any, task: int, attempt: int) -> None:
        """Tell of ends that the task itself could not report: arguments or outputs that Dask cannot handle."""
        if future.status == "error":
            self.inbox.put({"op": "broken", "task": task, "attempt": attempt, "reason": repr(future.exception())})

    def _drop(self, task: int, attempt: int) -> None:
        """Forget an attempt, sent or not."""
        for waiting in self.outbox:
            for order in [order for order in waiting if (order.task, order.attempt) == (task, attempt)]:
                waiting.remove(order)
        self._end(task, attempt)
        future = self.future.pop((task, attempt), None)
        if future is not None:
            future.release()  # nobody else wants it: Dask takes it back

    def _end(self, task: int, attempt: int) -> Start | None:
        """Take an attempt off its device's list and return its order, if it was there."""
        self.begun.pop((task, attempt), None)
        for sent in self.sent:
            for order in sent:
                if (order.task, order.attempt) == (task, attempt):
                    sent.remove(order)
                    return order
        return None

    # News --------------------------------------------------------------------------------------

    def _news(self) -> Iterator[Event]:
        """Wait for a message or for time to pass, and yield what it means."""
        wait_s = min(_PATIENCE_S, max(0.0, self.driver.next_release_s - self._now()))
        try:
            message = self.inbox.get(timeout=wait_s)
        except queue.Empty:
            yield from self._late()
            yield from self._missed()
            yield Tick(self._now())
            return
        yield from _READERS[message["op"]](self, message)

    def _now(self) -> float:
        return time.time() - self.begin

    def _on_started(self, message: Message) -> Iterator[Event]:
        task, attempt = message["task"], message["attempt"]
        order = self._find(task, attempt)
        if order is not None:
            self.begun[task, attempt] = message["start"] - self.begin
            yield TaskStarted(task, order.device, attempt, message["start"] - self.begin)

    def _on_finished(self, message: Message) -> Iterator[Event]:
        task, attempt = message["task"], message["attempt"]
        order = self._end(task, attempt)
        future = self.future.pop((task, attempt), None)
        if order is None or future is None:
            return
        self.output[task] = future
        if not self._bring_home(task, order.device, future):
            yield TaskFailed(task, order.device, attempt, self._now(), "device", "its output was lost")
            return
        self._release_inputs(task)
        start_s, end_s = message["start"] - self.begin, message["end"] - self.begin
        yield TaskFinished(task, order.device, attempt, start_s, end_s, message["digest"])

    def _on_failed(self, message: Message) -> Iterator[Event]:
        task, attempt = message["task"], message["attempt"]
        order = self._end(task, attempt)
        self.future.pop((task, attempt), None)
        if order is not None:
            at_s = message["end"] - self.begin
            yield TaskFailed(task, order.device, attempt, at_s, message["blame"], message["reason"])

    def _on_broken(self, message: Message) -> Iterator[Event]:
        order = self._end(message["task"], message["attempt"])
        self.future.pop((message["task"], message["attempt"]), None)
        if order is not None:
            yield TaskFailed(order.task, order.device, order.attempt, self._now(), "task", message["reason"])

    def _on_bereft(self, message: Message) -> Iterator[Event]:
        order = self._end(message["task"], message["attempt"])
        if order is not None:
            reason = "what it reads is gone"
            yield TaskFailed(
                order.task, order.device, order.attempt, self._now(), "input", reason, lost=message["lost"]
            )

    def _on_left(self, message: Message) -> Iterator[Event]:
        for device, address in enumerate(self.address):
            if address == message["worker"]:
                yield from self._lose(device)

    def _on_joined(self, message: Message) -> Iterator[Event]:
        names = {worker.name: worker.address for worker in from_client(self.client)}
        for device, name in enumerate(self.worker_name):
            if self.address[device] is None and name in names:
                self.address[device] = names[name]
                yield DeviceJoined(device, self._now())

    def _on_other(self, message: Message) -> Iterator[Event]:
        return iter(())

    def _find(self, task: int, attempt: int) -> Start | None:
        orders = (order for sent in self.sent for order in sent)
        return next((order for order in orders if (order.task, order.attempt) == (task, attempt)), None)

    # Losses ------------------------------------------------------------------------------------

    def _lose(self, device: int) -> Iterator[Event]:
        """A worker is gone, with what it ran, what waited there, and the outputs it held."""
        self.address[device] = None
        lost = {task for task, where in enumerate(self.driver.device) if where == device and task in self.output}
        for task in lost:
            del self.output[task]
        for place, order in enumerate(list(self.sent[device])):
            self._drop(order.task, order.attempt)
            if place == 0:  # it ran, or was about to: whoever ends workers quickly must not do so for ever
                yield TaskFailed(order.task, device, order.attempt, self._now(), "worker", "its worker died under it")
        self.outbox[device].clear()
        # Dask would wait for inputs that only we can make again: these attempts are over as well.
        for order in [order for sent in self.sent for order in sent]:
            bereft = tuple(parent for parent in self.work.inputs(order.task) if parent in lost)
            if bereft:
                self._drop(order.task, order.attempt)
                reason = "a worker died with what it reads"
                yield TaskFailed(order.task, order.device, order.attempt, self._now(), "input", reason, lost=bereft)
        yield DeviceLost(device, self._now(), f"the worker {self.worker_name[device]!r} left")

    def _missed(self) -> Iterator[Event]:
        """Catch up with workers that came or went without our hearing of it."""
        present = {worker.address for worker in from_client(self.client)}
        for device, address in enumerate(self.address):
            if address is not None and address not in present:
                yield from self._lose(device)
        if None in self.address:
            yield from self._on_joined({})
        if not present and all(address is None for address in self.address) and self.client.status != "running":
            raise EngineFailure("the Dask cluster is gone")

    def _late(self) -> Iterator[Event]:
        """Give up attempts that take too long; a worker's thread cannot be stopped, so the worker is restarted."""
        for (task, attempt), begun_s in list(self.begun.items()):
            limit_s = self.work.actions[task].timeout_s or math.inf
            order = self._find(task, attempt)
            if order is None or self._now() - begun_s < limit_s:
                continue
            self._drop(task, attempt)
            yield TaskFailed(task, order.device, attempt, self._now(), "timeout", f"took longer than {limit_s:g} s")
            address = self.address[order.device]
            if address is not None:
                self.client.restart_workers([address], raise_for_error=False)

    # Outputs -----------------------------------------------------------------------------------

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

    def _release_inputs(self, task: int) -> None:
        """Let Dask forget outputs that all their readers have had; should one run again, they are made again."""
        for parent in set(self.work.inputs(task)):
            self.num_readers[parent] -= 1
            if self.num_readers[parent] <= 0:
                self.output.pop(parent, None)


def _about_workers(event: Any) -> Message:
    """Return an entry of Dask's own log as a message, if it is about a worker that came or went."""
    action = event.get("action") if isinstance(event, dict) else None
    if action == "remove-worker":
        return {"op": "left", "worker": event["worker"]}
    return {"op": "joined"} if action == "add-worker" else {"op": "other"}


_READERS = {
    "started": Conductor._on_started,
    "finished": Conductor._on_finished,
    "failed": Conductor._on_failed,
    "broken": Conductor._on_broken,
    "bereft": Conductor._on_bereft,
    "left": Conductor._on_left,
    "joined": Conductor._on_joined,
    "other": Conductor._on_other,
}

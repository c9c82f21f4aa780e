"""What an actor does: one task after the other, in the order in which they were sent."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import ray

from stretto.engines.driver.events import Blame, Cancel, Event, Instruction, Start, TaskFailed, TaskFinished, Tick
from stretto.engines.local.perform import TaskError, perform
from stretto.engines.outputs import digest
from stretto.engines.recorder import Recorder
from stretto.engines.work import Action, Command, OpenReads


@dataclass(frozen=True)
class TaskReport:
    """How an attempt went; small, so that it is read without fetching the output."""

    start: float
    end: float
    digest: str | None = None
    blame: Blame | None = None
    reason: str = ""


class DeviceActor:
    """One device."""

    def wait_ready(self) -> None:
        """Return once the actor is up, which takes a second or two."""

    def run(
        self, action: Action, task: int, seconds: float, wants_digest: bool, *inputs: Any
    ) -> tuple[TaskReport, Any]:
        """Do a task; a failure is reported, not raised, so that the actor survives."""
        start, begin_s = time.time(), time.perf_counter()
        try:
            output = perform(action, task, inputs, seconds, threading.Event())
        except TaskError as error:
            return TaskReport(start, start + time.perf_counter() - begin_s, None, error.blame, error.reason), None
        end = start + time.perf_counter() - begin_s
        return TaskReport(start, end, digest(output) if wants_digest else None), output


#: How long to wait for news before looking after deadlines.
_PATIENCE_S = 0.2


class RayRun:
    """One actor for each device, and what each of them has been sent.

    Calls of one caller run in an actor in the order in which they were made, also when the data of a later one arrives
    first; so the order on a device is the driver's.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder, self.work = recorder, recorder.work
        self.driver, self.options = recorder.driver, recorder.options
        self.problem = problem = self.driver.problem
        self.offered = ray.cluster_resources()
        self.actors = [self._new_actor(device) for device in range(problem.num_devices)]
        ray.get([actor.wait_ready.remote() for actor in self.actors])
        self.reports: dict[Any, tuple[Start, Any]] = {}  # by the reference of the report: the order, and its output
        self.sent: list[list[Start]] = [[] for _ in range(problem.num_devices)]
        self.since_s = [0.0] * problem.num_devices  # when the first one sent can have begun
        self.output: dict[int, Any] = {}
        self.open_reads = OpenReads(self.work)
        self.begin = time.time()  # of the actors' reports; what we decide by goes by a clock that cannot jump
        self.began_s = time.monotonic()

    def _new_actor(self, device: int) -> Any:
        name = self.problem.cluster.devices[device].name
        wanted = {"resources": {name: 1}} if name in self.offered else {}
        return ray.remote(DeviceActor).options(num_cpus=1 if not wanted else 0, max_restarts=0, **wanted).remote()

    def run(self) -> bool:
        """Run to the end; return whether the user interrupted."""
        try:
            self.recorder.drive(self._events, self._execute)
            return False
        except KeyboardInterrupt:
            self.driver.stop()
            return True
        finally:
            for actor in self.actors:
                ray.kill(actor)

    # Orders ------------------------------------------------------------------------------------

    def _execute(self, orders: Iterable[Instruction]) -> None:
        for order in orders:
            if isinstance(order, Start):
                self._send(order)
            elif isinstance(order, Cancel):
                self._forget(order.task, order.attempt)

    def _send(self, order: Start) -> None:
        task = order.task
        action = self.work.actions[task]
        seconds = self.recorder.timed_s(task, order.device)
        given = self.options.done
        inputs = [self.output[parent] if parent in self.output else given[parent] for parent in self.work.inputs(task)]
        call = self.actors[order.device].run.options(num_returns=2)
        report, output = call.remote(action, task, seconds, self.options.digests, *inputs)
        if not self.sent[order.device]:
            self.since_s[order.device] = self._now()
        self.sent[order.device].append(order)
        self.reports[report] = (order, output)

    def _forget(self, task: int, attempt: int) -> None:
        for reference, (order, _) in list(self.reports.items()):
            if (order.task, order.attempt) == (task, attempt):
                del self.reports[reference]
                self.sent[order.device].remove(order)

    # News --------------------------------------------------------------------------------------

    def _events(self) -> Iterator[Event]:
        wait_s = min(_PATIENCE_S, max(0.0, self.driver.next_release_s - self._now()))
        ended, _ = ray.wait(list(self.reports), num_returns=1, timeout=wait_s) if self.reports else ([], [])
        if not ended:
            if not self.reports:
                time.sleep(wait_s)
            yield from self._late()
            yield Tick(self._now())
        for reference in ended:
            order, output = self.reports[reference]
            try:
                report: TaskReport = ray.get(reference)
            except ray.exceptions.RayActorError:
                yield from self._replace(order.device, "worker", "its actor died")
            except ray.exceptions.RayError as error:
                self._done_with(reference)
                lost = tuple(self.work.inputs(order.task))
                yield TaskFailed(
                    order.task, order.device, order.attempt, self._now(), "input", _first_line(error), lost=lost
                )
            else:
                self._done_with(reference)
                yield self._end(order, report, output)

    def _done_with(self, reference: Any) -> None:
        order, _ = self.reports.pop(reference)
        self.sent[order.device].remove(order)
        self.since_s[order.device] = self._now()

    def _end(self, order: Start, report: TaskReport, output: Any) -> Event:
        task, end_s = order.task, report.end - self.begin
        if report.blame is not None:
            return TaskFailed(task, order.device, order.attempt, end_s, report.blame, report.reason)
        self.output[task] = output
        self.recorder.deliver(task, lambda: ray.get(output))
        for unread in self.open_reads.finish(task):
            self.output.pop(unread, None)
        return TaskFinished(task, order.device, order.attempt, report.start - self.begin, end_s, report.digest)

    def _late(self) -> Iterator[Event]:
        """Give up a task that takes too long: its actor is replaced, as nothing else stops it."""
        for device, sent in enumerate(self.sent):
            action = self.work.actions[sent[0].task] if sent else None
            if action is None or isinstance(action, Command):  # commands are stopped where they run
                continue
            limit_s = action.timeout_s or math.inf
            if self._now() - self.since_s[device] > limit_s:
                yield from self._replace(device, "timeout", f"took longer than {limit_s:g} s")

    def _replace(self, device: int, blame: Blame, reason: str) -> Iterator[Event]:
        """Put a new actor in place; the first task it had is to blame, the others had no chance."""
        ray.kill(self.actors[device])
        self.actors[device] = self._new_actor(device)
        ray.get(self.actors[device].wait_ready.remote())  # so that a time limit counts only the task
        for place, order in enumerate(list(self.sent[device])):
            self._forget(order.task, order.attempt)
            if place == 0:
                yield TaskFailed(order.task, device, order.attempt, self._now(), blame, reason)
            else:
                yield TaskFailed(order.task, device, order.attempt, self._now(), "device", "its actor was replaced")

    def _now(self) -> float:
        return time.monotonic() - self.began_s


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)

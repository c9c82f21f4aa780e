"""One run on Ray: the driver's orders go to actors, their reports come back as events."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from typing import Any

import ray

from stretto.core.problem import Problem
from stretto.engines.driver import Driver
from stretto.engines.engine import RunOptions
from stretto.engines.events import Blame, Cancel, Event, Instruction, Start, TaskFailed, TaskFinished, Tick
from stretto.engines.ray.runner import Runner, Told
from stretto.engines.recorder import Recorder
from stretto.engines.work import Command, Timed, Work

#: How long to wait for news before looking after deadlines.
_PATIENCE_S = 0.2


class Crew:
    """One actor for each device, and what each of them has been sent.

    Calls of one caller run in an actor in the order in which they were made, also when the data of a later one arrives
    first; so the order on a device is the driver's.
    """

    def __init__(self, problem: Problem, work: Work, driver: Driver, recorder: Recorder, options: RunOptions) -> None:
        self.problem, self.work, self.driver = problem, work, driver
        self.recorder, self.options = recorder, options
        self.offered = ray.cluster_resources()
        self.actors = [self._hire(device) for device in range(problem.num_devices)]
        ray.get([actor.greet.remote() for actor in self.actors])
        self.told: dict[Any, tuple[Start, Any]] = {}  # by the reference of the report: the order, and its output
        self.sent: list[list[Start]] = [[] for _ in range(problem.num_devices)]
        self.since_s = [0.0] * problem.num_devices  # when the first one sent can have begun
        self.output: dict[int, Any] = {}
        self.num_readers = list(work.num_children)
        self.begin = time.time()  # of the actors' reports; what we decide by goes by a clock that cannot jump
        self.began_s = time.monotonic()

    def _hire(self, device: int) -> Any:
        name = self.problem.cluster.devices[device].name
        wanted = {"resources": {name: 1}} if name in self.offered else {}
        return ray.remote(Runner).options(num_cpus=1 if not wanted else 0, max_restarts=0, **wanted).remote()

    def conduct(self) -> bool:
        """Run to the end; return whether the user interrupted."""
        try:
            self._obey(self.driver.begin())
            while not self.driver.is_over:
                events = list(self._news())
                for event in events:
                    self.recorder.note(event)
                self._obey(self.driver.handle(events))
            return False
        except KeyboardInterrupt:
            self.driver.stop()
            return True
        finally:
            for actor in self.actors:
                ray.kill(actor)

    # Orders ------------------------------------------------------------------------------------

    def _obey(self, orders: Iterable[Instruction]) -> None:
        for order in orders:
            if isinstance(order, Start):
                self._send(order)
            elif isinstance(order, Cancel):
                self._forget(order.task, order.attempt)

    def _send(self, order: Start) -> None:
        task = order.task
        action = self.work.actions[task]
        seconds = 0.0
        if isinstance(action, Timed):
            seconds = action.scale * self.driver.tables.seconds(task, order.device)
        given = self.options.done
        inputs = [self.output[parent] if parent in self.output else given[parent] for parent in self.work.inputs(task)]
        call = self.actors[order.device].run.options(num_returns=2)
        told, output = call.remote(action, task, seconds, self.options.digests, *inputs)
        if not self.sent[order.device]:
            self.since_s[order.device] = self._now()
        self.sent[order.device].append(order)
        self.told[told] = (order, output)

    def _forget(self, task: int, attempt: int) -> None:
        for reference, (order, _) in list(self.told.items()):
            if (order.task, order.attempt) == (task, attempt):
                del self.told[reference]
                self.sent[order.device].remove(order)

    # News --------------------------------------------------------------------------------------

    def _news(self) -> Iterator[Event]:
        wait_s = min(_PATIENCE_S, max(0.0, self.driver.next_release_s - self._now()))
        ended, _ = ray.wait(list(self.told), num_returns=1, timeout=wait_s) if self.told else ([], [])
        if not ended:
            if not self.told:
                time.sleep(wait_s)
            yield from self._late()
            yield Tick(self._now())
        for reference in ended:
            order, output = self.told[reference]
            try:
                told: Told = ray.get(reference)
            except ray.exceptions.RayActorError:
                yield from self._replace(order.device, "worker", "its actor died under it")
            except ray.exceptions.RayError as error:
                self._done_with(reference)
                lost = tuple(self.work.inputs(order.task))
                yield TaskFailed(
                    order.task, order.device, order.attempt, self._now(), "input", _first_line(error), lost=lost
                )
            else:
                self._done_with(reference)
                yield self._end(order, told, output)

    def _done_with(self, reference: Any) -> None:
        order, _ = self.told.pop(reference)
        self.sent[order.device].remove(order)
        self.since_s[order.device] = self._now()

    def _end(self, order: Start, told: Told, output: Any) -> Event:
        task, end_s = order.task, told.end - self.begin
        if told.blame is not None:
            return TaskFailed(task, order.device, order.attempt, end_s, told.blame, told.reason)
        self.output[task] = output
        if self.recorder.wants_output(task):
            self.recorder.outputs[task] = ray.get(output)
        if self.options.on_output is not None:
            self.options.on_output(task, ray.get(output))
        for parent in set(self.work.inputs(task)):
            self.num_readers[parent] -= 1
            if self.num_readers[parent] == 0:
                self.output.pop(parent, None)
        return TaskFinished(task, order.device, order.attempt, told.start - self.begin, end_s, told.digest)

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
        self.actors[device] = self._hire(device)
        ray.get(self.actors[device].greet.remote())  # so that a time limit counts only the task
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

"""The run log's view of a run: every event, every output that is data, and what of it a later run need not repeat."""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any

from stretto.core.cluster import Cluster
from stretto.engines.end_record import MAX_OUTPUT_BYTES
from stretto.engines.ends import End, EndBook, EndTicket, await_writers, book_path, read_ends
from stretto.engines.events import (
    DeviceJoined,
    DeviceLost,
    Event,
    Overruled,
    PriceChanged,
    TaskFailed,
    TaskFinished,
    TaskStarted,
)
from stretto.engines.local.perform import missing_files
from stretto.engines.outputs import decode, encode, num_bytes
from stretto.engines.waiting_events import WaitingEvents
from stretto.engines.work import Command, Work
from stretto.errors import EngineFailure, InvalidInput
from stretto.runlog import Run, RunLog
from stretto.runlog.log import UnwritableLog

#: Outputs up to this size stand in the event itself, larger ones are attached; very large ones are not kept, and
#: their tasks run again when a run is resumed.
_INLINE_BYTES = 2048
_GATHER_S = 0.05


class Journal:
    """Writes from a thread of its own, many events at a time: a run must not wait for its own record.

    Ends are the exception. Each stands in the book of ends (``engines/ends.py``) when :meth:`on_event` returns, which
    is before the driver hears of it: so no end that anything was built on is lost with this process.
    """

    def __init__(
        self,
        run: Run,
        work: Work,
        cluster: Cluster,
        *,
        digests: bool = True,
        on_notice: Callable[[str], None] | None = None,
    ) -> None:
        self.run, self.work = run, work
        self._digests = digests
        self._waiting = WaitingEvents(on_notice or (lambda text: None))
        self._names = [work.graph.task_name(task) for task in range(work.graph.num_tasks)]
        self._devices = [device.name for device in cluster.devices]
        self._queue: SimpleQueue[Event | End] = SimpleQueue()
        self._outputs: dict[int, bytes | None] = {}
        self._book = EndBook(book_path(run.log, run.id))
        self._booked: set[tuple[int, int]] = set()
        self._pid = os.getpid()
        self._is_closing = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._write_all, name="stretto-journal", daemon=True)

    def __enter__(self) -> Journal:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closing.set()
        self._thread.join()
        self._book.close(is_entered=self._error is None)
        if self._error is not None and error is None:
            raise EngineFailure(f"the tasks ran, but their record is not complete: {self._error}") from self._error

    def on_event(self, event: Event) -> None:
        """Take an event; for ``RunOptions.on_event``."""
        if isinstance(event, TaskFinished):
            end = self._end(event, self._outputs.pop(event.task, None))
            if (event.task, event.attempt) not in self._booked:  # by a worker's process, or not yet
                self._book.add(end)
            self._booked.discard((event.task, event.attempt))
            self._queue.put(end)
        else:
            self._queue.put(event)

    def on_output(self, task: int, value: Any) -> None:
        """Take an output; for ``RunOptions.on_output``."""
        if task not in self._outputs:
            self._outputs[task] = _as_bytes(value)

    def on_done(self, event: TaskFinished, value: Any) -> None:
        """Write an end down before it is reported, wherever the task ran; for ``RunOptions.on_done``."""
        data = _as_bytes(value)
        self._book.add(self._end(event, data))
        if os.getpid() == self._pid:  # a worker's process reports to us, and its memory is its own
            self._outputs[event.task] = data
            self._booked.add((event.task, event.attempt))

    def on_command(self, event: TaskStarted, zero_s: float) -> EndTicket:
        """Say how the end of a command is written down; for ``RunOptions.on_command``."""
        fields = {"device": self._devices[event.device], "attempt": event.attempt, "start_s": event.at_s}
        return EndTicket(str(self._book.path), self._names[event.task], fields, zero_s, self._digests)

    def _end(self, event: TaskFinished, data: bytes | None) -> End:
        fields: dict[str, Any] = {
            "device": self._devices[event.device],
            "attempt": event.attempt,
            "start_s": event.start_s,
            "end_s": event.at_s,
            "digest": event.digest,
        }
        return End(self._names[event.task], fields, data)

    def _write_all(self) -> None:
        waiting = self._waiting
        try:
            while not (self._is_closing.is_set() and self._queue.empty() and not waiting.items):
                waiting.add(self._gather())
                if waiting.items:
                    self._write_waiting(waiting)
            self._error = waiting.loss()
        except BaseException as error:  # told at the end: a full disk must not stop the run itself
            self._error = error

    def _write_waiting(self, waiting: WaitingEvents) -> None:
        """Write all that waits, as one; where the log cannot be written, it waits for the next time."""
        try:
            with self.run.batch():
                for item in waiting.items:
                    self._write(item)
                waiting.note_delay(self.run)
        except UnwritableLog as error:
            waiting.failed(error, is_last=self._is_closing.is_set())
        else:
            waiting.written()

    def _gather(self) -> list[Event | End]:
        items: list[Event | End] = []
        try:
            items.append(self._queue.get(timeout=_GATHER_S))
            while True:
                items.append(self._queue.get_nowait())
        except Empty:
            return items

    def _write(self, item: Event | End) -> None:
        if isinstance(item, End):
            enter(self.run, self.work, item)
        elif isinstance(item, TaskStarted):
            where = self._devices[item.device]
            self.run.record("task-started", self._names[item.task], device=where, attempt=item.attempt, at_s=item.at_s)
        elif isinstance(item, TaskFailed):
            self.run.record(
                "task-failed",
                self._names[item.task],
                device=self._devices[item.device],
                attempt=item.attempt,
                at_s=item.at_s,
                blame=item.blame,
                reason=item.reason,
            )
        elif isinstance(item, (DeviceJoined, DeviceLost)):
            kind = "device-joined" if isinstance(item, DeviceJoined) else "device-lost"
            self.run.record(kind, self._devices[item.device], at_s=item.at_s, reason=getattr(item, "reason", ""))
        elif isinstance(item, PriceChanged):
            where = self._devices[item.device]
            self.run.record("price-changed", where, at_s=item.at_s, price_usd_per_hour=item.price_usd_per_hour)
        elif isinstance(item, Overruled):
            self.run.record("decision-overruled", item.dispatcher, at_s=item.at_s, reason=item.reason)


def enter(run: Run, work: Work, end: End) -> None:
    """Enter an end into the run log, with its output."""
    fields = dict(end.fields)
    if end.output is not None and len(end.output) <= _INLINE_BYTES:
        fields["output"] = base64.b64encode(end.output).decode()
    elif end.output is not None:
        run.attach(_artifact(work.graph.index_of[end.task]), end.output)
        fields["attached"] = True
    run.record("task-finished", end.task, **fields)


def catch_up(run: Run, work: Work) -> int:
    """Enter the ends that an earlier part of a run wrote down and did not live to enter; return how many."""
    path = book_path(run.log, run.id)
    if not await_writers(path):
        raise EngineFailure(f"processes of an earlier part of run {run.id} are still at work; end them and try again")
    num_new = 0
    with run.batch():
        known = {event.subject for event in run.log.events(run.id, kinds=["task-finished"])}
        # Of a worker's word and the coordinator's, the second has the exact times.
        for end in {end.task: end for end in read_ends(path)}.values():
            if end.task not in known and end.task in work.graph.index_of:
                enter(run, work, end)
                num_new += 1
    path.unlink(missing_ok=True)
    return num_new


def finished_before(log: RunLog, run_id: str, work: Work) -> dict[int, Any]:
    """Return the outputs of tasks that ended in an earlier part of a run, and need not run again.

    A task whose output was not data, or whose files are gone, is not among them.
    """
    done: dict[int, Any] = {}
    for event in log.events(run_id, kinds=["task-finished"]):
        task = work.graph.index_of.get(event.subject)
        if task is None:
            raise InvalidInput(f"has a task {event.subject!r} that the workflow lacks", field=f"run {run_id}")
        data = None
        if "output" in event.fields:
            data = base64.b64decode(event.fields["output"])
        elif event.fields.get("attached"):
            data = log.artifact(run_id, _artifact(task))
        action = work.actions[task]
        is_gone = isinstance(action, Command) and missing_files(action, action.writes)
        if data is not None and not is_gone:
            done[task] = decode(data)
    return done


def _artifact(task: int) -> str:
    return f"output-{task}"


def _as_bytes(value: Any) -> bytes | None:
    if num_bytes(value) > MAX_OUTPUT_BYTES:
        return None
    try:
        return encode(value)
    except TypeError:
        return None
